// SPDX-License-Identifier: GPL-2.0
/*
 * A test for each reason to refuse a folio that was found hot: the reason comes
 * up between the recording and the drain, exactly its counter moves, for each
 * folio, the trace says the same, and once the reason is gone the same file is
 * promoted. What is refused by the rate and the budget, and for lack of memory,
 * is elsewhere (policy.c, fault.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "promote_test.h"
#include "promote_queue.h"

#define CGROUPS "/sys/fs/cgroup"
/* Writeback would clean the pages under the test. */
#define WRITEBACK_PERIOD "/proc/sys/vm/dirty_writeback_centisecs"
#define FILE_PAGES PROMOTE_QUEUE_PAGES

FIXTURE(refused)
{
	struct promote_test t;
	struct promote_queue queue;
};

FIXTURE_SETUP(refused)
{
	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_set(&self->t.saved, WRITEBACK_PERIOD, "0"));
	ASSERT_EQ(0, promote_queue_start(&self->queue, self->t.lower));
}

FIXTURE_TEARDOWN(refused)
{
	promote_queue_end(&self->queue);
	/* Nothing of ours may stay in the cgroup that is to go. */
	promote_cgroup_enter(CGROUPS);
	promote_test_end(&self->t);
}

#define RECORD()							\
do {									\
	ASSERT_EQ(0, promote_queue_record(&self->queue, &self->t.file,	\
					  &self->t.before));		\
	ASSERT_EQ(FILE_PAGES, self->queue.nr_folios);			\
	ASSERT_EQ(0, promote_trace_start(&self->t.saved));		\
} while (0)

/* How often does the trace say that a folio was refused for this reason? */
static long refused_in_trace(struct promote_test *t, const char *symbol)
{
	char fields[64];

	snprintf(fields, sizeof(fields), "nid=%d order=0 refusal=%s\n", t->top,
		 symbol);
	return promote_trace_count("promote_refused", fields);
}

/* The bell moves, so it is only the file that is refused. */
#define EXPECT_FILE_REFUSED_AS(reason, symbol)				\
do {									\
	ASSERT_EQ(0, promote_queue_drain(&self->queue));		\
	EXPECT_ALL_REFUSED_AS(reason, FILE_PAGES);			\
	EXPECT_MOVED(self->queue.rung);					\
	EXPECT_EQ(FILE_PAGES, refused_in_trace(&self->t, symbol));	\
	EXPECT_EQ(FILE_PAGES, promote_trace_count("promote_refused", "")); \
} while (0)

/* There is no target, so nothing is promoted, and no folio is looked at. */
#define EXPECT_DRAIN_REFUSED_AS(reason, symbol)				\
do {									\
	ASSERT_EQ(0, promote_queue_drain(&self->queue));		\
	EXPECT_ALL_REFUSED_AS(reason, FILE_PAGES + self->queue.rung);	\
	EXPECT_MOVED(0);						\
	EXPECT_EQ(1, promote_trace_count("promote_drain",		\
					 " refusal=" symbol "\n"));	\
	EXPECT_EQ(1, promote_trace_count("promote_drain", ""));		\
} while (0)

static size_t file_size(long page)
{
	return FILE_PAGES * page;
}

TEST_F_TIMEOUT(refused, stale, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	posix_fadvise(self->t.file.fd, 0, 0, POSIX_FADV_DONTNEED);
	ASSERT_EQ(0, promote_file_resident(&self->t.file));
	EXPECT_FILE_REFUSED_AS(STALE, "stale");
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refused, mapped, PROMOTE_TIMEOUT)
{
	void *map;

	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	map = promote_file_map(&self->t.file);
	ASSERT_NE(NULL, map);
	EXPECT_FILE_REFUSED_AS(MAPPED, "mapped");
	ASSERT_EQ(0, munmap(map, self->t.file.size));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refused, dirty, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	ASSERT_EQ(0, promote_file_overwrite(&self->t.file));
	EXPECT_EQ(FILE_PAGES, promote_file_flagged(&self->t.file, KPF_DIRTY));
	EXPECT_FILE_REFUSED_AS(DIRTY, "dirty");
	ASSERT_EQ(0, fsync(self->t.file.fd));
	EXPECT_MOVES_NOW();
}

/* A cgroup that the file belongs to: its memory, and its writeback. */
static int file_of_cgroup(struct promote_test *t, const char *name)
{
	int err;

	promote_write(CGROUPS "/cgroup.subtree_control", "+io");
	if (!promote_cgroup(name, t->cgroup, sizeof(t->cgroup)))
		return -ENOENT;
	err = promote_cgroup_enter(t->cgroup);
	err = err ? err : promote_file_make(&t->file, file_size(t->page),
					    t->lower, false);
	return err ? err : promote_cgroup_enter(CGROUPS);
}

/* Limit the writes of a cgroup to the device that the file is on. */
static int limit_writes(struct promote_test *t, const char *limit)
{
	char text[64];
	struct stat st;

	if (fstat(t->file.fd, &st))
		return -errno;
	snprintf(text, sizeof(text), "%u:%u wbps=%s", major(st.st_dev),
		 minor(st.st_dev), limit);
	return promote_cgroup_set(t->cgroup, "io.max", text);
}

/* Writeback begins, and does not end before the limit is lifted. */
TEST_F_TIMEOUT(refused, writeback, PROMOTE_TIMEOUT)
{
	int err;

	if (file_of_cgroup(&self->t, "writeback"))
		SKIP(return, "no memory controller");
	RECORD();
	err = limit_writes(&self->t, "1024");
	if (err)
		SKIP(return, "no CONFIG_BLK_DEV_THROTTLING in this kernel");
	ASSERT_EQ(0, promote_file_overwrite(&self->t.file));
	EXPECT_EQ(0, sync_file_range(self->t.file.fd, 0, 0,
				     SYNC_FILE_RANGE_WRITE));
	EXPECT_EQ(FILE_PAGES, promote_file_flagged(&self->t.file, KPF_WRITEBACK));
	err = promote_queue_drain(&self->queue);
	/* Before anything can fail, or the file could never be removed. */
	EXPECT_EQ(FILE_PAGES, promote_file_flagged(&self->t.file, KPF_WRITEBACK));
	ASSERT_EQ(0, limit_writes(&self->t, "max"));
	ASSERT_EQ(0, fsync(self->t.file.fd));
	ASSERT_EQ(0, err);
	EXPECT_FILE_REFUSED_AS(WRITEBACK, "writeback");
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refused, busy, PROMOTE_TIMEOUT)
{
	int pipes[2];

	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	ASSERT_EQ(0, promote_file_to_pipe(&self->t.file, pipes));
	EXPECT_FILE_REFUSED_AS(BUSY, "busy");
	/* The last reference to the pipe lets go of the pages. */
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_MOVES_NOW();
}

/* The memory cgroup of the file may not use the top node, the reader may. */
TEST_F_TIMEOUT(refused, node, PROMOTE_TIMEOUT)
{
	char lower[16];

	if (file_of_cgroup(&self->t, "node"))
		SKIP(return, "no cpuset and memory controllers");
	RECORD();
	snprintf(lower, sizeof(lower), "%d", self->t.lower);
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "cpuset.mems", lower));
	EXPECT_FILE_REFUSED_AS(NODE, "node");
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "cpuset.mems", "\n"));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refused, cpuset, PROMOTE_TIMEOUT)
{
	char lower[16];

	if (!promote_cgroup("cpuset", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	snprintf(lower, sizeof(lower), "%d", self->t.lower);
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "cpuset.mems", lower));
	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	ASSERT_EQ(0, promote_cgroup_enter(self->t.cgroup));
	EXPECT_DRAIN_REFUSED_AS(CPUSET, "cpuset");
	ASSERT_EQ(0, promote_cgroup_enter(CGROUPS));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refused, policy, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_make(&self->t.file, file_size(self->t.page),
				       self->t.lower, false));
	RECORD();
	ASSERT_EQ(0, promote_policy(MPOL_BIND, self->t.lower));
	EXPECT_DRAIN_REFUSED_AS(POLICY, "policy");
	ASSERT_EQ(0, promote_policy(MPOL_DEFAULT, -1));
	EXPECT_MOVES_NOW();
}

/*
 * The policy of a tmpfs file belongs to the file, not to who maps it; NULL for
 * none. A mapping that has none itself does not take away that of the file.
 */
static int file_policy(struct promote_file *file, unsigned long *nodes)
{
	unsigned long any = 1;
	long size = file->size;
	int err = 0;
	void *map;

	map = mmap(NULL, size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	if (syscall(SYS_mbind, map, size, MPOL_BIND, nodes ? nodes : &any,
		    PROMOTE_MAX_NODES, 0) ||
	    (!nodes && syscall(SYS_mbind, map, size, MPOL_DEFAULT, NULL, 0, 0)))
		err = -errno;
	munmap(map, size);
	return err;
}

TEST_F_TIMEOUT(refused, other, PROMOTE_TIMEOUT)
{
	unsigned long lower = 1UL << self->t.lower;

	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, NULL));
	ASSERT_EQ(0, promote_file_create(&self->t.file,
					 file_size(self->t.page)));
	RECORD();
	ASSERT_EQ(0, file_policy(&self->t.file, &lower));
	EXPECT_FILE_REFUSED_AS(OTHER, "other");
	ASSERT_EQ(0, file_policy(&self->t.file, NULL));
	EXPECT_MOVES_NOW();
}

TEST_HARNESS_MAIN
