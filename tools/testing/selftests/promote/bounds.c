// SPDX-License-Identifier: GPL-2.0
/*
 * What a reader pays at most: a drain moves no more than 2 MiB, however large
 * the read was and the folios are, and takes no longer than its reader ran; of
 * many readers of the same pages one pays for each. Who may not promote records
 * one list a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "promote_test.h"
#include "promote_events.h"

#define DRAIN_BYTES (2L << 20)
#define NR_READERS 64

/* All of the file with one system call, into the same memory again and again. */
static int read_at_once(struct promote_file *file)
{
	static char buf[512 << 10];
	struct iovec iov[1024];
	int i, nr = file->size / sizeof(buf);

	for (i = 0; i < nr; i++)
		iov[i] = (struct iovec) { buf, sizeof(buf) };
	return preadv(file->fd, iov, nr, 0) == (ssize_t)file->size ? 0 : -EIO;
}

/* Hot for the LRU, and the first access that promotion sees is behind it. */
static int warm_up(struct promote_test *t)
{
	int i, err = 0;

	for (i = 0; i < PROMOTE_WARM_PASSES && !err; i++)
		err = read_at_once(&t->file);
	promote_flush_lru();
	err = err ? err : promote_enable(&t->saved, true);
	err = err ? err : read_at_once(&t->file);
	usleep(PROMOTE_GAP_US);
	promote_count(&t->before);
	return err;
}

struct drains {
	long largest;
	long moved;
};

static void add_drain(const char *line, void *arg)
{
	long moved = promote_events_field(line, "nr_moved");
	struct drains *drains = arg;

	drains->moved += moved;
	if (moved > drains->largest)
		drains->largest = moved;
}

FIXTURE(drain)
{
	struct promote_test t;
	struct promote_events events;
	long most;
};

FIXTURE_VARIANT(drain)
{
	bool large;
	/* Folios of 2 MiB, in a tmpfs. */
	bool huge;
};

FIXTURE_VARIANT_ADD(drain, order0)
{
	.large = false,
};

FIXTURE_VARIANT_ADD(drain, large)
{
	.large = true,
};

FIXTURE_VARIANT_ADD(drain, huge)
{
	.large = true,
	.huge = true,
};

FIXTURE_SETUP(drain)
{
	size_t size = promote_test_bytes();

	PROMOTE_TEST_START(NULL);
	self->most = DRAIN_BYTES / self->t.page;
	if (variant->huge) {
		ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs,
						 "huge=always"));
		ASSERT_EQ(0, promote_file_make_written(&self->t.file, size,
						       self->t.lower));
		return;
	}
	ASSERT_EQ(0, promote_file_sparse(&self->t.file, size));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower,
					variant->large));
}

FIXTURE_TEARDOWN(drain)
{
	promote_events_end(&self->events);
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(drain, moves_at_most_2_mib, PROMOTE_TIMEOUT)
{
	long whole = self->t.file.nr - self->t.file.nr / 1000;
	struct drains drains = {};
	struct promote_where where;
	int i;

	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_EQ(self->t.file.nr, where.on_node[self->t.lower]);
	EXPECT_EQ(variant->large, where.tails > self->t.file.nr / 2);
	if (access(PROMOTE_TRACING "/events/promote", F_OK))
		SKIP(return, "no trace events in this kernel");
	ASSERT_EQ(0, warm_up(&self->t));
	ASSERT_EQ(0, promote_events_start(&self->events, "promote/promote_drain"));
	for (i = 0; i < PROMOTE_MAX_PASSES && SINCE(SUCCESS) < whole; i++) {
		ASSERT_EQ(0, read_at_once(&self->t.file));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_LE(whole, SINCE(SUCCESS));
	EXPECT_LT(0, promote_events_lines(&self->events, "promote_drain",
					  add_drain, &drains));
	printf("# the largest drain moved %ld pages\n", drains.largest);
	EXPECT_EQ(SINCE(SUCCESS), drains.moved);
	EXPECT_GE(self->most, drains.largest);
	EXPECT_LT(0, drains.largest);
	/* Not less than a folio, and not two of them. */
	if (variant->huge)
		EXPECT_EQ(self->most, drains.largest);
}

FIXTURE(reader)
{
	struct promote_test t;
};

FIXTURE_SETUP(reader)
{
	PROMOTE_TEST_START(NULL);
}

FIXTURE_TEARDOWN(reader)
{
	promote_test_end(&self->t);
}

/* 512 MiB with one preadv(), by default. */
TEST_F_TIMEOUT(reader, pays_for_2_mib_after_a_huge_read, PROMOTE_TIMEOUT)
{
	long most = DRAIN_BYTES / self->t.page, before = 0;
	int i;

	ASSERT_EQ(0, promote_file_sparse(&self->t.file,
					 promote_test_bytes() * 8));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	ASSERT_LE(4 * most, self->t.file.nr);
	ASSERT_EQ(0, warm_up(&self->t));
	/* What was cold has allocated the list; there is more than it takes. */
	ASSERT_EQ(0, read_at_once(&self->t.file));
	EXPECT_EQ(most, SINCE(QUEUED));
	EXPECT_LT(0, SINCE(SUCCESS));
	for (i = 0; i < 4; i++) {
		EXPECT_GE(most, SINCE(SUCCESS) - before);
		before = SINCE(SUCCESS);
		usleep(PROMOTE_GAP_US);
		ASSERT_EQ(0, read_at_once(&self->t.file));
	}
	EXPECT_LT(before, SINCE(SUCCESS));
}

/* CPU time of the calling thread. */
static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* CPU time of a pass with all that is between two of them. */
static long long timed_pass(struct promote_test *t, long *moved)
{
	long before = promote_vmstat("pgpromote_success");
	long long start = cpu_ns();

	if (promote_file_read(&t->file))
		return -1;
	*moved = promote_vmstat("pgpromote_success") - before;
	usleep(PROMOTE_GAP_US);
	return cpu_ns() - start;
}

/*
 * Twice: once for the read, once for the drain, which may overrun by a batch.
 * Without that bound a pass that moves all that it reads takes ten times as
 * long. Only where CPU time is exact.
 */
TEST_F_TIMEOUT(reader, takes_twice_as_long_while_promoting, PROMOTE_TIMEOUT)
{
	long long off = 0, on = 0, took;
	int i, passes = 0;
	long moved;

	ASSERT_EQ(0, promote_file_make(&self->t.file, promote_test_bytes() / 2,
				       self->t.lower, false));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_WARM_PASSES));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		took = timed_pass(&self->t, &moved);
		ASSERT_LT(0, took);
		off += took;
	}
	off /= PROMOTE_PASSES;

	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		took = timed_pass(&self->t, &moved);
		ASSERT_LT(0, took);
		if (!moved)
			continue;
		on += took;
		passes++;
	}
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	/* It did take several, since a pass could not move all. */
	ASSERT_LE(3, passes);
	EXPECT_GE(off * 22 / 10, on / passes)
		TH_LOG("a pass takes %lld ns, while promoting %lld ns", off,
		       on / passes);
}

struct readers {
	struct promote_test *t;
	pthread_barrier_t barrier;
	int passes;
	bool go_on;
};

/* One of the readers, between two passes. */
static void end_of_pass(struct readers *readers)
{
	struct promote_test *t = readers->t;

	usleep(PROMOTE_GAP_US);
	readers->passes++;
	readers->go_on = readers->passes < PROMOTE_MAX_PASSES &&
			 promote_since(&t->before, PROMOTE_SUCCESS) <
			 t->file.nr;
}

static void *read_together(void *arg)
{
	struct readers *readers = arg;
	long err = 0;

	do {
		err |= promote_file_read(&readers->t->file);
		if (pthread_barrier_wait(&readers->barrier))
			end_of_pass(readers);
		pthread_barrier_wait(&readers->barrier);
	} while (readers->go_on);
	return (void *)err;
}

static int run_readers(struct readers *readers)
{
	pthread_t thread[NR_READERS];
	long errors = 0;
	void *err;
	int i;

	pthread_barrier_init(&readers->barrier, NULL, NR_READERS);
	for (i = 0; i < NR_READERS; i++) {
		if (pthread_create(&thread[i], NULL, read_together, readers))
			return -errno;
	}
	for (i = 0; i < NR_READERS; i++) {
		pthread_join(thread[i], &err);
		errors |= (long)err;
	}
	pthread_barrier_destroy(&readers->barrier);
	return errors;
}

/*
 * What is in use by another reader when it is to be moved is refused, and
 * queued again when it has been left alone for a while: that is the only good
 * reason to be queued twice.
 */
TEST_F_TIMEOUT(reader, is_one_of_many_and_pays_alone, PROMOTE_TIMEOUT)
{
	struct readers readers = { .t = &self->t };
	long nr, in_use;

	ASSERT_EQ(0, promote_file_sparse(&self->t.file,
					 promote_test_bytes() / 8));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	nr = self->t.file.nr;
	ASSERT_EQ(0, warm_up(&self->t));
	ASSERT_EQ(0, run_readers(&readers));
	in_use = SINCE(FAIL_BUSY) + SINCE(FAIL_LOCKED);
	printf("# %ld pages queued %ld times, %ld in use, in %d passes\n",
	       nr, SINCE(QUEUED), in_use, readers.passes);
	EXPECT_EQ(nr, SINCE(SUCCESS));
	EXPECT_LE(nr, SINCE(QUEUED));
	EXPECT_GE(nr + nr / 10, SINCE(QUEUED) - in_use);
}

/*
 * A reader that may not use the top tier: once it has found out it leaves what
 * is hot to others for a second, or it would claim the pages again and again.
 */
FIXTURE(confined)
{
	struct promote_test t;
};

FIXTURE_VARIANT(confined)
{
	bool by_cpuset;
};

FIXTURE_VARIANT_ADD(confined, by_policy)
{
	.by_cpuset = false,
};

FIXTURE_VARIANT_ADD(confined, by_cpuset)
{
	.by_cpuset = true,
};

/* Four lists' worth: what is on one of them is not hot again for a second. */
#define CONFINED_BYTES (4 * DRAIN_BYTES)
#define CONFINED_MS 3500

FIXTURE_SETUP(confined)
{
	char node[16];

	PROMOTE_TEST_START(NULL);
	if (variant->by_cpuset) {
		if (!promote_cgroup("confined", self->t.cgroup,
				    sizeof(self->t.cgroup)))
			SKIP(return, "no cpuset and memory controllers");
		snprintf(node, sizeof(node), "%d", self->t.lower);
		ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "cpuset.mems",
						node));
	}
}

FIXTURE_TEARDOWN(confined)
{
	promote_test_end(&self->t);
}

static int confine(struct promote_test *t)
{
	if (t->cgroup[0])
		return promote_cgroup_enter(t->cgroup);
	return promote_policy(MPOL_BIND, t->lower);
}

/* Shared with the parent, which looks at what the reader has noted. */
struct confined_reader {
	struct promote_test *t;
	long ms, nr_queued;
};

/* For a while, and until it has recorded again after it was refused. */
static int read_confined(void *arg)
{
	struct confined_reader *reader = arg;
	struct promote_test *t = reader->t;
	long most = DRAIN_BYTES / t->page, start;
	int i;

	if (confine(t))
		return 1;
	start = promote_now_ms();
	for (i = 0; i < PROMOTE_MAX_PASSES; i++) {
		if (promote_file_passes(&t->file, 1))
			return 2;
		reader->nr_queued = promote_since(&t->before, PROMOTE_QUEUED);
		reader->ms = promote_now_ms() - start;
		if (reader->ms >= CONFINED_MS && reader->nr_queued > most)
			return 0;
	}
	return 3;
}

TEST_F_TIMEOUT(confined, records_one_list_a_second, PROMOTE_TIMEOUT)
{
	long most = DRAIN_BYTES / self->t.page;
	struct confined_reader *reader;

	reader = promote_shared(sizeof(*reader));
	ASSERT_NE(NULL, reader);
	reader->t = &self->t;
	ASSERT_EQ(0, promote_test_make_hot(&self->t, CONFINED_BYTES));
	ASSERT_EQ(0, promote_in_child(read_confined, reader));
	printf("# %ld pages recorded in %ld ms\n", reader->nr_queued,
	       reader->ms);
	/* The first at once, and the last may be still waiting. */
	EXPECT_GE((reader->ms / 1000 + 2) * most, reader->nr_queued);
	EXPECT_NOTHING_MOVED();
	if (variant->by_cpuset)
		EXPECT_REFUSED_ONLY_AS(CPUSET);
	else
		EXPECT_REFUSED_ONLY_AS(POLICY);
}

static int read_confined_for_ever(void *arg)
{
	struct promote_test *t = arg;

	if (confine(t))
		return 1;
	while (!promote_file_passes(&t->file, 1))
		;
	return 1;
}

/* Two lists' worth, of which it can claim one before it has found out. */
TEST_F_TIMEOUT(confined, leaves_pages_to_others, PROMOTE_TIMEOUT)
{
	long half = DRAIN_BYTES / self->t.page;
	pid_t pid;
	int i;

	ASSERT_EQ(0, promote_test_make_hot(&self->t, 2 * DRAIN_BYTES));
	pid = fork();
	if (!pid)
		_exit(read_confined_for_ever(&self->t));
	ASSERT_LT(0, pid);
	for (i = 0; i < 10000 && !promote_refused_since(&self->t.before); i++)
		usleep(1000);
	EXPECT_LT(0, SINCE(FAIL_POLICY) + SINCE(FAIL_CPUSET));
	EXPECT_EQ(0, SINCE(SUCCESS));
	for (i = 0; i < PROMOTE_MAX_PASSES && SINCE(SUCCESS) < half; i++)
		EXPECT_EQ(0, promote_file_passes(&self->t.file, 1));
	EXPECT_LE(half, SINCE(SUCCESS));
	promote_end_background(pid);
	EXPECT_MOVES_NOW();
}

TEST_HARNESS_MAIN
