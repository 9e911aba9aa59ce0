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
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define FILE_BYTES (4UL << 20)
#define WAIT_ROUNDS 10000

FIXTURE(mark)
{
	struct promote_test t;
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
}

struct mapping {
	struct promote_file *file;
	char *start;
};

/* A child has the mapping, but not yet the pages in its page table. */
static int populate(void *arg)
{
	struct mapping *mapping = arg;

	return madvise(mapping->start, mapping->file->size, MADV_POPULATE_READ);
}

/* Another process that has the file mapped, and this one no longer. */
static pid_t map_in_background(struct mapping *mapping)
{
	pid_t pid;

	mapping->start = promote_file_map(mapping->file);
	if (!mapping->start)
		return -1;
	pid = promote_background(populate, mapping);
	munmap(mapping->start, mapping->file->size);
	return pid;
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
	self->child = map_in_background(&mapping);
	ASSERT_LT(0, self->child);
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

static int map_and_unmap(struct promote_file *file)
{
	void *map = promote_file_map(file);

	usleep(PROMOTE_GAP_US);
	return map ? munmap(map, file->size) : -1;
}

static int map_and_exit(void *file)
{
	return promote_file_map(file) ? 0 : 1;
}

/* The accessed bits of the page tables are passed on when a mapping ends. */
TEST_F_TIMEOUT(mark, end_of_a_mapping, PROMOTE_TIMEOUT)
{
	long active;
	int i;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	active = promote_node_stat(self->t.lower, "nr_active_file");
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		ASSERT_EQ(0, map_and_unmap(&self->t.file));
		ASSERT_EQ(0, promote_in_child(map_and_exit, &self->t.file));
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
	struct promote_where where;
	int i;

	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, "huge=always"));
	ASSERT_EQ(0, promote_file_make_written(&self->t.file, FILE_BYTES,
					       self->t.lower));
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_LT(self->t.file.nr / 2, where.tails);
	self->child = map_in_background(&mapping);
	ASSERT_LT(0, self->child);
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_PASSES; i++)
		ASSERT_EQ(0, map_and_unmap(&self->t.file));
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	promote_end_background(self->child);
	self->child = 0;
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* Who writes what is there already, so that the content can be compared. */
struct writer {
	struct promote_file *file;
	char *data;
};

static int learn(struct writer *writer, struct promote_file *file)
{
	writer->file = file;
	writer->data = malloc(file->size);
	if (!writer->data)
		return -ENOMEM;
	return pread(file->fd, writer->data, file->size, 0) ==
	       (ssize_t)file->size ? 0 : -EIO;
}

static int rewrite(struct writer *writer)
{
	long page = sysconf(_SC_PAGESIZE);
	size_t at;

	for (at = 0; at < writer->file->size; at += page) {
		if (pwrite(writer->file->fd, writer->data + at, page, at) !=
		    page)
			return -EIO;
	}
	return 0;
}

static int rewrite_passes(void *writer)
{
	int i, err = 0;

	for (i = 0; i < PROMOTE_PASSES && !err; i++) {
		err = rewrite(writer);
		usleep(PROMOTE_GAP_US);
	}
	return err;
}

/*
 * tmpfs marks what is written while it holds the folio lock. Nobody reads the
 * file while promotion is on.
 */
TEST_F_TIMEOUT(mark, write_with_the_folio_locked, PROMOTE_TIMEOUT)
{
	struct writer writer;

	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, NULL));
	ASSERT_EQ(0, promote_file_make_written(&self->t.file, FILE_BYTES,
					       self->t.lower));
	ASSERT_EQ(0, learn(&writer, &self->t.file));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_TRUE(promote_test_moves_by(&self->t, rewrite_passes, &writer));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* One writes what another reads; both keep folios locked and in use. */
TEST_F_TIMEOUT(mark, write_while_others_read, PROMOTE_TIMEOUT)
{
	struct writer writer;
	int status;

	ASSERT_EQ(0, promote_test_make_hot(&self->t, FILE_BYTES));
	ASSERT_EQ(0, learn(&writer, &self->t.file));
	self->child = fork();
	if (!self->child)
		_exit(!!rewrite_passes(&writer));
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

/* A file of the cgroup that is hot, but has not been read with promotion on. */
static int start_tight(struct promote_test *t, struct tight *tight)
{
	int err = promote_file_create(&t->file, FILE_BYTES);

	err = err ? err : promote_in_child(place_in_cgroup, tight);
	err = err ? err : promote_file_passes(&t->file, PROMOTE_WARM_PASSES);
	promote_count(&t->before);
	return err ? err : promote_enable(&t->saved, true);
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
	ASSERT_EQ(0, start_tight(&self->t, &tight));
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
	ASSERT_EQ(0, start_tight(&self->t, &tight));
	EXPECT_EQ(0, promote_in_child(read_within_limit, &tight));
	EXPECT_LT(0, SINCE(QUEUED));
	EXPECT_LT(0, reclaimed(self->t.cgroup));
	/* Whose cgroup has no room has to pay, and cannot. */
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "memory.max", "max"));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_HARNESS_MAIN
