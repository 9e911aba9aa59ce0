// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion when the top tier gives no memory: counted as such, nothing lost,
 * nothing left isolated, and it goes on when memory is there again. Needs
 * CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#include <unistd.h>

#include "kselftest_harness.h"
#include "promote_util.h"

#define FAIL "/sys/kernel/debug/fail_page_alloc/"

FIXTURE(no_memory)
{
	struct promote_saved saved;
	struct promote_file file;
	struct promote_counts before;
	int top, lower;
};

FIXTURE_VARIANT(no_memory)
{
	bool large;
};

FIXTURE_VARIANT_ADD(no_memory, order0)
{
	.large = false,
};

FIXTURE_VARIANT_ADD(no_memory, large)
{
	.large = true,
};

FIXTURE_SETUP(no_memory)
{
	const char *why = promote_no_tiers();

	if (why)
		SKIP(return, "%s", why);
	if (access(FAIL "probability", W_OK))
		SKIP(return, "no CONFIG_FAIL_PAGE_ALLOC in this kernel");
	ASSERT_EQ(0, promote_enable(&self->saved, true));
	ASSERT_EQ(0, promote_set(&self->saved, PROMOTE_THRESHOLD, "60000"));
	/* Only for tasks that ask for it, and only if they do not sleep. */
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "task-filter", "Y"));
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "ignore-gfp-wait", "Y"));
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "ignore-gfp-highmem", "N"));
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "min-order", "0"));
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "verbose", "0"));
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "times", "-1"));
	self->top = promote_top_node();
	self->lower = promote_lower_node();
	ASSERT_EQ(0, promote_file_make(&self->file, promote_test_bytes() / 8,
				       self->lower, variant->large));
	promote_count(&self->before);
}

FIXTURE_TEARDOWN(no_memory)
{
	promote_file_remove(&self->file);
	promote_restore(&self->saved);
}

static int unlucky_reader(void *arg)
{
	if (promote_write("/proc/self/make-it-fail", "1"))
		return 1;
	return promote_file_passes(arg, PROMOTE_PASSES) ? 2 : 0;
}

#define SINCE(counter) promote_since(&self->before, PROMOTE_##counter)

TEST_F_TIMEOUT(no_memory, always, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "probability", "100"));
	ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->file));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_LT(0, SINCE(FAIL_NOMEM));
	ASSERT_EQ(0, promote_write(FAIL "probability", "0"));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_EQ(0, promote_file_check(&self->file));
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));
}

TEST_F_TIMEOUT(no_memory, sometimes, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_set(&self->saved, FAIL "probability", "30"));
	ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->file));
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_LT(0, SINCE(FAIL_NOMEM));
	ASSERT_EQ(0, promote_write(FAIL "probability", "0"));
	ASSERT_EQ(0, promote_file_passes(&self->file, PROMOTE_PASSES));
	EXPECT_EQ(0, promote_file_check(&self->file));
	EXPECT_TRUE(promote_file_is_on(&self->file, self->top));
	EXPECT_GE(self->file.nr, SINCE(SUCCESS));
}

TEST_HARNESS_MAIN
