// SPDX-License-Identifier: GPL-2.0
/*
 * What page cache promotion must refuse: accesses too close together or too far
 * apart, and pages that are of no concern here (mapped, anonymous, dropped
 * behind). Each refusal is followed by a control that does move the same
 * file. Who may not put pages where is the matter of placement.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FILE_BYTES (4UL << 20)

FIXTURE(refusal)
{
	struct promote_test t;
};

PROMOTE_LRU_VARIANTS(refusal);

FIXTURE_SETUP(refusal)
{
	PROMOTE_TEST_START(variant->lru_gen);
}

FIXTURE_TEARDOWN(refusal)
{
	promote_test_end(&self->t);
}

/*
 * Read the two pages of a file in turn: a descriptor that reads the same page
 * twice in a row does not mark it again.
 */
static void alternate(struct promote_file *file, int rounds, long page)
{
	char buf[1 << 16];

	while (rounds--) {
		if (pread(file->fd, buf, page, 0) < 0 ||
		    pread(file->fd, buf, page, page) < 0)
			break;
	}
}

TEST_F_TIMEOUT(refusal, reads_within_the_gap_count_once, PROMOTE_TIMEOUT)
{
	long start;
	int i;

	ASSERT_EQ(0, promote_file_make(&self->t.file, 2 * self->t.page,
				       self->t.lower, false));
	promote_count(&self->t.before);
	alternate(&self->t.file, 100, self->t.page);
	ASSERT_EQ(0, promote_set(&self->t.saved, PROMOTE_MIN_GAP, "20000"));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	start = promote_now_ms();
	for (i = 0; i < 10; i++) {
		alternate(&self->t.file, 100, self->t.page);
		usleep(PROMOTE_GAP_US);
	}
	if (promote_now_ms() - start > 15000)
		SKIP(return, "this machine is too slow");
	EXPECT_NOTHING_DONE();

	/* Further apart than the gap each page is hot, once. */
	ASSERT_EQ(0, promote_write(PROMOTE_MIN_GAP, "16"));
	for (i = 0; i < 50 && SINCE(SUCCESS) < 2; i++) {
		usleep(PROMOTE_GAP_US);
		alternate(&self->t.file, 100, self->t.page);
	}
	EXPECT_EQ(2, SINCE(SUCCESS));
	EXPECT_EQ(2, SINCE(HINT));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

TEST_F_TIMEOUT(refusal, reads_beyond_the_threshold_are_cold, PROMOTE_TIMEOUT)
{
	int i;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_WARM_PASSES));
	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "100"));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < PROMOTE_WARM_PASSES; i++) {
		ASSERT_EQ(0, promote_file_read(&self->t.file));
		usleep(300000);
	}
	EXPECT_NOTHING_MOVED();
	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "60000"));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(refusal, tmpfs_with_a_policy, PROMOTE_TIMEOUT)
{
	char options[64];

	snprintf(options, sizeof(options), "mpol=bind=static:%d", self->t.lower);
	if (promote_tmpfs_start(self->t.tmpfs, options))
		SKIP(return, "no tmpfs with a memory policy");
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	EXPECT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	promote_file_remove(&self->t.file);
	promote_tmpfs_end(self->t.tmpfs);

	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, NULL));
	ASSERT_EQ(0, promote_file_make_written(&self->t.file, FILE_BYTES,
					       self->t.lower));
	EXPECT_MOVES_NOW();
}

static int map_file(void *file)
{
	return promote_file_map(file) ? 0 : 1;
}

TEST_F_TIMEOUT(refusal, mapped_file, PROMOTE_TIMEOUT)
{
	pid_t mapper;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	mapper = promote_background(map_file, &self->t.file);
	ASSERT_LT(0, mapper);
	promote_count(&self->t.before);
	EXPECT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	promote_end_background(mapper);
	EXPECT_MOVES_NOW();
}

struct anon {
	char *start;
	size_t size;
	int node;
};

static int touch_anon(void *arg)
{
	struct anon *anon = arg;

	if (promote_policy(MPOL_BIND, anon->node))
		return 1;
	if (madvise(anon->start, anon->size, MADV_POPULATE_WRITE))
		return 1;
	return promote_policy(MPOL_DEFAULT, -1);
}

/* Reading another process's memory marks its pages as accessed. */
static int read_remote(pid_t pid, struct anon *anon)
{
	struct iovec local, remote = { anon->start, anon->size };
	void *buf = malloc(anon->size);
	ssize_t len;

	local.iov_base = buf;
	local.iov_len = anon->size;
	len = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	free(buf);
	return len == (ssize_t)anon->size ? 0 : -1;
}

TEST_F_TIMEOUT(refusal, anonymous_memory, PROMOTE_TIMEOUT)
{
	struct anon anon = { .size = FILE_BYTES, .node = self->t.lower };
	long on_lower;
	pid_t pid;
	int i;

	anon.start = mmap(NULL, anon.size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, anon.start);
	/* Small pages: the order must not be the reason. */
	madvise(anon.start, anon.size, MADV_NOHUGEPAGE);
	on_lower = promote_node_stat(self->t.lower, "nr_anon_pages");
	pid = promote_background(touch_anon, &anon);
	ASSERT_LT(0, pid);
	on_lower = promote_node_stat(self->t.lower, "nr_anon_pages") - on_lower;
	EXPECT_LE((long)(anon.size / self->t.page), on_lower);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	for (i = 0; i < PROMOTE_PASSES; i++) {
		EXPECT_EQ(0, read_remote(pid, &anon));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_NOTHING_DONE();
	promote_end_background(pid);
}

TEST_F_TIMEOUT(refusal, full_top_node, PROMOTE_TIMEOUT)
{
	pid_t pid;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	pid = promote_background(promote_fill_node, &self->t.top);
	ASSERT_LT(0, pid);
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_LT(0, SINCE(FAIL_BUDGET));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	promote_end_background(pid);
	EXPECT_MOVES_NOW();
}

static int read_dontcache(struct promote_file *file, int flags)
{
	static char buf[1 << 16];
	struct iovec iov = { buf, sizeof(buf) };
	size_t done;
	ssize_t len;

	for (done = 0; done < file->size; done += len) {
		len = preadv2(file->fd, &iov, 1, done, flags);
		if (len <= 0)
			return -errno;
	}
	return 0;
}

/* Who reads the file, and where that puts new pages. */
struct actor {
	struct promote_file *file;
	int node;
};

static int dontcache_passes(void *arg)
{
	struct actor *actor = arg;
	int i, err = 0;

	/* Allocate there, without being confined to it. */
	if (promote_policy(MPOL_PREFERRED, actor->node))
		return 1;
	for (i = 0; i < PROMOTE_PASSES && !err; i++) {
		err = read_dontcache(actor->file, RWF_DONTCACHE);
		usleep(PROMOTE_GAP_US);
	}
	return err == -EOPNOTSUPP ? 4 : err ? 2 : 0;
}

TEST_F_TIMEOUT(refusal, dontcache_reads, PROMOTE_TIMEOUT)
{
	struct actor actor = { .file = &self->t.file, .node = self->t.lower };
	int err;

	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_drop(&self->t.file));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	err = promote_in_child(dontcache_passes, &actor);
	if (err == 4)
		SKIP(return, "no RWF_DONTCACHE on this file system");
	ASSERT_EQ(0, err);
	EXPECT_NOTHING_DONE();
	/* Nothing of it may stay in the cache. */
	EXPECT_GT(self->t.file.nr / 10, promote_file_resident(&self->t.file));

	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

TEST_HARNESS_MAIN
