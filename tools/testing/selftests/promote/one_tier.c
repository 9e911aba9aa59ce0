// SPDX-License-Identifier: GPL-2.0
/*
 * On a machine with one memory tier the feature does nothing, whatever the
 * switch says; nodes without CPUs in the same tier change nothing about that.
 */
#include <stdio.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "promote_util.h"

FIXTURE(one_tier)
{
	struct promote_saved saved;
	struct promote_file file;
	struct promote_counts before;
	int node;
};

FIXTURE_VARIANT(one_tier)
{
	const char *lru_gen;
};

FIXTURE_VARIANT_ADD(one_tier, classic)
{
	.lru_gen = "n",
};

FIXTURE_VARIANT_ADD(one_tier, mglru)
{
	.lru_gen = "y",
};

/* The last node with memory: the one furthest from the CPUs, if any. */
static int last_node(void)
{
	char text[256], *number;

	if (promote_read("/sys/devices/system/node/has_memory", text,
			 sizeof(text)) <= 0)
		return 0;
	number = text + strlen(text);
	while (number > text && number[-1] >= '0' && number[-1] <= '9')
		number--;
	return atoi(number);
}

FIXTURE_SETUP(one_tier)
{
	const char *why = promote_no_feature();

	if (why)
		SKIP(return, "%s", why);
	if (promote_lower_node() >= 0)
		SKIP(return, "more than one memory tier");
	if (promote_set(&self->saved, PROMOTE_LRU_GEN, variant->lru_gen))
		SKIP(return, "no CONFIG_LRU_GEN in this kernel");
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_set(&self->saved, PROMOTE_THRESHOLD, "60000"));
	self->node = last_node();
}

FIXTURE_TEARDOWN(one_tier)
{
	promote_file_remove(&self->file);
	promote_restore(&self->saved);
}

TEST_F_TIMEOUT(one_tier, says_inactive, PROMOTE_TIMEOUT)
{
	char text[256] = "";

	ASSERT_LT(0, promote_read(PROMOTE_STATE, text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, "inactive: ", strlen("inactive: ")))
		TH_LOG("state is '%s'", text);
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "2"));
	ASSERT_LT(0, promote_read(PROMOTE_STATE, text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, "inactive: ", strlen("inactive: ")));
}

TEST_F_TIMEOUT(one_tier, moves_nothing, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->file, promote_test_bytes() / 8,
				       self->node, false));
	promote_count(&self->before);
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_EQ(0, promote_activity_since(&self->before));
	EXPECT_EQ(0, promote_since(&self->before, PROMOTE_SUCCESS));
	EXPECT_TRUE(promote_file_is_on(&self->file, self->node));
}

TEST_HARNESS_MAIN
