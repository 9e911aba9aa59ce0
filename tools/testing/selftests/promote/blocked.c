// SPDX-License-Identifier: GPL-2.0
/*
 * A reader blocks in a system call with pages recorded, and may do so for ever.
 * Nobody else must notice: the pages can be dropped, cut off and reclaimed
 * meanwhile, none of them is isolated, and then the reader goes on well. What
 * blocks it is the last page of the memory that it reads into.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "promote_test.h"

#define FILE_BYTES (2UL << 20)
/* Folios that a read holds at a time: struct folio_batch. */
#define READ_BATCH 31
#define WAIT_MS 60000

FIXTURE(blocked)
{
	struct promote_test t;
	char *buf;
	int uffd;
	pthread_t thread;
};

PROMOTE_LRU_VARIANTS(blocked);

struct reader {
	struct promote_file *file;
	char *buf;
};

/*
 * The first hot page has the list allocated, then all are recorded. That page
 * is not the one with which the second read starts, or it is not marked again.
 */
static void *read_and_block(void *arg)
{
	struct reader *reader = arg;
	struct promote_file *file = reader->file;

	if (pread(file->fd, reader->buf, 1, file->size / 2) != 1)
		return NULL;
	return (void *)pread(file->fd, reader->buf, file->size, 0);
}

static int open_uffd(char *start, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (unsigned long)start, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static int wait_until_blocked(int uffd)
{
	struct pollfd poll_fd = { .fd = uffd, .events = POLLIN };

	return poll(&poll_fd, 1, WAIT_MS) == 1 ? 0 : -ETIMEDOUT;
}

FIXTURE_SETUP(blocked)
{
	static struct reader reader;

	PROMOTE_TEST_START(variant->lru_gen);
	self->buf = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->buf);
	madvise(self->buf, FILE_BYTES, MADV_NOHUGEPAGE);
	self->uffd = open_uffd(self->buf + FILE_BYTES - self->t.page,
			       self->t.page);
	if (self->uffd < 0)
		SKIP(return, "no userfaultfd");

	ASSERT_EQ(0, promote_test_make_hot(&self->t, FILE_BYTES));
	reader = (struct reader) { &self->t.file, self->buf };
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, read_and_block, &reader));
	ASSERT_EQ(0, wait_until_blocked(self->uffd));
	/* All were recorded and are due, but none has been moved. */
	ASSERT_LE(self->t.file.nr - READ_BATCH, SINCE(QUEUED));
	ASSERT_EQ(0, SINCE(DRAINED));
}

FIXTURE_TEARDOWN(blocked)
{
	promote_test_end(&self->t);
}

static long isolated(struct promote_test *t)
{
	return promote_node_stat(t->top, "nr_isolated_file") +
	       promote_node_stat(t->lower, "nr_isolated_file");
}

/* Let the reader go on; the number of bytes that it has read. */
static long unblock(int uffd, char *page, size_t size, pthread_t thread)
{
	struct uffdio_range range = { (unsigned long)page, size };
	void *done;

	if (ioctl(uffd, UFFDIO_UNREGISTER, &range))
		return -errno;
	pthread_join(thread, &done);
	close(uffd);
	return (long)done;
}

#define EXPECT_GOES_ON_WELL()						\
do {									\
	EXPECT_EQ(FILE_BYTES, unblock(self->uffd, self->buf + FILE_BYTES - \
				      self->t.page, self->t.page,	\
				      self->thread));			\
	EXPECT_LT(0, SINCE(DRAINED));					\
	EXPECT_EQ(0, isolated(&self->t));				\
} while (0)

/* The control of the others. */
TEST_F_TIMEOUT(blocked, promotes_later, PROMOTE_TIMEOUT)
{
	EXPECT_EQ(0, isolated(&self->t));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_GOES_ON_WELL();
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* What it is just reading, the reader holds; the rest may not come back. */
#define EXPECT_DROPPED_FOR_GOOD()					\
do {									\
	EXPECT_GE(READ_BATCH, promote_file_resident(&self->t.file));	\
	EXPECT_EQ(0, isolated(&self->t));				\
	EXPECT_GOES_ON_WELL();						\
	EXPECT_GE(READ_BATCH, SINCE(SUCCESS));				\
	EXPECT_LT(0, SINCE(FAIL_STALE));				\
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false)); \
	EXPECT_MOVES_NOW();						\
	EXPECT_EQ(0, promote_file_check(&self->t.file));		\
} while (0)

TEST_F_TIMEOUT(blocked, fadvise_drops_the_pages, PROMOTE_TIMEOUT)
{
	posix_fadvise(self->t.file.fd, 0, 0, POSIX_FADV_DONTNEED);
	EXPECT_DROPPED_FOR_GOOD();
}

TEST_F_TIMEOUT(blocked, drop_caches_drops_the_pages, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_write("/proc/sys/vm/drop_caches", "1"));
	EXPECT_DROPPED_FOR_GOOD();
}

TEST_F_TIMEOUT(blocked, truncate_cuts_the_pages_off, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, ftruncate(self->t.file.fd, 0));
	ASSERT_EQ(0, ftruncate(self->t.file.fd, FILE_BYTES));
	EXPECT_EQ(0, promote_file_resident(&self->t.file));
	EXPECT_EQ(0, isolated(&self->t));
	EXPECT_GOES_ON_WELL();
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_EQ(SINCE(DRAINED), SINCE(FAIL_STALE));
}

TEST_HARNESS_MAIN
