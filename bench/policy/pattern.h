/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In what order the pages of a file are read, and how much of the reading falls
 * on those that are in DRAM.
 */
#ifndef BENCH_POLICY_PATTERN_H
#define BENCH_POLICY_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A page is drawn by its rank. Ranks and tables of the weighted ones are as long
 * as the file has pages; uniform and linear have none.
 */
struct pattern {
	uint32_t nr;
	bool linear;
	uint32_t next;		/* page of a linear one */
	uint64_t state;		/* of the random numbers */
	double *weight;		/* of a rank, sum 1; NULL: all alike */
	uint32_t *page;		/* of a rank */
	uint32_t *keep;		/* alias table: in units of 2^-32 ... */
	uint32_t *other;	/* ... this rank, or else that */
};

/* uniform, linear, zipf or normal; -EINVAL if it is none of them. */
int pattern_init(struct pattern *pattern, const char *name, uint32_t nr);
/* Give the ranks to other pages. */
void pattern_shuffle(struct pattern *pattern);
/* The next pages to be read. */
void pattern_draw(struct pattern *pattern, uint32_t *pages, uint32_t nr);
/* The share of reads that goes to these pages. */
double pattern_share(const struct pattern *pattern, const bool *pages);
/* The share that goes to as many of the best pages. */
double pattern_best_share(const struct pattern *pattern, uint32_t nr);

#endif /* BENCH_POLICY_PATTERN_H */
