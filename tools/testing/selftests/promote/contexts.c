// SPDX-License-Identifier: GPL-2.0
/*
 * Accesses that are marked from other places than read(): page table walks
 * under the page table lock, the end of a mapping, a write that has the folio
 * locked, reclaim. Mapped pages do not move; what may move does; and lockdep
 * and KASAN have nothing to say.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define FILE_BYTES (4UL << 20)
#define WAIT_ROUNDS 10000
#define TMPFS_DIR "/tmp/promote.contexts"

FIXTURE(mark)
{
	struct promote_test t;
	bool mounted;
	pid_t child;
};

PROMOTE_LRU_VARIANTS(mark);

FIXTURE_SETUP(mark)
{
	PROMOTE_TEST_START(variant->lru_gen);
}

FIXTURE_TEARDOWN(mark)
{
	if (self->child > 0)
		promote_end_background(self->child);
	promote_test_end(&self->t);
	if (self->mounted) {
		umount2(TMPFS_DIR, MNT_DETACH);
		rmdir(TMPFS_DIR);
	}
}

/* A file in a tmpfs; its pages are where its writer's policy says. */
static int tmpfs_file(struct promote_file *file, const char *options, int node)
{
	int err;

	mkdir(TMPFS_DIR, 0700);
	if (mount("promote", TMPFS_DIR, "tmpfs", 0, options))
		return -errno;
	setenv("TMPDIR", TMPFS_DIR, 1);
	err = promote_policy(MPOL_BIND, node);
	err = err ? err : promote_file_create(file, FILE_BYTES);
	return promote_policy(MPOL_DEFAULT, -1) ? -EINVAL : err;
}

struct mapping {
	struct promote_file *file;
	char *start;
};

static int map_file(struct mapping *mapping)
{
	mapping->start = mmap(NULL, mapping->file->size, PROT_READ, MAP_SHARED,
			      mapping->file->fd, 0);
	return mapping->start == MAP_FAILED ? -errno : 0;
}

/* Fault every page in, which sets its accessed bit. */
static int populate(void *arg)
{
	struct mapping *mapping = arg;

	return madvise(mapping->start, mapping->file->size, MADV_POPULATE_READ);
}

/* The kernel reads the memory of another process through its page tables. */
static int read_remote(pid_t pid, struct mapping *mapping)
{
	struct iovec remote = { mapping->start, mapping->file->size };
	struct iovec local = { malloc(remote.iov_len), remote.iov_len };
	ssize_t len;

	len = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	free(local.iov_base);
	return len == (ssize_t)remote.iov_len ? 0 : -EIO;
}

/*
 * The classic LRU activates what is marked twice, which tells whether there
 * were marks; MGLRU only counts them.
 */
#define EXPECT_MARKED(active_before)					\
do {									\
	promote_flush_lru();						\
	if (variant->lru_gen[0] == 'n')					\
		EXPECT_LE((active_before) + self->t.file.nr * 9 / 10,	\
			  promote_node_stat(self->t.lower,		\
					    "nr_active_file"));		\
} while (0)

TEST_F_TIMEOUT(mark, page_table_walk, PROMOTE_TIMEOUT)
{
	struct mapping mapping = { .file = &self->t.file };
	long active;
	int i;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	active = promote_node_stat(self->t.lower, "nr_active_file");
	ASSERT_EQ(0, map_file(&mapping));
	self->child = promote_background(populate, &mapping);
	ASSERT_LT(0, self->child);
	munmap(mapping.start, FILE_BYTES);
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		EXPECT_EQ(0, read_remote(self->child, &mapping));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_NOTHING_DONE();
	EXPECT_MARKED(active);
	promote_end_background(self->child);
	self->child = 0;
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

static int map_and_exit(void *arg)
{
	struct mapping *mapping = arg;

	return map_file(mapping) || populate(mapping);
}

/* The accessed bits of the page tables are passed on when a mapping ends. */
TEST_F_TIMEOUT(mark, end_of_a_mapping, PROMOTE_TIMEOUT)
{
	struct mapping mapping = { .file = &self->t.file };
	long active;
	int i;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	active = promote_node_stat(self->t.lower, "nr_active_file");
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		/* By munmap() and by exit. */
		ASSERT_EQ(0, map_file(&mapping));
		ASSERT_EQ(0, populate(&mapping));
		munmap(mapping.start, FILE_BYTES);
		usleep(PROMOTE_GAP_US);
		ASSERT_EQ(0, promote_in_child(map_and_exit, &mapping));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_NOTHING_DONE();
	EXPECT_MARKED(active);
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* The same with one entry for 2 MiB. It stays while anybody maps it. */
TEST_F_TIMEOUT(mark, end_of_a_huge_mapping, PROMOTE_TIMEOUT)
{
	struct mapping mapping = { .file = &self->t.file };
	struct mapping other = { .file = &self->t.file };
	struct promote_where where;
	int i;

	self->mounted = true;
	ASSERT_EQ(0, tmpfs_file(&self->t.file, "huge=always", self->t.lower));
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_LT(self->t.file.nr / 2, where.tails);
	ASSERT_EQ(0, map_file(&mapping));
	self->child = promote_background(populate, &mapping);
	ASSERT_LT(0, self->child);
	munmap(mapping.start, FILE_BYTES);
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		ASSERT_EQ(0, map_file(&other));
		ASSERT_EQ(0, populate(&other));
		munmap(other.start, FILE_BYTES);
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	promote_end_background(self->child);
	self->child = 0;
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* Write what is there already, so that the content can be compared. */
static int rewrite(struct promote_file *file, long page)
{
	char buf[1 << 16];
	long i;

	for (i = 0; i < file->nr; i++) {
		if (pread(file->fd, buf, page, i * page) != page ||
		    pwrite(file->fd, buf, page, i * page) != page)
			return -EIO;
	}
	return 0;
}

static int rewrite_passes(void *arg)
{
	long page = sysconf(_SC_PAGESIZE);
	int i, err = 0;

	for (i = 0; i < PROMOTE_PASSES && !err; i++) {
		err = rewrite(arg, page);
		usleep(PROMOTE_GAP_US);
	}
	return err ? 1 : 0;
}

/* tmpfs marks what is written while it holds the folio lock. */
TEST_F_TIMEOUT(mark, write_with_the_folio_locked, PROMOTE_TIMEOUT)
{
	self->mounted = true;
	ASSERT_EQ(0, tmpfs_file(&self->t.file, NULL, self->t.lower));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_EQ(0, rewrite_passes(&self->t.file));
	EXPECT_LE(self->t.file.nr - self->t.file.nr / 1000, SINCE(SUCCESS));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* One writes what another reads; both keep folios locked and in use. */
TEST_F_TIMEOUT(mark, write_while_others_read, PROMOTE_TIMEOUT)
{
	int status;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 10));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	self->child = fork();
	if (!self->child)
		_exit(rewrite_passes(&self->t.file));
	EXPECT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	ASSERT_EQ(self->child, waitpid(self->child, &status, 0));
	self->child = 0;
	EXPECT_EQ(0, status);
	EXPECT_LT(0, SINCE(QUEUED));
	ASSERT_EQ(0, fsync(self->t.file.fd));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

struct tight {
	struct promote_file *file;
	const char *cgroup;
	int node;
};

static int place_in_cgroup(void *arg)
{
	struct tight *tight = arg;

	if (promote_cgroup_enter(tight->cgroup))
		return 1;
	return promote_file_place(tight->file, tight->node, false) ? 2 : 0;
}

static int read_for_ever(void *arg)
{
	struct tight *tight = arg;

	if (promote_cgroup_enter(tight->cgroup))
		return 1;
	while (!promote_file_read(tight->file))
		usleep(PROMOTE_GAP_US);
	return 2;
}

static long reclaimed(const char *cgroup)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	return promote_stat(path, "pgsteal");
}

/* Somebody reclaims from the cgroup of a reader while it promotes. */
TEST_F_TIMEOUT(mark, reclaim_from_the_reader, PROMOTE_TIMEOUT)
{
	struct tight tight = {
		&self->t.file, self->t.cgroup, self->t.lower
	};
	int i;

	if (!promote_cgroup("tight", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
	ASSERT_EQ(0, promote_in_child(place_in_cgroup, &tight));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 10));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	self->child = fork();
	if (!self->child)
		_exit(read_for_ever(&tight));
	for (i = 0; i < WAIT_ROUNDS && !SINCE(SUCCESS); i++)
		usleep(1000);
	/* EAGAIN says that it was not all that was asked for. */
	for (i = 0; i < WAIT_ROUNDS && !reclaimed(self->t.cgroup); i++)
		promote_cgroup_set(self->t.cgroup, "memory.reclaim", "256K");
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_LT(0, reclaimed(self->t.cgroup));
	promote_end_background(self->child);
	self->child = 0;
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* Hot reads, and between them a stream for which there is no room. */
static int read_within_limit(void *arg)
{
	struct tight *tight = arg;
	struct promote_file stream;
	int i, err;

	if (promote_cgroup_enter(tight->cgroup))
		return 1;
	err = promote_file_create(&stream, 4 * FILE_BYTES);
	for (i = 0; i < PROMOTE_PASSES && !err; i++) {
		/* More often than the stream, so as not to be reclaimed. */
		err = promote_file_passes(tight->file, 3);
		err = err ? err : promote_file_read(&stream);
	}
	promote_file_remove(&stream);
	return err ? 2 : 0;
}

/* The reader itself reclaims from its cgroup, with folios on its list. */
TEST_F_TIMEOUT(mark, reclaim_by_the_reader, PROMOTE_TIMEOUT)
{
	struct tight tight = {
		&self->t.file, self->t.cgroup, self->t.lower
	};
	char bytes[32];

	if (!promote_cgroup("tight", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	snprintf(bytes, sizeof(bytes), "%lu", 4 * FILE_BYTES);
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "memory.max", bytes));
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
	ASSERT_EQ(0, promote_in_child(place_in_cgroup, &tight));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 10));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_EQ(0, promote_in_child(read_within_limit, &tight));
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_LT(0, reclaimed(self->t.cgroup));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_HARNESS_MAIN
