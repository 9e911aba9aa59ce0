/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folios that are recorded now and drained when a test says so, and what the
 * kernel says about those that it then refuses.
 *
 * A list is only looked at when its task finds a folio hot. So it can be held
 * for as long as it takes to do something to the folios on it, and let go by
 * reading a page of another file, the bell, that was prepared to be hot.
 */
#ifndef __PROMOTE_QUEUE_H
#define __PROMOTE_QUEUE_H

#include "promote_util.h"

/* Few enough to be recorded by one read and drained without a break. */
#define PROMOTE_QUEUE_PAGES 32

struct promote_queue {
	struct promote_file bell;
	struct promote_counts empty;	/* the counters with an empty list */
	int node;
	long next;		/* page of the bell to read */
	long rung;		/* pages read since the recording */
	long nr_folios;		/* on the list, those of the bell apart */
};

int promote_queue_start(struct promote_queue *q, int node);
int promote_queue_record(struct promote_queue *q, struct promote_file *file,
			 struct promote_counts *before);
int promote_queue_drain(struct promote_queue *q);
int promote_queue_drop_caches(struct promote_queue *q);
void promote_queue_end(struct promote_queue *q);

/* Accesses and writes that are not those of the caller. */
int promote_file_overwrite(struct promote_file *file);
int promote_file_to_pipe(struct promote_file *file, int pipes[2]);

/* Memory of files, by the numbers of their page frames. */
int promote_file_move(struct promote_file *file, int node);
int promote_file_pfns(struct promote_file *file, unsigned long *pfns);
int promote_map_pfns(void *start, long nr, unsigned long *pfns);
unsigned long long promote_page_flags(unsigned long pfn);
long promote_file_flagged(struct promote_file *file, int flag);

/* How often a tracepoint has fired with these fields since the start. */
int promote_trace_start(struct promote_saved *saved);
long promote_trace_count(const char *event, const char *fields);

/* So many folios were refused, each of them for this reason. */
#define EXPECT_ALL_REFUSED_AS(reason, nr)				\
do {									\
	EXPECT_REFUSED_ONLY_AS(reason);					\
	EXPECT_EQ(nr, SINCE(FAIL_##reason));				\
} while (0)

/* So many folios of one page were taken for promotion, and have moved. */
#define EXPECT_MOVED(nr)						\
do {									\
	EXPECT_EQ(nr, SINCE(SUCCESS));					\
	EXPECT_EQ(nr, SINCE(MIGRATED));					\
	EXPECT_EQ(nr, SINCE(HINT));					\
} while (0)

#endif /* __PROMOTE_QUEUE_H */
