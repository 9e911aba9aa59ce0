// SPDX-License-Identifier: GPL-2.0
/*
 * A file that is promoted lies in memory in the order in which it was read:
 * what is read one after the other is next to each other. Reversed, or mixed,
 * it would be slower to read for as long as it is cached.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FILE_BYTES (8UL << 20)
/* More than a CPU has in its lists of free pages, and more than scraps. */
#define SCRAP_BYTES (64UL << 20)
#define PAGEMAP_PRESENT 0x8000000000000000ULL
#define PAGEMAP_PFN 0x7fffffffffffffULL

FIXTURE(order)
{
	struct promote_test t;
};

FIXTURE_VARIANT(order)
{
	const char *lru_gen;
	/* From a page to the one that is read next. */
	int step;
};

FIXTURE_VARIANT_ADD(order, classic_forward)
{
	.lru_gen = "n",
	.step = 1,
};

FIXTURE_VARIANT_ADD(order, classic_backward)
{
	.lru_gen = "n",
	.step = -1,
};

FIXTURE_VARIANT_ADD(order, mglru_forward)
{
	.lru_gen = "y",
	.step = 1,
};

FIXTURE_VARIANT_ADD(order, mglru_backward)
{
	.lru_gen = "y",
	.step = -1,
};

/*
 * What was freed last is allocated first, page by page, in the order in which
 * it came. Take it out of the way, and what is left comes from whole blocks.
 */
static int use_up_scraps(int node)
{
	cpu_set_t cpu;
	void *map;
	int err;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	if (sched_setaffinity(0, sizeof(cpu), &cpu))
		return -errno;
	map = mmap(NULL, SCRAP_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	madvise(map, SCRAP_BYTES, MADV_NOHUGEPAGE);
	err = promote_policy(MPOL_BIND, node);
	if (!err && madvise(map, SCRAP_BYTES, MADV_POPULATE_WRITE))
		err = -errno;
	return promote_policy(MPOL_DEFAULT, -1) ? -EINVAL : err;
}

FIXTURE_SETUP(order)
{
	PROMOTE_TEST_START(variant->lru_gen);
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
}

FIXTURE_TEARDOWN(order)
{
	promote_test_end(&self->t);
}

struct placer {
	struct promote_file *file;
	int node;
};

/* Read every page once, in an order that is always the same and looks random. */
static int place_scattered(void *arg)
{
	struct placer *placer = arg;
	long page = sysconf(_SC_PAGESIZE), i, at = 0;
	char buf[1 << 16];

	if (promote_policy(MPOL_BIND, placer->node))
		return 1;
	posix_fadvise(placer->file->fd, 0, 0, POSIX_FADV_RANDOM);
	for (i = 0; i < placer->file->nr; i++) {
		if (pread(placer->file->fd, buf, page, at * page) != page)
			return 2;
		/* Comes by every number below a power of two. */
		at = (at * 1664525 + 1013904223) % placer->file->nr;
	}
	return 0;
}

static int read_pages(struct promote_file *file, int step, long page)
{
	long i, at = step > 0 ? 0 : file->nr - 1;
	char buf[1 << 16];

	for (i = 0; i < file->nr; i++, at += step) {
		if (pread(file->fd, buf, page, at * page) != page)
			return -EIO;
	}
	return 0;
}

/* Of 100 pages, how many does physical memory follow with their successor? */
static long count_in_order(struct promote_file *file, void *map, int step)
{
	long page = sysconf(_SC_PAGESIZE), i, in_order = 0;
	size_t size = file->nr * sizeof(unsigned long long);
	unsigned long long *entry = malloc(size);
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0 || !entry ||
	    pread(fd, entry, size, (unsigned long)map / page *
		  sizeof(*entry)) != (ssize_t)size)
		in_order = -1;
	for (i = 1; i < file->nr && in_order >= 0; i++) {
		if (!(entry[i] & PAGEMAP_PRESENT))
			in_order = -1;
		else if ((entry[i] & PAGEMAP_PFN) ==
			 (entry[i - 1] & PAGEMAP_PFN) + step)
			in_order++;
	}
	close(fd);
	free(entry);
	return in_order < 0 ? -1 : in_order * 100 / (file->nr - 1);
}

/* To be called with promotion off: mapping the file counts as accesses. */
static long percent_in_order(struct promote_file *file, int step)
{
	long percent = -1;
	void *map;

	map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED)
		return -1;
	if (!madvise(map, file->size, MADV_POPULATE_READ))
		percent = count_in_order(file, map, step);
	munmap(map, file->size);
	return percent;
}

TEST_F_TIMEOUT(order, follows_the_reader, PROMOTE_TIMEOUT)
{
	struct placer placer = { &self->t.file, self->t.lower };
	long percent;
	int i;

	ASSERT_EQ(0, promote_file_drop(&self->t.file));
	ASSERT_EQ(0, promote_in_child(place_scattered, &placer));
	promote_flush_lru();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	percent = percent_in_order(&self->t.file, variant->step);
	EXPECT_LE(0, percent);
	EXPECT_GT(10, percent);
	ASSERT_EQ(0, use_up_scraps(self->t.top));

	posix_fadvise(self->t.file.fd, 0, 0, POSIX_FADV_RANDOM);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	for (i = 0; i < PROMOTE_MAX_PASSES; i++) {
		ASSERT_EQ(0, read_pages(&self->t.file, variant->step,
					self->t.page));
		if (SINCE(SUCCESS) >= self->t.file.nr)
			break;
		promote_flush_lru();
		usleep(PROMOTE_GAP_US);
	}
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "0"));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	percent = percent_in_order(&self->t.file, variant->step);
	printf("# %ld %% of the pages are followed by the one read next\n",
	       percent);
	EXPECT_LT(80, percent);
}

TEST_HARNESS_MAIN
