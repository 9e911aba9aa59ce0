/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What reading costs, and where its pages are. Under -icount a nanosecond of a
 * CPU is an instruction, so the time that tasks have run counts instructions.
 */
#ifndef BENCH_POLICY_METER_H
#define BENCH_POLICY_METER_H

#include <stdbool.h>

#include "promote_util.h"

struct meter {
	long long self;		/* ns that this process has run */
	long long others;	/* ns that all others have run: reclaim, workers */
	long long wall;
	long promoted;
	long demoted;
};

/* What has been spent since some time on. */
void meter_read(struct meter *meter);
/* What has been spent since @before was read. */
void meter_since(struct meter *meter, const struct meter *before);

/* What the kernel says of a node, in debugfs promote/nodes. */
struct budget {
	long headroom;		/* pages */
	long credit;		/* us */
	long earned;		/* us, sum */
	long spent;		/* us, sum */
	char line[256];		/* all of it */
};

/* A kernel that has no budget shows headroom only. */
void budget_read(struct budget *budget, int node);

/* Pages of a node that are free above the high watermarks of its zones. */
long pages_above_high(int node);

/*
 * Which pages of a file are on a node? They are mapped for it, by faults that
 * map 512 at a time, and in a way that does not count as an access when the
 * mapping ends. Pages that are not cached are read in.
 */
int pages_on_node(const struct promote_file *file, int node, bool *on_node,
		  long *nr);

#endif /* BENCH_POLICY_METER_H */
