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

#include "promote_test.h"

FIXTURE(hot_file)
{
	struct promote_test t;
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
	PROMOTE_TEST_START(variant->lru_gen);
}

FIXTURE_TEARDOWN(hot_file)
{
	promote_test_end(&self->t);
}

/* The negative tests need no large file. */
#define SMALL (promote_test_bytes() / 8)

TEST_F_TIMEOUT(hot_file, is_promoted_whole, PROMOTE_TIMEOUT)
{
	struct promote_where where;

	ASSERT_EQ(0, promote_file_make(&self->t.file, promote_test_bytes(),
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_read_until_moved(&self->t.file,
						   &self->t.before));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_LE(self->t.file.nr - self->t.file.nr / 1000, SINCE(SUCCESS));
	EXPECT_LE(self->t.file.nr - self->t.file.nr / 1000, SINCE(MIGRATED));
	EXPECT_LT(0, SINCE(HINT));
	/* The reader is not on the node without CPUs. */
	EXPECT_EQ(0, SINCE(HINT_LOCAL));

	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_EQ(0, where.absent);
	/* It was and is what the variant says. */
	EXPECT_EQ(variant->large, where.tails > self->t.file.nr / 2)
		TH_LOG("%ld pages are inside large folios", where.tails);
}

TEST_F_TIMEOUT(hot_file, stays_when_off, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(hot_file, stays_without_memory_tiering, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_DONE();
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "1"));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(hot_file, stays_after_one_pass, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 1));
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
}

/*
 * The LRU already takes the file for hot when promotion is switched on: the
 * first access that is seen has no earlier one to be compared with.
 */
TEST_F_TIMEOUT(hot_file, stays_after_the_first_pass_seen, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 1));
	EXPECT_NOTHING_DONE();
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 4));
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_MOVES_NOW();
}

/* The other order of the two settings; promote_enable() sets the switch last. */
TEST_F_TIMEOUT(hot_file, moves_when_the_sysctl_is_set_last, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "2"));
	ASSERT_EQ(0, promote_file_read_until_moved(&self->t.file,
						   &self->t.before));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

/* A file in the top tier from the start is nobody's business. */
TEST_F_TIMEOUT(hot_file, is_left_alone_in_the_top_tier, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, SMALL, self->t.top,
				       variant->large));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

TEST_HARNESS_MAIN
