// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion when the top tier gives no memory: counted as such, nothing lost,
 * nothing left isolated, small folios go on when large ones find none, a node
 * is not asked for them all the time, and all goes on when memory is there
 * again. A task that gets no list does not ask for one all the time. Needs
 * CONFIG_FAIL_PAGE_ALLOC, CONFIG_FAILSLAB and CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "promote_test.h"
#include "promote_queue.h"

#define FAIL "/sys/kernel/debug/fail_page_alloc/"
#define FAILSLAB "/sys/kernel/debug/failslab/"
/* What the list of a task comes from: 8 KiB at most, for its memory cgroup */
#define LIST_CACHE "/sys/kernel/slab/kmalloc-cg-8k/failslab"
/* Longer than a node is left alone that has failed many times, 32 s */
#define SCARCE_MS 60000

/* Only for tasks that ask for it, and only if they do not sleep. */
static int prepare_failures(struct promote_saved *saved, const char *min_order)
{
	int err = promote_set(saved, FAIL "probability", "0");

	err = err ? err : promote_set(saved, FAIL "task-filter", "Y");
	err = err ? err : promote_set(saved, FAIL "ignore-gfp-wait", "Y");
	err = err ? err : promote_set(saved, FAIL "ignore-gfp-highmem", "N");
	err = err ? err : promote_set(saved, FAIL "min-order", min_order);
	err = err ? err : promote_set(saved, FAIL "verbose", "0");
	return err ? err : promote_set(saved, FAIL "times", "-1");
}

/* Until so many pages have moved, or it takes too long. */
static void read_until_moved(struct promote_file *file,
			     const struct promote_counts *before, long nr)
{
	long start = promote_now_ms();

	while (promote_since(before, PROMOTE_SUCCESS) < nr &&
	       promote_now_ms() - start < SCARCE_MS)
		promote_file_passes(file, 2);
}

/* The memory is there again, but the node may be left alone for a while. */
#define EXPECT_MOVES_IN_TIME()						\
do {									\
	ASSERT_EQ(0, promote_write(FAIL "probability", "0"));		\
	read_until_moved(&self->t.file, &self->t.before,		\
			 self->t.file.nr);				\
	EXPECT_MOVES_NOW();						\
	EXPECT_EQ(0, promote_file_check(&self->t.file));		\
} while (0)

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
	ASSERT_EQ(0, prepare_failures(&self->t.saved, "0"));
	ASSERT_EQ(0, promote_file_make(&self->t.file, promote_test_bytes() / 8,
				       self->t.lower, variant->large));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(no_memory)
{
	promote_test_end(&self->t);
}

#define LUCK_ROUNDS 30

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
	EXPECT_MOVES_IN_TIME();
}

TEST_F_TIMEOUT(no_memory, sometimes, PROMOTE_TIMEOUT)
{
	int i;

	ASSERT_EQ(0, promote_set(&self->t.saved, FAIL "probability", "30"));
	ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->t.file));
	/* A large folio that fails ends it for a second, and there are few. */
	for (i = 0; i < LUCK_ROUNDS && !(SINCE(SUCCESS) && SINCE(FAIL_NOMEM));
	     i++) {
		ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower,
						variant->large));
		ASSERT_EQ(0, promote_in_child(unlucky_reader, &self->t.file));
	}
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_LT(0, SINCE(FAIL_NOMEM));
	EXPECT_MOVES_IN_TIME();
}

/* Folios that wait on a list while the memory goes. */
FIXTURE(scarce)
{
	struct promote_test t;
	struct promote_queue queue;
};

FIXTURE_SETUP(scarce)
{
	PROMOTE_TEST_START(NULL);
	if (access(FAIL "probability", W_OK))
		SKIP(return, "no CONFIG_FAIL_PAGE_ALLOC in this kernel");
	ASSERT_EQ(0, prepare_failures(&self->t.saved, "1"));
	ASSERT_EQ(0, promote_queue_start(&self->queue, self->t.lower));
}

FIXTURE_TEARDOWN(scarce)
{
	promote_queue_end(&self->queue);
	promote_test_end(&self->t);
}

/*
 * Write a file anew: what is written at once becomes one large folio, or a few
 * if its size is not a power of two.
 */
static int rewrite(struct promote_file *file, size_t first, size_t next)
{
	char *data = malloc(file->size);
	size_t done, len;
	int err = 0;

	if (!data || pread(file->fd, data, file->size, 0) < 0 ||
	    promote_file_drop(file))
		err = -EIO;
	for (done = 0; done < file->size && !err; done += len) {
		len = done ? next : first;
		if (pwrite(file->fd, data + done, len, done) != (ssize_t)len)
			err = -EIO;
	}
	free(data);
	return err ? err : fsync(file->fd);
}

static int make_file(struct promote_test *t, int nr_first, int nr_next, int nr)
{
	int err = promote_file_create(&t->file, nr * t->page);

	return err ? err : rewrite(&t->file, nr_first * t->page,
				   nr_next * t->page);
}

#define RECORD()							\
do {									\
	ASSERT_EQ(0, promote_queue_record(&self->queue, &self->t.file,	\
					  &self->t.before));		\
	ASSERT_EQ(0, promote_trace_start(&self->t.saved));		\
} while (0)

static int start_failing(void)
{
	int err = promote_write("/proc/self/make-it-fail", "1");

	return err ? err : promote_write(FAIL "probability", "100");
}

TEST_F_TIMEOUT(scarce, counts_each_folio, PROMOTE_TIMEOUT)
{
	long nr = PROMOTE_QUEUE_PAGES;

	ASSERT_EQ(0, promote_write(FAIL "min-order", "0"));
	ASSERT_EQ(0, make_file(&self->t, 1, 1, nr));
	RECORD();
	ASSERT_EQ(nr, self->queue.nr_folios);
	ASSERT_EQ(0, start_failing());
	ASSERT_EQ(0, promote_queue_drain(&self->queue));
	EXPECT_ALL_REFUSED_AS(NOMEM, nr + self->queue.rung);
	/* They were accepted, and stopped by nothing but the lack of memory. */
	EXPECT_EQ(nr + self->queue.rung, SINCE(HINT));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_EQ(1, promote_trace_count("promote_migrate",
					 "nr_moved=0 refusal=nomem\n"));
	EXPECT_EQ(1, promote_trace_count("promote_migrate", ""));
	EXPECT_MOVES_IN_TIME();
}

/* Folios of 8 and 4 pages come first, and find no memory. */
TEST_F_TIMEOUT(scarce, small_folios_move, PROMOTE_TIMEOUT)
{
	long small = PROMOTE_QUEUE_PAGES;

	ASSERT_EQ(0, make_file(&self->t, 12, 1, 12 + small));
	RECORD();
	ASSERT_EQ(2 + small, self->queue.nr_folios);
	ASSERT_EQ(0, start_failing());
	ASSERT_EQ(0, promote_queue_drain(&self->queue));
	EXPECT_ALL_REFUSED_AS(NOMEM, 2);
	EXPECT_EQ(small + self->queue.rung, SINCE(SUCCESS));
	EXPECT_EQ(1, promote_trace_count("promote_migrate",
					 "order=3 nr_pages=8 nr_moved=0 refusal=nomem\n"));
	EXPECT_EQ(1, promote_trace_count("promote_migrate",
					 "order=2 nr_pages=4 nr_moved=0 refusal=nomem\n"));
	EXPECT_MOVES_IN_TIME();
}

#define FOLIO_PAGES 4
#define NR_FOLIOS 10
#define STAGGER_MS 5000

/*
 * Each folio is found hot at another time. Reading a page many times over is
 * one access, and earns the time for a drain.
 */
static int staggered_reader(void *arg)
{
	long start = promote_now_ms(), page = sysconf(_SC_PAGESIZE);
	struct promote_file *file = arg;
	char buf[1 << 16];
	int i, j;

	if (start_failing())
		return 1;
	for (i = 0; promote_now_ms() - start < STAGGER_MS; i++) {
		for (j = 0; j < 50; j++) {
			if (pread(file->fd, buf, page, i % NR_FOLIOS *
				  FOLIO_PAGES * page) != page)
				return 2;
		}
		usleep(PROMOTE_GAP_US);
	}
	return 0;
}

/* After 0, 1, 3, 7, 15 seconds, when each failure doubles the time. */
static int attempts_within(long ms)
{
	int attempts = 1;

	for (; ms >= 1000; ms = (ms - 1000) / 2)
		attempts++;
	return attempts;
}

TEST_F_TIMEOUT(scarce, large_folios_back_off, PROMOTE_TIMEOUT)
{
	long start, attempts;

	ASSERT_EQ(0, make_file(&self->t, FOLIO_PAGES, FOLIO_PAGES,
			       NR_FOLIOS * FOLIO_PAGES));
	RECORD();
	ASSERT_EQ(NR_FOLIOS, self->queue.nr_folios);
	/* Let them go, for the node to start with a good name, and back. */
	ASSERT_EQ(0, promote_queue_drain(&self->queue));
	ASSERT_EQ(0, promote_file_move(&self->t.file, self->t.lower));
	ASSERT_EQ(0, promote_enable(&self->t.saved, false));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));

	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_trace_start(&self->t.saved));
	start = promote_now_ms();
	ASSERT_EQ(0, promote_in_child(staggered_reader, &self->t.file));
	attempts = promote_trace_count("promote_migrate",
				       "nr_moved=0 refusal=nomem\n");
	EXPECT_EQ(attempts, promote_trace_count("promote_migrate", ""));
	EXPECT_LE(2, attempts);
	EXPECT_GE(attempts_within(promote_now_ms() - start), attempts);
	/* All of them were refused, and not all were part of an attempt. */
	EXPECT_REFUSED_ONLY_AS(NOMEM);
	EXPECT_LE(NR_FOLIOS, SINCE(FAIL_NOMEM));
	EXPECT_GT(SINCE(FAIL_NOMEM), SINCE(HINT));
	EXPECT_MOVES_IN_TIME();
}

/* A reader that cannot have a list, for which it asks once a second. */
FIXTURE(no_list)
{
	struct promote_test t;
};

#define MAX_FAILURES 100000
#define NO_LIST_MS 3500

/* Only that cache, and only for tasks that ask for it. */
static int prepare_slab_failures(struct promote_saved *saved)
{
	static const char * const names[][2] = {
		{ "probability", "0" },
		{ "interval", "1" },
		{ "space", "0" },
		{ "verbose", "0" },
		{ "task-filter", "Y" },
		{ "cache-filter", "Y" },
		{ "ignore-gfp-wait", "N" },
	};
	char path[128];
	size_t i;
	int err = promote_set(saved, LIST_CACHE, "1");

	for (i = 0; i < ARRAY_SIZE(names) && !err; i++) {
		snprintf(path, sizeof(path), FAILSLAB "%s", names[i][0]);
		err = promote_set(saved, path, names[i][1]);
	}
	err = err ? err : promote_set(saved, FAILSLAB "times", "-1");
	return err ? err : promote_write_number(FAILSLAB "times", MAX_FAILURES);
}

/* The number of failures that are left counts them. */
static long nr_failures(void)
{
	char left[16];

	if (promote_read(FAILSLAB "times", left, sizeof(left)) <= 0)
		return -1;
	return MAX_FAILURES - strtol(left, NULL, 10);
}

FIXTURE_SETUP(no_list)
{
	PROMOTE_TEST_START(NULL);
	if (access(FAILSLAB "cache-filter", W_OK) || access(LIST_CACHE, W_OK))
		SKIP(return, "no CONFIG_FAILSLAB or CONFIG_SLUB_DEBUG");
	ASSERT_EQ(0, prepare_slab_failures(&self->t.saved));
	ASSERT_EQ(0, promote_test_make_hot(&self->t, 2UL << 20));
}

FIXTURE_TEARDOWN(no_list)
{
	promote_test_end(&self->t);
}

struct listless {
	struct promote_test *t;
	long ms, nr_failures, nr_queued;
};

/* The counts are for the parent to look at, so they are in shared memory. */
static int listless_reader(void *arg)
{
	struct listless *reader = arg;
	struct promote_test *t = reader->t;
	long start;

	if (promote_write("/proc/self/make-it-fail", "1") ||
	    promote_write(FAILSLAB "probability", "100"))
		return 1;
	start = promote_now_ms();
	do {
		if (promote_file_passes(&t->file, 1))
			return 2;
		reader->ms = promote_now_ms() - start;
	} while (reader->ms < NO_LIST_MS);
	if (promote_write(FAILSLAB "probability", "0"))
		return 3;
	reader->nr_failures = nr_failures();
	reader->nr_queued = promote_since(&t->before, PROMOTE_QUEUED);
	return promote_file_read_until_moved(&t->file, &t->before) ? 4 : 0;
}

TEST_F_TIMEOUT(no_list, is_asked_for_once_a_second, PROMOTE_TIMEOUT)
{
	struct listless *reader;

	reader = promote_shared(sizeof(*reader));
	ASSERT_NE(NULL, reader);
	reader->t = &self->t;
	ASSERT_EQ(0, promote_in_child(listless_reader, reader));
	printf("# %ld failures in %ld ms\n", reader->nr_failures, reader->ms);
	EXPECT_LE(2, reader->nr_failures);
	EXPECT_GE(1 + reader->ms / 1000, reader->nr_failures);
	EXPECT_EQ(0, reader->nr_queued);
	/* Once it can have a list it gets one, and goes on. */
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
}

TEST_HARNESS_MAIN
