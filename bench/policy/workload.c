// SPDX-License-Identifier: GPL-2.0
/*
 * A reader whose file starts in the lower tier, with as much of DRAM free as
 * there is after boot, and what becomes of it. Prints for bench/policy/figures:
 *
 *   start HEADROOM PAGES          of the DRAM node and of the file
 *   round PHASE NUMBER READS SELF OTHERS WALL PROMOTED DEMOTED
 *                                 ns, pages; phase 2 is after a reshuffle
 *   where PHASE NUMBER PAGES SHARE BEST
 *                                 of the file in DRAM, after that round; what
 *                                 share of the reads they get, and what as many
 *                                 of the best pages would
 *   budget LINE                   of debugfs promote/nodes, for people
 *
 * What a round reads is drawn before it begins. A reader that does not read back
 * to back sleeps every STEP reads, until a time that does not depend on how
 * long the reads took.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meter.h"
#include "pattern.h"

#define PAGE 4096UL
#define ROUND_READS 262144
#define STEP 128
/* Of the phase after a reshuffle, where the pages are looked for */
#define SOON 3

struct workload {
	struct pattern pattern;
	struct promote_file file;
	int top;
	int rounds[2];
	uint32_t reads;		/* of a round */
	long long pace_ns;	/* from a read to the next; 0: back to back */
	uint32_t *pages;	/* what a round reads */
	bool *on_top;
	bool on;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "policy-workload: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void sleep_until(long long ns)
{
	struct timespec until = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

static void read_round(struct workload *work)
{
	struct timespec now;
	static char buf[PAGE];
	long long next;
	uint32_t i;

	clock_gettime(CLOCK_MONOTONIC, &now);
	next = now.tv_sec * 1000000000LL + now.tv_nsec;
	for (i = 0; i < work->reads; i++) {
		if (work->pace_ns && i % STEP == 0) {
			next += STEP * work->pace_ns;
			sleep_until(next);
		}
		if (pread(work->file.fd, buf, PAGE, work->pages[i] * PAGE) !=
		    (ssize_t)PAGE)
			die("read", errno ? -errno : -EIO);
	}
}

static void show_where(struct workload *work, int phase, int round)
{
	long nr;
	int err = pages_on_node(&work->file, work->top, work->on_top, &nr);

	if (err)
		die("cannot find the pages", err);
	printf("where %d %d %ld %.4f %.4f\n", phase, round, nr,
	       pattern_share(&work->pattern, work->on_top),
	       pattern_best_share(&work->pattern, nr));
}

static void one_round(struct workload *work, int phase, int round)
{
	struct meter meter, before;
	struct budget budget;

	pattern_draw(&work->pattern, work->pages, work->reads);
	meter_read(&before);
	read_round(work);
	meter_since(&meter, &before);
	printf("round %d %d %u %lld %lld %lld %ld %ld\n", phase, round, work->reads,
	       meter.self, meter.others, meter.wall, meter.promoted,
	       meter.demoted);
	if (!work->on)
		return;
	budget_read(&budget, work->top);
	printf("budget %s\n", budget.line);
	if (round == work->rounds[phase - 1] || (phase == 2 && round == SOON))
		show_where(work, phase, round);
}

static void run(struct workload *work)
{
	int phase, round;

	for (phase = 1; phase <= 2; phase++) {
		if (phase == 2 && work->rounds[1])
			pattern_shuffle(&work->pattern);
		for (round = 1; round <= work->rounds[phase - 1]; round++)
			one_round(work, phase, round);
	}
}

/* While everybody waits for the disk the clock would leap: keep somebody busy. */
static pid_t start_spinning(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpriority(PRIO_PROCESS, 0, 19);
	for (;;)
		;
}

static void stop_spinning(pid_t pid)
{
	if (pid > 0)
		kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A size in MiB, or "1.2x": times the memory that can be promoted to. */
static size_t file_size(const char *text, long headroom)
{
	char *end;
	double number = strtod(text, &end);

	if (*end == 'x')
		return (size_t)(number * headroom) * PAGE;
	return (size_t)number << 20;
}

static void make_file(struct workload *work, size_t size)
{
	int err = promote_file_sparse(&work->file, size);

	/* No disk is to be written to because of a time of access. */
	if (!err && fcntl(work->file.fd, F_SETFL, O_NOATIME))
		err = -errno;
	err = err ? err : posix_fadvise(work->file.fd, 0, 0, POSIX_FADV_RANDOM);
	err = err ? err : promote_file_place(&work->file, promote_lower_node(), false);
	if (err)
		die("cannot place the file", err);
	sync();
}

static void set_up(struct workload *work, char *argv[])
{
	char enabled[16] = "";
	struct budget budget;
	double seconds = atof(argv[5]);
	pid_t spinner = start_spinning();
	size_t size;
	int err;

	promote_read(PROMOTE_SWITCH, enabled, sizeof(enabled));
	work->on = !strcmp(enabled, "true");
	work->top = promote_top_node();
	budget_read(&budget, work->top);
	size = file_size(argv[2], budget.headroom);
	work->rounds[0] = atoi(argv[3]);
	work->rounds[1] = atoi(argv[4]);
	err = pattern_init(&work->pattern, argv[1], size / PAGE);
	if (err)
		die(argv[1], err);
	work->reads = work->pattern.linear ? size / PAGE : ROUND_READS;
	work->pace_ns = seconds * 1e9 / (size / PAGE);
	work->pages = calloc(work->reads, sizeof(*work->pages));
	work->on_top = calloc(size / PAGE, sizeof(*work->on_top));
	if (!work->pages || !work->on_top)
		die("memory", -ENOMEM);
	memset(work->pages, 1, work->reads * sizeof(*work->pages));
	memset(work->on_top, 1, size / PAGE);
	make_file(work, size);
	stop_spinning(spinner);
	budget_read(&budget, work->top);
	printf("start %ld %ld\n", budget.headroom, work->file.nr);
}

int main(int argc, char *argv[])
{
	struct workload work = { 0 };

	if (argc != 6) {
		fprintf(stderr, "usage: policy-workload uniform|linear|zipf|normal "
			"MIB|FACTORx ROUNDS ROUNDS-AFTER-RESHUFFLE SECONDS\n");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	set_up(&work, argv);
	run(&work);
	promote_file_remove(&work.file);
	return 0;
}
