// SPDX-License-Identifier: GPL-2.0
/*
 * A task with folios on its list clones itself, and the clone fails wherever
 * it can fail. The new task has copied the pointer to the list and must not
 * free it. Needs CONFIG_FAILSLAB, CONFIG_FAIL_PAGE_ALLOC and
 * CONFIG_FAULT_INJECTION_DEBUG_FS; KASAN and kmemleak judge.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "promote_test.h"

#define FAILSLAB "/sys/kernel/debug/failslab/"
#define FAIL_PAGE "/sys/kernel/debug/fail_page_alloc/"
#define FAIL_COPY "/sys/kernel/debug/fail_usercopy/"
#define FAIL_NTH "/proc/thread-self/fail-nth"

#define FILE_BYTES (8UL << 20)
#define STACK_BYTES (256UL << 10)
/* Allocations of a clone, by far. */
#define MAX_NTH 2000
/* Few enough to wait on the list for those that follow. */
#define STEP_PAGES 4

FIXTURE(clone)
{
	struct promote_test t;
	char *stack;
	long next;
};

FIXTURE_VARIANT(clone)
{
	int flags;
};

FIXTURE_VARIANT_ADD(clone, fork)
{
	.flags = SIGCHLD,
};

FIXTURE_VARIANT_ADD(clone, vfork)
{
	.flags = CLONE_VM | CLONE_VFORK | SIGCHLD,
};

FIXTURE_VARIANT_ADD(clone, shares_all)
{
	.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
		 CLONE_SYSVSEM | CLONE_IO | SIGCHLD,
};

/* Let the allocations fail that sleep, too, and do not tell. */
static int arm(struct promote_saved *saved, const char *dir)
{
	static const char * const names[][2] = {
		{ "probability", "0" },
		{ "times", "-1" },
		{ "verbose", "0" },
		{ "ignore-gfp-wait", "N" },
	};
	char path[128];
	size_t i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(names) && !err; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i][0]);
		err = promote_set(saved, path, names[i][1]);
	}
	return err;
}

FIXTURE_SETUP(clone)
{
	PROMOTE_TEST_START(NULL);
	if (access(FAILSLAB "probability", W_OK) ||
	    access(FAIL_PAGE "probability", W_OK))
		SKIP(return, "no CONFIG_FAILSLAB and CONFIG_FAIL_PAGE_ALLOC");
	ASSERT_EQ(0, arm(&self->t.saved, FAILSLAB));
	ASSERT_EQ(0, arm(&self->t.saved, FAIL_PAGE));
	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL_PAGE "min-order", "0"));
	/* fail-nth counts these failures as well, where the kernel has them. */
	if (!access(FAIL_COPY "verbose", W_OK))
		ASSERT_EQ(0, promote_set(&self->t.saved, FAIL_COPY "verbose",
					 "0"));
	self->stack = aligned_alloc(4096, STACK_BYTES);
	ASSERT_NE(NULL, self->stack);
	ASSERT_EQ(0, promote_test_make_hot(&self->t, FILE_BYTES));
}

FIXTURE_TEARDOWN(clone)
{
	promote_test_end(&self->t);
}

struct child {
	struct promote_file *file;
	long first;
};

static int child_reads(void *arg)
{
	struct child *child = arg;

	_exit(!!promote_file_read_pages(child->file, child->first,
					STEP_PAGES));
}

/* Clone with the nth allocation failing; did any fail? */
static bool clone_failing(int flags, char *stack, struct child *child, int nth,
			  pid_t *pid)
{
	char left[16];

	if (promote_write_number(FAIL_NTH, nth))
		return false;
	*pid = clone(child_reads, stack + STACK_BYTES, flags, child);
	if (promote_read(FAIL_NTH, left, sizeof(left)) <= 0)
		return false;
	promote_write(FAIL_NTH, "0");
	return !strcmp(left, "0");
}

TEST_F_TIMEOUT(clone, fails_anywhere, PROMOTE_TIMEOUT)
{
	struct child child = { .file = &self->t.file };
	int nth, status, nr_failed = 0;
	bool injected = true;
	long first = 0;
	pid_t pid = -1;

	for (nth = 1; nth < MAX_NTH && injected; nth++) {
		ASSERT_EQ(0, promote_file_read_pages(&self->t.file, first %
						     self->t.file.nr,
						     STEP_PAGES));
		child.first = (first + STEP_PAGES) % self->t.file.nr;
		first += 2 * STEP_PAGES;
		injected = clone_failing(variant->flags, self->stack, &child,
					 nth, &pid);
		if (pid < 0) {
			nr_failed++;
			continue;
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}
	/* The last one went through, many before it did not. */
	EXPECT_FALSE(injected);
	EXPECT_LT(0, pid);
	EXPECT_LE(3, nr_failed);
	EXPECT_LT(nth, SINCE(QUEUED));
	printf("# %d of %d clones failed\n", nr_failed, nth - 1);
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	EXPECT_GE(self->t.file.nr, SINCE(SUCCESS));
}

TEST_HARNESS_MAIN
