/* SPDX-License-Identifier: GPL-2.0 */
/* What the workloads have in common: a file that is placed, and its reader. */
#ifndef BENCH_POLICY_READER_H
#define BENCH_POLICY_READER_H

#include <stdint.h>

#include "meter.h"
#include "pattern.h"
#include "promote_util.h"

#define PAGE 4096UL

struct reader {
	struct pattern pattern;
	struct promote_file file;
	uint32_t *pages;	/* that it reads next */
	uint32_t reads;		/* how many */
	long long pace_ns;	/* from a read to the next; 0: back to back */
	uint32_t step;		/* reads from a sleep to the next */
	bool *on_node;
};

void die(const char *what, int err) __attribute__((noreturn));
long long now_ns(void);
void sleep_until(long long ns);

/*
 * While everybody waits for the disk the clock would leap: keep a process busy
 * where that may be.
 */
pid_t start_spinning(void);
void stop_spinning(pid_t pid);

/* A sparse file with its cache on a node, as folios of one page each. */
void place_file(struct promote_file *file, size_t size, int node);
/*
 * As much cold cache as leaves a node with what reclaim leaves free, in several
 * files.
 */
#define FILL_FILES 64
struct fill {
	struct promote_file file[FILL_FILES];
	int nr_files;
	long nr;		/* pages of all */
	long left;		/* pages above the high watermark */
};

void fill_with_cache(struct fill *fill, int node);
long fill_resident(struct fill *fill);
void fill_remove(struct fill *fill);

/* A reader of a file of the lower tier, which takes @seconds for each page. */
void reader_init(struct reader *reader, const char *pattern, size_t size,
		 double seconds);
/* As many pages at a time as this. */
void reader_takes(struct reader *reader, uint32_t reads, uint32_t step);
void reader_draw(struct reader *reader);
void reader_read(struct reader *reader);
/* The pages of its file on a node: those in @on_node, and their number. */
long reader_pages_on(struct reader *reader, int node);

/* bench/policy/scenes.c */
int scan(const char *memory);
int hot(size_t size, double seconds);
int beside(double seconds);

#endif /* BENCH_POLICY_READER_H */
