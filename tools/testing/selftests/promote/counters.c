// SPDX-License-Identifier: GPL-2.0
/*
 * The counters of page cache promotion: they are there, they add up, and what
 * memory.stat says of all cgroups is what /proc/vmstat says of the machine.
 */
#include <stdio.h>
#include <unistd.h>

#include "promote_test.h"

#define FILE_BYTES (8UL << 20)
#define CGROUP_ROOT_STAT "/sys/fs/cgroup/memory.stat"

/* In /proc/vmstat and in memory.stat. */
static const enum promote_counter shared[] = {
	PROMOTE_HINT,
	PROMOTE_HINT_LOCAL,
	PROMOTE_MIGRATED,
	PROMOTE_SUCCESS,
};

FIXTURE(counters)
{
	struct promote_test t;
	char stat[PATH_MAX + 16];
};

FIXTURE_SETUP(counters)
{
	PROMOTE_TEST_START(NULL);
	if (!promote_cgroup("count", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	snprintf(self->stat, sizeof(self->stat), "%s/memory.stat",
		 self->t.cgroup);
}

FIXTURE_TEARDOWN(counters)
{
	promote_test_end(&self->t);
}

struct worker {
	struct promote_file *file;
	const char *cgroup;
	int lower;
	const struct promote_counts *before;
};

/* In the cgroup: put the file in the lower tier, read it until it has moved. */
static int work(void *arg)
{
	struct worker *worker = arg;

	if (promote_cgroup_enter(worker->cgroup))
		return 1;
	if (promote_file_place(worker->file, worker->lower, false))
		return 2;
	if (promote_file_read_until_moved(worker->file, worker->before))
		return 3;
	return 0;
}

#define PROMOTE_IN_CGROUP()						\
do {									\
	struct worker worker = {					\
		&self->t.file, self->t.cgroup, self->t.lower,		\
		&self->t.before,					\
	};								\
									\
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));	\
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));		\
	promote_count(&self->t.before);					\
	ASSERT_EQ(0, promote_in_child(work, &worker));			\
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "0"));		\
	ASSERT_LE(self->t.file.nr - self->t.file.nr / 1000,				\
		  promote_since(&self->t.before, PROMOTE_SUCCESS));	\
} while (0)

TEST_F_TIMEOUT(counters, are_there, PROMOTE_TIMEOUT)
{
	unsigned int i;

	for (i = 0; i < PROMOTE_NR_COUNTERS; i++) {
		EXPECT_LE(0, promote_vmstat(promote_counter_name(i)))
			TH_LOG("no %s in /proc/vmstat",
			       promote_counter_name(i));
	}
	for (i = 0; i < ARRAY_SIZE(shared); i++) {
		EXPECT_LE(0, promote_stat(self->stat,
					  promote_counter_name(shared[i])))
			TH_LOG("no %s in memory.stat",
			       promote_counter_name(shared[i]));
	}
}

TEST_F_TIMEOUT(counters, successes_were_candidates, PROMOTE_TIMEOUT)
{
	long success, candidates;

	PROMOTE_IN_CGROUP();
	success = promote_since(&self->t.before, PROMOTE_SUCCESS);
	candidates = promote_since(&self->t.before, PROMOTE_CANDIDATE) +
		     promote_since(&self->t.before, PROMOTE_CANDIDATE_NRL);
	EXPECT_LE(success, candidates);
	/* Since boot, too. */
	EXPECT_LE(promote_vmstat("pgpromote_success"),
		  promote_vmstat("pgpromote_candidate") +
		  promote_vmstat("pgpromote_candidate_nrl"));
}

/* Nothing is counted twice: order-0 folios, each promoted once. */
TEST_F_TIMEOUT(counters, each_folio_once, PROMOTE_TIMEOUT)
{
	PROMOTE_IN_CGROUP();
	EXPECT_GE(self->t.file.nr, promote_since(&self->t.before, PROMOTE_SUCCESS));
	EXPECT_EQ(promote_since(&self->t.before, PROMOTE_SUCCESS),
		  promote_since(&self->t.before, PROMOTE_MIGRATED));
	EXPECT_LE(promote_since(&self->t.before, PROMOTE_SUCCESS),
		  promote_since(&self->t.before, PROMOTE_HINT));
	EXPECT_LE(promote_since(&self->t.before, PROMOTE_DRAINED),
		  promote_since(&self->t.before, PROMOTE_QUEUED));
}

TEST_F_TIMEOUT(counters, add_up_over_cgroups, PROMOTE_TIMEOUT)
{
	long root[ARRAY_SIZE(shared)], since;
	const char *name;
	size_t i;

	/* Let the counts of earlier tests arrive. */
	sleep(5);
	for (i = 0; i < ARRAY_SIZE(shared); i++)
		root[i] = promote_stat(CGROUP_ROOT_STAT,
				       promote_counter_name(shared[i]));
	PROMOTE_IN_CGROUP();
	for (i = 0; i < ARRAY_SIZE(shared); i++) {
		name = promote_counter_name(shared[i]);
		since = promote_since(&self->t.before, shared[i]);
		EXPECT_TRUE(promote_stat_becomes(CGROUP_ROOT_STAT, name,
						 root[i] + since));
		EXPECT_TRUE(promote_stat_becomes(self->stat, name, since));
	}
}

TEST_HARNESS_MAIN
