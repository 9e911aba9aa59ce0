// SPDX-License-Identifier: GPL-2.0
/*
 * Scenes that are not a reader of one file. They print for bench/policy/figures:
 *
 *   scanned COMMAND PROMOTED              pages, while a command ran
 *   pass NUMBER PROMOTED EARNED SPENT HEADROOM
 *                                         over a hot set: pages, us, us, pages
 *   cached HOT OF-HOT COLD OF-COLD HOT-IN-DRAM DEMOTED ROOM
 *                                         pages, when it ends; of the last, what
 *                                         was free above the high watermark
 *   kept file|anon alone|both PAGES       in DRAM, when it ends
 */
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader.h"

#define SCANNED (64UL << 20)
/* Passes over a hot set, at most, and after it has been promoted */
#define PASSES 1500
#define PASSES_AFTER 3
#define HOT_STEP 16
/* How often each page is accessed beside others, and for how long at least */
#define BESIDE_ACCESSES 25
#define BESIDE_SECONDS 6
#define BESIDE_STEP 128

/* Programs that read a file once. tar reads nothing that goes to /dev/null. */
static const char * const scanners[][2] = {
	{ "cp", "cp $FILE /dev/null" },
	{ "cat", "cat $FILE > /dev/null" },
	{ "tar", "tar -cf - $FILE 2> /dev/null | cat > /dev/null" },
};

static void scan_by(const char *name, const char *command)
{
	struct promote_file file = { 0 };
	struct meter meter, before;
	pid_t spinner;

	place_file(&file, SCANNED, promote_lower_node());
	setenv("FILE", file.path, 1);
	spinner = start_spinning();
	meter_read(&before);
	if (system(command))
		die(name, -EIO);
	meter_since(&meter, &before);
	stop_spinning(spinner);
	printf("scanned %s %ld\n", name, meter.promoted);
	promote_file_remove(&file);
}

int scan(const char *memory)
{
	struct fill cold = { 0 };
	size_t i;

	if (!strcmp(memory, "full"))
		fill_with_cache(&cold, promote_top_node());
	for (i = 0; i < sizeof(scanners) / sizeof(scanners[0]); i++)
		scan_by(scanners[i][0], scanners[i][1]);
	fill_remove(&cold);
	return 0;
}

/* Read it until all but one page in 100 are promoted, and some more. */
static void read_hot(struct reader *reader, int top)
{
	int pass, last = PASSES;
	struct budget budget;
	struct meter start;
	long promoted;

	meter_read(&start);
	for (pass = 1; pass <= last; pass++) {
		reader_draw(reader);
		reader_read(reader);
		budget_read(&budget, top);
		promoted = promote_vmstat("pgpromote_success") - start.promoted;
		printf("pass %d %ld %ld %ld %ld\n", pass, promoted, budget.earned,
		       budget.spent, budget.headroom);
		if (promoted >= reader->file.nr - reader->file.nr / 100 &&
		    last == PASSES)
			last = pass + PASSES_AFTER;
	}
	printf("budget %s\n", budget.line);
}

int hot(size_t size, double seconds)
{
	struct fill cold = { 0 };
	struct reader reader = { 0 };
	int top = promote_top_node();
	struct meter meter, before;
	long in_dram;

	reader_init(&reader, "linear", size, seconds);
	reader_takes(&reader, reader.file.nr, HOT_STEP);
	fill_with_cache(&cold, top);
	meter_read(&before);
	read_hot(&reader, top);
	meter_since(&meter, &before);
	in_dram = reader_pages_on(&reader, top);
	printf("cached %ld %ld %ld %ld %ld %ld %ld\n",
	       promote_file_resident(&reader.file), reader.file.nr,
	       fill_resident(&cold), cold.nr, in_dram, meter.demoted,
	       cold.left);
	fill_remove(&cold);
	promote_file_remove(&reader.file);
	return 0;
}

struct guest {
	long nr;		/* pages of each */
	double seconds;		/* until it comes back to a page */
	long long ready_ns;	/* when all are ready */
	long long end_ns;
	const char *company;	/* alone or both */
};

static void read_until(struct reader *reader, long long end_ns)
{
	while (now_ns() < end_ns) {
		reader_draw(reader);
		reader_read(reader);
	}
}

static int read_file(const struct guest *guest)
{
	struct reader reader = { 0 };

	reader_init(&reader, "uniform", guest->nr * PAGE, guest->seconds);
	reader_takes(&reader, BESIDE_STEP * 8, BESIDE_STEP);
	sleep_until(guest->ready_ns);
	read_until(&reader, guest->end_ns);
	printf("kept file %s %ld\n", guest->company,
	       reader_pages_on(&reader, promote_top_node()));
	promote_file_remove(&reader.file);
	return 0;
}

static char *map_in_lower_tier(long nr)
{
	char *map = mmap(NULL, nr * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		die("memory", -errno);
	if (promote_policy(MPOL_BIND, promote_lower_node()))
		die("policy", -EINVAL);
	memset(map, 1, nr * PAGE);
	promote_policy(MPOL_DEFAULT, -1);
	return map;
}

static void touch_until(char *map, const struct guest *guest)
{
	long long pace_ns = guest->seconds * 1e9 / guest->nr, next = now_ns();
	uint32_t pages[BESIDE_STEP];
	struct pattern pattern;
	int i;

	pattern_init(&pattern, "uniform", guest->nr);
	while (now_ns() < guest->end_ns) {
		pattern_draw(&pattern, pages, BESIDE_STEP);
		for (i = 0; i < BESIDE_STEP; i++)
			*(volatile char *)(map + pages[i] * PAGE);
		next += BESIDE_STEP * pace_ns;
		if (pace_ns)
			sleep_until(next);
	}
}

static int touch_memory(const struct guest *guest)
{
	long on_node[PROMOTE_MAX_NODES] = { 0 };
	char *map = map_in_lower_tier(guest->nr);

	sleep_until(guest->ready_ns);
	touch_until(map, guest);
	if (promote_page_nodes(map, guest->nr, on_node))
		die("cannot find the pages", -EIO);
	printf("kept anon %s %ld\n", guest->company, on_node[promote_top_node()]);
	return 0;
}

static void start(int (*function)(const struct guest *), const struct guest *guest)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork", -errno);
	if (!pid)
		exit(function(guest));
}

static void together(struct guest *guest, bool file, bool anon)
{
	double seconds = guest->seconds * BESIDE_ACCESSES;
	int status;

	if (seconds < BESIDE_SECONDS)
		seconds = BESIDE_SECONDS;
	guest->company = file && anon ? "both" : "alone";
	/* Placing both takes a second or two. */
	guest->ready_ns = now_ns() + 10000000000LL;
	guest->end_ns = guest->ready_ns + seconds * 1e9;
	if (file)
		start(read_file, guest);
	if (anon)
		start(touch_memory, guest);
	while (wait(&status) > 0) {
		if (status)
			die("a process failed", -ECHILD);
	}
}

/* Each would fit into what DRAM has free, both are twice that. */
int beside(double seconds)
{
	struct guest guest = { .seconds = seconds };
	struct budget budget;

	/* The memory is scanned for hint faults, which init has put off. */
	promote_write(PROMOTE_SCAN_DELAY, "1000");
	budget_read(&budget, promote_top_node());
	guest.nr = budget.headroom;
	together(&guest, true, false);
	together(&guest, false, true);
	together(&guest, true, true);
	return 0;
}
