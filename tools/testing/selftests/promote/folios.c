// SPDX-License-Identifier: GPL-2.0
/*
 * What can become of a folio while it waits on a list: it is cut off, punched
 * out, dropped, used for something else, mapped, written, pinned, poisoned. No
 * reference is held, so nothing of that may be delayed, and only what is still
 * the same may move. What never can move is not tried all the time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/kernel-page-flags.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "promote_test.h"
#include "promote_queue.h"

#define HWPOISON "/sys/kernel/debug/hwpoison/"
/* Writeback would clean the pages under the test. */
#define WRITEBACK_PERIOD "/proc/sys/vm/dirty_writeback_centisecs"
#define FILE_PAGES PROMOTE_QUEUE_PAGES
#define HALF (FILE_PAGES / 2)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef KPF_PRIVATE
#define KPF_PRIVATE 35
#endif

/* In FIXTURE_SETUP(): a file in the lower tier, and a list to put it on. */
#define START()								\
do {									\
	PROMOTE_TEST_START(NULL);					\
	ASSERT_EQ(0, promote_set(&self->t.saved, WRITEBACK_PERIOD, "0")); \
	ASSERT_EQ(0, promote_queue_start(&self->queue, self->t.lower));	\
	ASSERT_EQ(0, promote_file_make(&self->t.file,			\
				       FILE_PAGES * self->t.page,	\
				       self->t.lower, false));		\
} while (0)

/* In FIXTURE_TEARDOWN() */
#define END()								\
do {									\
	promote_queue_end(&self->queue);				\
	promote_test_end(&self->t);					\
} while (0)

#define RECORD()							\
	ASSERT_EQ(0, promote_queue_record(&self->queue, &self->t.file,	\
					  &self->t.before))

#define DRAIN() ASSERT_EQ(0, promote_queue_drain(&self->queue))

/* So many folios of the file have moved, and as many as have not are refused. */
#define EXPECT_FILE_MOVED(nr)						\
do {									\
	EXPECT_MOVED((nr) + self->queue.rung);				\
	EXPECT_EQ(FILE_PAGES - (nr),					\
		  promote_refused_since(&self->t.before));		\
} while (0)

/* All of the file leaves the page cache. */
FIXTURE(gone)
{
	struct promote_test t;
	struct promote_queue queue;
};

FIXTURE_VARIANT(gone)
{
	int (*go)(struct promote_file *file, struct promote_queue *q);
};

static int cut_off(struct promote_file *file, struct promote_queue *q)
{
	return ftruncate(file->fd, 0) ?: ftruncate(file->fd, file->size);
}

FIXTURE_VARIANT_ADD(gone, truncated)
{
	.go = cut_off,
};

static int punch_hole(struct promote_file *file, struct promote_queue *q)
{
	return fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 0, file->size);
}

FIXTURE_VARIANT_ADD(gone, hole_punched)
{
	.go = punch_hole,
};

static int invalidate(struct promote_file *file, struct promote_queue *q)
{
	return posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

FIXTURE_VARIANT_ADD(gone, invalidated)
{
	.go = invalidate,
};

static int drop_caches(struct promote_file *file, struct promote_queue *q)
{
	return promote_queue_drop_caches(q);
}

FIXTURE_VARIANT_ADD(gone, caches_dropped)
{
	.go = drop_caches,
};

/* Written past the page cache, which is invalidated for that. */
static int write_direct(struct promote_file *file, struct promote_queue *q)
{
	int fd = open(file->path, O_WRONLY | O_DIRECT), err;
	void *data;

	if (fd < 0 || posix_memalign(&data, 1 << 16, file->size))
		return -1;
	memset(data, 'd', file->size);
	err = pwrite(fd, data, file->size, 0) != (ssize_t)file->size;
	free(data);
	close(fd);
	return err;
}

FIXTURE_VARIANT_ADD(gone, written_directly)
{
	.go = write_direct,
};

FIXTURE_SETUP(gone)
{
	START();
}

FIXTURE_TEARDOWN(gone)
{
	END();
}

TEST_F_TIMEOUT(gone, is_stale, PROMOTE_TIMEOUT)
{
	RECORD();
	ASSERT_EQ(0, variant->go(&self->t.file, &self->queue));
	ASSERT_EQ(0, promote_file_resident(&self->t.file));
	DRAIN();
	EXPECT_FILE_MOVED(0);
	EXPECT_EQ(FILE_PAGES, SINCE(FAIL_STALE));
	EXPECT_EQ(0, promote_file_resident(&self->t.file));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

/* When it is written at once this is a folio of 8 pages and one of 4. */
#define LARGE_PAGES 12

/* The pages of the file become those of something that nobody reads. */
FIXTURE(reused)
{
	struct promote_test t;
	struct promote_queue queue;
	struct promote_file cold;
	unsigned long pfns[FILE_PAGES];
};

FIXTURE_VARIANT(reused)
{
	bool large;
	long (*reuse)(unsigned long *pfns, struct promote_file *cold, int node);
};

#define REUSE_BYTES (4UL << 20)
#define REUSE_PAGES (REUSE_BYTES >> 12)

static long in_both(const unsigned long *a, long nr_a, const unsigned long *b,
		    long nr_b)
{
	long i, j, nr = 0;

	for (i = 0; i < nr_a; i++) {
		for (j = 0; j < nr_b; j++)
			nr += a[i] && a[i] == b[j];
	}
	return nr;
}

/* How many of these pages does the file have now? */
static long had_before(unsigned long *pfns, struct promote_file *cold)
{
	static unsigned long now[REUSE_PAGES];

	if (promote_file_pfns(cold, now))
		return -1;
	return in_both(pfns, FILE_PAGES, now, cold->nr);
}

static long by_file(unsigned long *pfns, struct promote_file *cold, int node)
{
	if (promote_file_make(cold, REUSE_BYTES, node, false))
		return -1;
	return had_before(pfns, cold);
}

FIXTURE_VARIANT_ADD(reused, by_a_cold_file)
{
	.reuse = by_file,
};

static long by_large(unsigned long *pfns, struct promote_file *cold, int node)
{
	if (promote_policy(MPOL_BIND, node) ||
	    promote_file_create(cold, LARGE_PAGES * sysconf(_SC_PAGESIZE)) ||
	    fsync(cold->fd) || promote_policy(MPOL_DEFAULT, -1))
		return -1;
	return had_before(pfns, cold);
}

FIXTURE_VARIANT_ADD(reused, by_large_folios)
{
	.large = true,
	.reuse = by_large,
};

/* It ends with the test. */
static long by_anon(unsigned long *pfns, struct promote_file *cold, int node)
{
	static unsigned long now[REUSE_PAGES];
	long nr = REUSE_BYTES / sysconf(_SC_PAGESIZE);
	void *start;

	start = mmap(NULL, REUSE_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED || promote_policy(MPOL_BIND, node))
		return -1;
	madvise(start, REUSE_BYTES, MADV_NOHUGEPAGE);
	if (madvise(start, REUSE_BYTES, MADV_POPULATE_WRITE) ||
	    promote_policy(MPOL_DEFAULT, -1) ||
	    promote_map_pfns(start, nr, now))
		return -1;
	return in_both(pfns, FILE_PAGES, now, nr);
}

FIXTURE_VARIANT_ADD(reused, by_anonymous_memory)
{
	.reuse = by_anon,
};

FIXTURE_SETUP(reused)
{
	START();
	if (!variant->large)
		return;
	promote_file_remove(&self->t.file);
	ASSERT_EQ(0, promote_file_create(&self->t.file,
					 LARGE_PAGES * self->t.page));
}

FIXTURE_TEARDOWN(reused)
{
	promote_file_remove(&self->cold);
	END();
}

TEST_F_TIMEOUT(reused, is_stale, PROMOTE_TIMEOUT)
{
	struct promote_file *file = &self->t.file, *cold = &self->cold;

	RECORD();
	EXPECT_EQ(variant->large ? 2 : FILE_PAGES, self->queue.nr_folios);
	ASSERT_EQ(0, promote_file_pfns(file, self->pfns));
	ASSERT_EQ(0, invalidate(file, &self->queue));
	ASSERT_EQ(0, promote_file_resident(file));
	/* The kernel has a use for a few as well. */
	ASSERT_LE(file->nr / 2, variant->reuse(self->pfns, cold,
					       self->t.lower));
	DRAIN();
	EXPECT_MOVED(self->queue.rung);
	EXPECT_ALL_REFUSED_AS(STALE, variant->large ? 2 : FILE_PAGES);
	if (cold->nr) {
		EXPECT_TRUE(promote_file_is_on(cold, self->t.lower));
		EXPECT_EQ(0, promote_file_check(cold));
	}
	ASSERT_EQ(0, promote_file_place(file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

FIXTURE(waiting)
{
	struct promote_test t;
	struct promote_queue queue;
	unsigned long pfns[FILE_PAGES], later[FILE_PAGES];
};

FIXTURE_SETUP(waiting)
{
	START();
}

FIXTURE_TEARDOWN(waiting)
{
	END();
}

/* One that is gone or in use does not stop the others. */
TEST_F_TIMEOUT(waiting, hole_in_the_middle, PROMOTE_TIMEOUT)
{
	long page = self->t.page;

	RECORD();
	ASSERT_EQ(0, fallocate(self->t.file.fd,
			       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       HALF / 2 * page, HALF * page));
	ASSERT_EQ(HALF, promote_file_resident(&self->t.file));
	DRAIN();
	EXPECT_FILE_MOVED(HALF);
	EXPECT_EQ(HALF, SINCE(FAIL_STALE));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(waiting, mapped_in_part, PROMOTE_TIMEOUT)
{
	long size = HALF * self->t.page;
	void *map;

	RECORD();
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, self->t.file.fd, 0);
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, madvise(map, size, MADV_POPULATE_READ));
	DRAIN();
	EXPECT_FILE_MOVED(HALF);
	EXPECT_EQ(HALF, SINCE(FAIL_MAPPED));
	ASSERT_EQ(0, munmap(map, size));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_F_TIMEOUT(waiting, mapped_in_between, PROMOTE_TIMEOUT)
{
	RECORD();
	ASSERT_EQ(0, promote_file_pfns(&self->t.file, self->pfns));
	DRAIN();
	EXPECT_FILE_MOVED(FILE_PAGES);
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

/* Once written the pages have buffers, and those a reference. */
TEST_F_TIMEOUT(waiting, private_data, PROMOTE_TIMEOUT)
{
	long private;

	RECORD();
	ASSERT_EQ(0, promote_file_overwrite(&self->t.file));
	ASSERT_EQ(0, fsync(self->t.file.fd));
	private = promote_file_flagged(&self->t.file, KPF_PRIVATE);
	if (!private)
		SKIP(return, "no private data on this file system");
	EXPECT_EQ(FILE_PAGES, private);
	DRAIN();
	EXPECT_FILE_MOVED(FILE_PAGES);
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* Pin the memory of a file, as for DMA: buffers of an io_uring. */
static int pin(struct promote_file *file)
{
	struct io_uring_params params = { };
	struct iovec iov = { .iov_len = file->size };
	int ring = syscall(SYS_io_uring_setup, 1, &params);
	int err = 0;

	if (ring < 0)
		return -errno;
	iov.iov_base = mmap(NULL, file->size, PROT_READ | PROT_WRITE,
			    MAP_SHARED, file->fd, 0);
	if (iov.iov_base == MAP_FAILED)
		err = -errno;
	else if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS,
			 &iov, 1))
		err = -errno;
	else
		munmap(iov.iov_base, file->size);
	if (!err)
		return ring;
	close(ring);
	return err;
}

static int unpin(int ring)
{
	int err = syscall(SYS_io_uring_register, ring,
			  IORING_UNREGISTER_BUFFERS, NULL, 0);

	return close(ring) ? -errno : err;
}

TEST_F_TIMEOUT(waiting, pinned_for_dma, PROMOTE_TIMEOUT)
{
	int ring;

	promote_file_remove(&self->t.file);
	ASSERT_EQ(0, promote_tmpfs_start(self->t.tmpfs, NULL));
	ASSERT_EQ(0, promote_file_create(&self->t.file,
					 FILE_PAGES * self->t.page));
	RECORD();
	ring = pin(&self->t.file);
	if (ring == -ENOSYS)
		SKIP(return, "no CONFIG_IO_URING in this kernel");
	ASSERT_LE(0, ring);
	ASSERT_EQ(0, promote_file_pfns(&self->t.file, self->pfns));
	DRAIN();
	EXPECT_FILE_MOVED(0);
	EXPECT_EQ(FILE_PAGES, SINCE(FAIL_BUSY));
	/* The device must not write to what the file no longer has. */
	ASSERT_EQ(0, promote_file_pfns(&self->t.file, self->later));
	EXPECT_EQ(0, memcmp(self->pfns, self->later, sizeof(self->pfns)));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	ASSERT_EQ(0, unpin(ring));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* Memory failure takes the page out of the page cache, and the LRU. */
TEST_F_TIMEOUT(waiting, poisoned, PROMOTE_TIMEOUT)
{
	const unsigned long *bad = &self->pfns[HALF];

	if (access(HWPOISON "corrupt-pfn", W_OK))
		SKIP(return, "no CONFIG_HWPOISON_INJECT in this kernel");
	RECORD();
	ASSERT_EQ(0, promote_file_pfns(&self->t.file, self->pfns));
	ASSERT_EQ(0, promote_write_number(HWPOISON "corrupt-pfn", *bad));
	EXPECT_TRUE(promote_page_flags(*bad) >> KPF_HWPOISON & 1);
	EXPECT_EQ(FILE_PAGES - 1, promote_file_resident(&self->t.file));
	DRAIN();
	EXPECT_FILE_MOVED(FILE_PAGES - 1);
	/* It was left alone, or it could not be brought back. */
	EXPECT_TRUE(promote_page_flags(*bad) >> KPF_HWPOISON & 1);
	ASSERT_EQ(0, promote_write_number(HWPOISON "unpoison-pfn", *bad));
	ASSERT_EQ(0, promote_file_check(&self->t.file));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES_NOW();
}

/* What can never move, and is read all the time. */
FIXTURE(permanent)
{
	struct promote_test t;
	struct promote_queue queue;
	int pipes[2];
};

FIXTURE_VARIANT(permanent)
{
	enum promote_counter reason;
	int (*begin)(struct promote_file *file, int pipes[2]);
	int (*end)(struct promote_file *file, int pipes[2]);
};

static int release_pipe(struct promote_file *file, int pipes[2])
{
	return close(pipes[0]) | close(pipes[1]);
}

FIXTURE_VARIANT_ADD(permanent, busy)
{
	.reason = PROMOTE_FAIL_BUSY,
	.begin = promote_file_to_pipe,
	.end = release_pipe,
};

static int make_dirty(struct promote_file *file, int pipes[2])
{
	return promote_file_overwrite(file);
}

static int make_clean(struct promote_file *file, int pipes[2])
{
	return fsync(file->fd);
}

FIXTURE_VARIANT_ADD(permanent, dirty)
{
	.reason = PROMOTE_FAIL_DIRTY,
	.begin = make_dirty,
	.end = make_clean,
};

FIXTURE_SETUP(permanent)
{
	START();
}

FIXTURE_TEARDOWN(permanent)
{
	END();
}

#define HOT_MS 3500
#define HOT_PASSES 40

TEST_F_TIMEOUT(permanent, backs_off, PROMOTE_TIMEOUT)
{
	long start, seconds;
	int passes = 0;

	RECORD();
	ASSERT_EQ(0, variant->begin(&self->t.file, self->pipes));
	DRAIN();
	ASSERT_EQ(FILE_PAGES, promote_since(&self->t.before, variant->reason));
	promote_count(&self->t.before);
	start = promote_now_ms();
	while (passes++ < HOT_PASSES || promote_now_ms() - start < HOT_MS)
		ASSERT_EQ(0, promote_file_passes(&self->t.file, 1));
	seconds = (promote_now_ms() - start) / 1000;
	/* Once a second each, and not never. */
	EXPECT_LE(2 * FILE_PAGES, promote_since(&self->t.before,
						variant->reason));
	EXPECT_GE((seconds + 1) * FILE_PAGES, SINCE(DRAINED));
	EXPECT_EQ(SINCE(DRAINED), promote_since(&self->t.before,
						variant->reason));
	EXPECT_MOVED(0);
	ASSERT_EQ(0, variant->end(&self->t.file, self->pipes));
	EXPECT_MOVES_NOW();
}

/*
 * Some folios have the readahead mark, which shares a bit with the one of what
 * is to be reclaimed. It goes when a reader comes by, unless it does not read
 * ahead: then it stays, and moves along.
 */
FIXTURE(marked)
{
	struct promote_test t;
};

#define WINDOW_KB "128"
#define WINDOW_BYTES (128UL << 10)
#define MARKED_BYTES (4UL << 20)

/* How far descriptors that are opened from now on read ahead, and this one. */
static int set_readahead(struct promote_test *t, const char *kb)
{
	char path[128];
	struct stat st;
	int err;

	if (fstat(t->file.fd, &st))
		return -errno;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb",
		 major(st.st_dev), minor(st.st_dev));
	err = promote_set(&t->saved, path, kb);
	return err ? err : -posix_fadvise(t->file.fd, 0, 0, POSIX_FADV_NORMAL);
}

/*
 * A fault reads a window around it, with a mark in its last quarter. One in the
 * middle of each reads the file, and comes upon no mark.
 */
static int fault_windows_in(void *arg)
{
	struct promote_test *t = arg;
	long page = t->page;
	size_t at;
	char *map;
	int fd;

	if (promote_policy(MPOL_BIND, t->lower))
		return 1;
	fd = open(t->file.path, O_RDONLY);
	map = mmap(NULL, t->file.size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return 2;
	for (at = WINDOW_BYTES / 2; at < t->file.size; at += WINDOW_BYTES) {
		if (madvise(map + at, page, MADV_POPULATE_READ))
			return 3;
	}
	return 0;
}

FIXTURE_SETUP(marked)
{
	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_file_create(&self->t.file, MARKED_BYTES));
	ASSERT_EQ(0, promote_file_drop(&self->t.file));
	ASSERT_EQ(0, set_readahead(&self->t, WINDOW_KB));
	ASSERT_EQ(0, promote_in_child(fault_windows_in, &self->t));
	ASSERT_EQ(0, set_readahead(&self->t, "0"));
	promote_flush_lru();
	promote_count(&self->t.before);
}

FIXTURE_TEARDOWN(marked)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(marked, for_readahead, PROMOTE_TIMEOUT)
{
	struct promote_file *file = &self->t.file;
	struct promote_where where;
	long marks;

	ASSERT_EQ(0, promote_file_where(file, &where));
	EXPECT_EQ(file->nr, where.on_node[self->t.lower]);
	marks = promote_file_flagged(file, KPF_RECLAIM);
	printf("# %ld of %ld pages are marked\n", marks, file->nr);
	ASSERT_LE((long)(MARKED_BYTES / WINDOW_BYTES / 2), marks);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_read_until_moved(file, &self->t.before));
	EXPECT_EQ(file->nr, SINCE(SUCCESS));
	EXPECT_TRUE(promote_file_is_on(file, self->t.top));
	EXPECT_EQ(marks, promote_file_flagged(file, KPF_RECLAIM));
	EXPECT_EQ(0, promote_file_check(file));
}

TEST_HARNESS_MAIN
