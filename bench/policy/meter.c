// SPDX-License-Identifier: GPL-2.0
/* Costs and places, see meter.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "meter.h"

#define NODES "/sys/kernel/debug/promote/nodes"
#define PAGE 4096UL
#define BATCH 512

static long long clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Ends of tasks lose what they ran; kernel threads hardly ever end. */
static long long others_ns(void)
{
	char path[300], text[128];
	struct dirent *entry;
	long long sum = 0;
	DIR *dir;

	dir = opendir("/proc");
	while (dir && (entry = readdir(dir))) {
		if (!isdigit(entry->d_name[0]) || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/schedstat", entry->d_name);
		if (promote_read(path, text, sizeof(text)) > 0)
			sum += atoll(text);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/* Demoted by kswapd, directly, by khugepaged, and what there will be. */
static long demoted_pages(void)
{
	char line[128];
	long sum = 0;
	FILE *file;

	file = fopen("/proc/vmstat", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "pgdemote_", 9))
			sum += atol(strchr(line, ' '));
	}
	if (file)
		fclose(file);
	return sum;
}

void meter_read(struct meter *meter)
{
	meter->promoted = promote_vmstat("pgpromote_success");
	meter->demoted = demoted_pages();
	meter->others = others_ns();
	meter->wall = clock_ns(CLOCK_MONOTONIC);
	meter->self = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void meter_since(struct meter *meter, const struct meter *before)
{
	meter->self = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before->self;
	meter->wall = clock_ns(CLOCK_MONOTONIC) - before->wall;
	meter->others = others_ns() - before->others;
	meter->promoted = promote_vmstat("pgpromote_success") - before->promoted;
	meter->demoted = demoted_pages() - before->demoted;
}

void budget_read(struct budget *budget, int node)
{
	char line[256];
	int number;
	FILE *file;

	memset(budget, 0, sizeof(*budget));
	file = fopen(NODES, "r");
	if (!file) {
		budget->headroom = promote_node_room(node);
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%d", &number) != 1 || number != node)
			continue;
		sscanf(line, "%*d %ld %*d %ld %*d %*d %*d %ld %ld",
		       &budget->headroom, &budget->credit, &budget->earned,
		       &budget->spent);
		line[strcspn(line, "\n")] = 0;
		strcpy(budget->line, line);
	}
	fclose(file);
}

long pages_above_high(int node)
{
	long free = 0, high = 0, kept, above = 0;
	char line[256];
	int nid = -1;
	FILE *file;

	file = fopen("/proc/zoneinfo", "r");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "Node %d, zone", &nid);
		sscanf(line, " pages free %ld", &free);
		sscanf(line, " high %ld", &high);
		if (nid != node || !strstr(line, "protection: ("))
			continue;
		/* The last of the list is for movable memory. */
		kept = high + strtol(strrchr(line, ' '), NULL, 10);
		if (free > kept)
			above += free - kept;
	}
	if (file)
		fclose(file);
	return above;
}

static int where_batch(char *start, long nr, int node, bool *on_node)
{
	void *pages[BATCH];
	int status[BATCH];
	long i;

	for (i = 0; i < nr; i++) {
		pages[i] = start + i * PAGE;
		/* move_pages() knows only what is mapped. */
		*(volatile char *)pages[i];
	}
	if (syscall(SYS_move_pages, 0, nr, pages, NULL, status, 0))
		return -errno;
	for (i = 0; i < nr; i++)
		on_node[i] = status[i] == node;
	return 0;
}

int pages_on_node(const struct promote_file *file, int node, bool *on_node,
		  long *nr)
{
	long at, i, len;
	int err = 0;
	char *map;

	map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	/* What is read at random is not marked as accessed for being mapped. */
	madvise(map, file->size, MADV_RANDOM);
	*nr = 0;
	for (at = 0; at < file->nr && !err; at += len) {
		len = file->nr - at < BATCH ? file->nr - at : BATCH;
		err = where_batch(map + at * PAGE, len, node, on_node + at);
		for (i = at; i < at + len; i++)
			*nr += on_node[i];
	}
	munmap(map, file->size);
	return err;
}
