// SPDX-License-Identifier: GPL-2.0
/*
 * What page cache promotion must refuse: accesses too close together or too far
 * apart, and pages that are somebody else's business (mapped, anonymous, dirty,
 * dropped behind). Each refusal is followed by a control that does move the same
 * file. Who may not put pages where is the matter of placement.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FILE_BYTES (4UL << 20)
/* Passes after which any LRU takes a file for hot. */
#define WARM_PASSES 10

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

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
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
	start = now_ms();
	for (i = 0; i < 10; i++) {
		alternate(&self->t.file, 100, self->t.page);
		usleep(PROMOTE_GAP_US);
	}
	if (now_ms() - start > 15000)
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
	ASSERT_EQ(0, promote_file_passes(&self->t.file, WARM_PASSES));
	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "100"));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	for (i = 0; i < WARM_PASSES; i++) {
		ASSERT_EQ(0, promote_file_read(&self->t.file));
		usleep(300000);
	}
	EXPECT_NOTHING_MOVED();
	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "60000"));
	EXPECT_MOVES_NOW();
}

/* A file in a tmpfs of its own, its pages on a node. */
static int tmpfs_file(struct promote_file *file, const char *dir,
		      const char *options, int node)
{
	int err;

	if (mount("promote", dir, "tmpfs", 0, options))
		return -errno;
	setenv("TMPDIR", dir, 1);
	err = promote_policy(MPOL_BIND, node);
	err = err ? err : promote_file_create(file, FILE_BYTES);
	return promote_policy(MPOL_DEFAULT, -1) ? -EINVAL : err;
}

static void tmpfs_end(struct promote_file *file, const char *dir)
{
	promote_file_remove(file);
	umount2(dir, MNT_DETACH);
	rmdir(dir);
}

TEST_F_TIMEOUT(refusal, tmpfs_with_a_policy, PROMOTE_TIMEOUT)
{
	char dir[] = "/tmp/promote.XXXXXX", options[64];

	ASSERT_NE(NULL, mkdtemp(dir));
	snprintf(options, sizeof(options), "mpol=bind=static:%d", self->t.lower);
	if (tmpfs_file(&self->t.file, dir, options, self->t.lower)) {
		tmpfs_end(&self->t.file, dir);
		SKIP(return, "no tmpfs with a memory policy");
	}
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	EXPECT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	tmpfs_end(&self->t.file, dir);

	ASSERT_EQ(0, mkdir(dir, 0700));
	ASSERT_EQ(0, tmpfs_file(&self->t.file, dir, NULL, self->t.lower));
	EXPECT_MOVES_NOW();
	tmpfs_end(&self->t.file, dir);
}

static int map_file(void *arg)
{
	struct promote_file *file = arg;
	void *map;

	map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return 1;
	return madvise(map, file->size, MADV_POPULATE_READ);
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

/* Who reads or writes the file, and where that puts new pages. */
struct actor {
	struct promote_file *file;
	int node;
};

/* Writeback would clean the pages under the test. */
#define WRITEBACK "/proc/sys/vm/dirty_writeback_centisecs"

static int dirty_file(void *arg)
{
	struct actor *actor = arg;
	char page[1 << 16];
	size_t done;

	if (promote_policy(MPOL_BIND, actor->node))
		return 1;
	memset(page, 'd', sizeof(page));
	for (done = 0; done < actor->file->size; done += sizeof(page)) {
		if (pwrite(actor->file->fd, page, sizeof(page), done) < 0)
			return 2;
	}
	return 0;
}

TEST_F_TIMEOUT(refusal, dirty_file, PROMOTE_TIMEOUT)
{
	struct actor actor = { .file = &self->t.file, .node = self->t.lower };

	ASSERT_EQ(0, promote_set(&self->t.saved, WRITEBACK, "0"));
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_in_child(dirty_file, &actor));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_LT(0, SINCE(FAIL_DIRTY));
	ASSERT_EQ(0, fsync(self->t.file.fd));
	EXPECT_MOVES_NOW();
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
