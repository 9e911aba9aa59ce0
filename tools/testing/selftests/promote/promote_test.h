/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the fixtures of the promotion tests have in common: one file, the
 * counters before, the settings to restore, and what is asked of them again and
 * again. A fixture has a member "struct promote_test t".
 */
#ifndef __PROMOTE_TEST_H
#define __PROMOTE_TEST_H

#include <stdlib.h>

#include "kselftest_harness.h"
#include "promote_util.h"

struct promote_test {
	struct promote_saved saved;
	struct promote_file file;
	struct promote_counts before;
	char cgroup[PATH_MAX];
	char tmpfs[32];
	int top, lower;
	long page;
};

/* Does this kernel have the LRU that is asked for: "n" classic, "y" MGLRU? */
static inline const char *promote_no_lru(const char *lru_gen)
{
	if (lru_gen && access(PROMOTE_LRU_GEN, W_OK))
		return "no CONFIG_LRU_GEN in this kernel";
	return NULL;
}

/* Tiering on, promotion off, and slow machines, as emulated ones, are fine. */
static inline int promote_test_start(struct promote_test *t, const char *lru_gen)
{
	int err = 0;

	if (!lru_gen)
		lru_gen = getenv("PROMOTE_LRU_GEN");
	if (lru_gen)
		err = promote_set(&t->saved, PROMOTE_LRU_GEN, lru_gen);
	err = err ? err : promote_enable(&t->saved, false);
	err = err ? err : promote_set(&t->saved, PROMOTE_THRESHOLD, "60000");
	t->top = promote_top_node();
	t->lower = promote_lower_node();
	t->page = sysconf(_SC_PAGESIZE);
	return err;
}

static inline void promote_test_end(struct promote_test *t)
{
	promote_file_remove(&t->file);
	if (t->cgroup[0])
		promote_cgroup_remove(t->cgroup);
	promote_restore(&t->saved);
	if (t->tmpfs[0])
		promote_tmpfs_end(t->tmpfs);
}

/* A file that is hot for the LRU, and the first access seen is behind it. */
static inline int promote_test_make_hot(struct promote_test *t, size_t size)
{
	int err = promote_file_make(&t->file, size, t->lower, false);

	err = err ? err : promote_file_passes(&t->file, PROMOTE_WARM_PASSES);
	err = err ? err : promote_enable(&t->saved, true);
	/* This only notes the time: from now on all is hot. */
	err = err ? err : promote_file_passes(&t->file, 1);
	promote_count(&t->before);
	return err;
}

/*
 * In FIXTURE_SETUP(); lru_gen as above, or NULL for what $PROMOTE_LRU_GEN says,
 * or else for the one that is on.
 */
#define PROMOTE_TEST_START(lru_gen)					\
do {									\
	const char *why = promote_no_tiers();				\
									\
	why = why ? why : promote_no_lru(lru_gen);			\
	if (why)							\
		SKIP(return, "%s", why);				\
	ASSERT_EQ(0, promote_test_start(&self->t, lru_gen));		\
} while (0)

/* Both LRUs as variants of a fixture. */
#define PROMOTE_LRU_VARIANTS(fixture)					\
FIXTURE_VARIANT(fixture) { const char *lru_gen; };			\
FIXTURE_VARIANT_ADD(fixture, classic) { .lru_gen = "n" };		\
FIXTURE_VARIANT_ADD(fixture, mglru) { .lru_gen = "y" }

#define SINCE(counter) promote_since(&self->t.before, PROMOTE_##counter)

#define EXPECT_NOTHING_MOVED()						\
do {									\
	EXPECT_EQ(0, SINCE(SUCCESS));					\
	EXPECT_EQ(0, SINCE(MIGRATED));					\
	EXPECT_EQ(0, SINCE(HINT));					\
} while (0)

/* Nothing was recorded, either. */
#define EXPECT_NOTHING_DONE()						\
do {									\
	EXPECT_EQ(0, promote_activity_since(&self->t.before));		\
	EXPECT_NOTHING_MOVED();						\
} while (0)

/* There were refusals, and all of them were for this reason. */
#define EXPECT_REFUSED_ONLY_AS(reason)					\
do {									\
	EXPECT_LT(0, SINCE(FAIL_##reason));				\
	EXPECT_EQ(SINCE(FAIL_##reason),					\
		  promote_refused_since(&self->t.before));		\
} while (0)

/*
 * What was refused before is left alone for a second, and so is what a batch of
 * another CPU holds when its turn comes: flush those, and try more than once.
 */
static inline bool promote_test_moves_by(struct promote_test *t,
					 int (*passes)(void *arg), void *arg)
{
	int tries;

	for (tries = 0; tries < 10; tries++) {
		usleep(PROMOTE_BACKOFF_US);
		promote_flush_lru();
		if (passes(arg))
			return false;
		if (promote_file_is_on(&t->file, t->top))
			return true;
	}
	return false;
}

/* The usual way of an access. */
static inline int promote_test_passes(void *file)
{
	return promote_file_passes(file, PROMOTE_PASSES);
}

static inline bool promote_test_moves(struct promote_test *t)
{
	return promote_test_moves_by(t, promote_test_passes, &t->file);
}

/* The control: with all settings right the same file is promoted. */
#define EXPECT_MOVES_NOW()						\
do {									\
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));		\
	EXPECT_TRUE(promote_test_moves(&self->t));			\
} while (0)

#endif /* __PROMOTE_TEST_H */
