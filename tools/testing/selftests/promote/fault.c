// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion when the top tier gives no memory: counted as such, nothing lost,
 * nothing left isolated, and it goes on when memory is there again. Needs
 * CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#include <unistd.h>

#include "promote_test.h"

#define FAIL "/sys/kernel/debug/fail_page_alloc/"

FIXTURE(no_memory)
{
	struct promote_test t;
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
	PROMOTE_TEST_START(NULL);
	if (access(FAIL "probability", W_OK))
		SKIP(return, "no CONFIG_FAIL_PAGE_ALLOC in this kernel");
	/* Only for tasks that ask for it, and only if they do not sleep. */
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "task-filter", "Y"));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "ignore-gfp-wait", "Y"));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "ignore-gfp-highmem", "N"));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "min-order", "0"));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "verbose", "0"));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "times", "-1"));
	ASSERT_EQ(0, promote_file_make(&self->t.file, promote_test_bytes() / 8,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(no_memory)
{
	promote_test_end(&self->t);
}

static int unlucky_reader(void *arg)
{
	if (promote_write("/proc/self/make-it-fail", "1"))
		return 1;
	return promote_file_passes(arg, PROMOTE_PASSES) ? 2 : 0;
}

TEST_F_TIMEOUT(no_memory, always, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "probability", "100"));
	ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->t.file));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_LT(0, SINCE(FAIL_NOMEM));
	ASSERT_EQ(0, promote_write(FAIL "probability", "0"));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_F_TIMEOUT(no_memory, sometimes, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "probability", "30"));
	ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->t.file));
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_LT(0, SINCE(FAIL_NOMEM));
	ASSERT_EQ(0, promote_write(FAIL "probability", "0"));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	EXPECT_GE(self->t.file.nr, SINCE(SUCCESS));
}

TEST_HARNESS_MAIN
