// SPDX-License-Identifier: GPL-2.0
/*
 * What page cache promotion is for: a file that is read again and again, not
 * mapped, and in a lower tier ends up in the top tier, whole, with its content;
 * and nothing moves when it must not. On both LRUs, with order-0 and with large
 * folios. Every "must not" is followed by a control that does move the file, so
 * that a file which cannot move at all is not taken for success.
 */
#include <errno.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "promote_util.h"

FIXTURE(hot_file)
{
	struct promote_saved saved;
	struct promote_file file;
	struct promote_counts before;
	int top, lower;
};

FIXTURE_VARIANT(hot_file)
{
	const char *lru_gen;
	bool large;
};

FIXTURE_VARIANT_ADD(hot_file, classic_order0)
{
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(hot_file, classic_large)
{
	.lru_gen = "n",
	.large = true,
};

FIXTURE_VARIANT_ADD(hot_file, mglru_order0)
{
	.lru_gen = "y",
};

FIXTURE_VARIANT_ADD(hot_file, mglru_large)
{
	.lru_gen = "y",
	.large = true,
};

FIXTURE_SETUP(hot_file)
{
	const char *why = promote_no_tiers();

	if (why)
		SKIP(return, "%s", why);
	if (promote_set(&self->saved, PROMOTE_LRU_GEN, variant->lru_gen))
		SKIP(return, "no CONFIG_LRU_GEN in this kernel");
	ASSERT_EQ(0, promote_enable(&self->saved, false));
	/* Slow machines, as under emulation, need long to read a file. */
	ASSERT_EQ(0, promote_set(&self->saved, PROMOTE_THRESHOLD, "60000"));
	self->top = promote_top_node();
	self->lower = promote_lower_node();
}

FIXTURE_TEARDOWN(hot_file)
{
	promote_file_remove(&self->file);
	promote_restore(&self->saved);
}

/* The negative tests need no large file. */
#define SMALL (promote_test_bytes() / 8)

#define SINCE(counter) promote_since(&self->before, PROMOTE_##counter)

#define EXPECT_NOTHING_MOVED()						\
do {									\
	EXPECT_EQ(0, promote_activity_since(&self->before));		\
	EXPECT_EQ(0, SINCE(SUCCESS));					\
} while (0)

/* The control: with all settings right the same file is promoted. */
#define EXPECT_MOVES_NOW()						\
do {									\
	ASSERT_EQ(0, promote_enable(&self->saved, true));		\
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));	\
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));	\
} while (0)

TEST_F_TIMEOUT(hot_file, is_promoted_whole, PROMOTE_TIMEOUT)
{
	struct promote_where where;

	ASSERT_EQ(0, promote_file_make(&self->file, promote_test_bytes(),
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_EQ(0, promote_file_check(&self->file));
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));
	EXPECT_LE(self->file.nr - self->file.nr / 1000, SINCE(SUCCESS));
	EXPECT_LE(self->file.nr - self->file.nr / 1000, SINCE(MIGRATED));
	EXPECT_LT(0, SINCE(HINT));
	/* The reader is not on the node without CPUs. */
	EXPECT_EQ(0, SINCE(HINT_LOCAL));

	ASSERT_EQ(0, promote_file_where(&self->file, &where));
	EXPECT_EQ(0, where.absent);
	/* It was and is what the variant says. */
	EXPECT_EQ(variant->large, where.tails > self->file.nr / 2)
		TH_LOG("%ld pages are inside large folios", where.tails);
}

TEST_F_TIMEOUT(hot_file, stays_when_off, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL,
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->file, self->lower));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(hot_file, stays_without_memory_tiering, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL,
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "1"));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->file, self->lower));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(hot_file, stays_after_one_pass, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL,
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->file, 1));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->file, self->lower));
}

/*
 * The LRU already takes the file for hot when promotion is switched on: the
 * first access that is seen has no earlier one to be compared with.
 */
TEST_F_TIMEOUT(hot_file, stays_after_the_first_pass_seen, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL,
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->file, 1));
	EXPECT_NOTHING_MOVED();
	ASSERT_EQ(0, promote_file_passes(&self->file, 4));
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_MOVES_NOW();
}

/* The other order of the two settings; promote_enable() sets the switch last. */
TEST_F_TIMEOUT(hot_file, moves_when_the_sysctl_is_set_last, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL,
				       self->lower, variant->large));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "2"));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));
}

/* A file in the top tier from the start is nobody's business. */
TEST_F_TIMEOUT(hot_file, is_left_alone_in_the_top_tier, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, SMALL, self->top,
				       variant->large));
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));
}

TEST_HARNESS_MAIN
