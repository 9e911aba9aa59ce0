// SPDX-License-Identifier: GPL-2.0
/*
 * What depends on the file system: the files of all kinds of them are promoted,
 * in folios of whatever order, also when they have just been written and when
 * the file system keeps data of its own with each folio; journalled data, block
 * devices and directories never are.
 *
 * One run tests one file system, that of $TMPDIR or of the current directory.
 * If it cannot be written, PROMOTE_TEST_FILE names a file on it. No file system
 * can do everything that is tested here: the rest is skipped, with the reason.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "promote_test.h"

/* Small: debug kernels are slow, and there are many file systems. */
#define FILE_BYTES (512UL * 1024)
/* Readahead starts with small folios: to have large ones takes more. */
#define LARGE_FILE_BYTES (4UL << 20)
/* Passes after which any LRU takes a file for hot. */
#define HOT_PASSES 10
/* Passes after which it has been drained, also if it was refused before. */
#define MOST_PASSES 200
/* What is written at a time: leaves order-0 folios, or large ones. */
#define SMALL 4096
#define LARGE (256 * 1024)
#define DROP_CACHES "/proc/sys/vm/drop_caches"
#define PMD_SIZE "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
/* Writeback would clean the pages under the test. */
#define WRITEBACK "/proc/sys/vm/dirty_writeback_centisecs"

/* Read until the counter has grown this much, but not for ever. */
static int read_until(struct promote_test *t, enum promote_counter counter,
		      long nr)
{
	struct promote_counts before;
	int i, err = 0;

	promote_count(&before);
	for (i = 0; i < MOST_PASSES && !err; i += 2) {
		err = promote_file_passes(&t->file, 2);
		if (promote_since(&before, counter) >= nr)
			break;
	}
	return err;
}

#define EXPECT_MOVES()							\
do {									\
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));		\
	ASSERT_EQ(0, read_until(&self->t, PROMOTE_SUCCESS,		\
				self->t.file.nr));			\
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));	\
} while (0)

static bool in_memory_only(struct promote_file *file)
{
	struct statfs fs;

	return !fstatfs(file->fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* Write it while this task allocates on the node; leaves it dirty. */
static int write_on_node(struct promote_file *file, int node, size_t chunk)
{
	int err = promote_policy(MPOL_BIND, node);

	err = err ? err : promote_file_write(file, chunk);
	return promote_policy(MPOL_DEFAULT, -1) ? -EINVAL : err;
}

/* The file to read, its pages on the node. */
static int make_file(struct promote_file *file, int node, bool large)
{
	size_t size = large ? LARGE_FILE_BYTES : FILE_BYTES;
	const char *path = getenv("PROMOTE_TEST_FILE");
	int err;

	if (path)
		err = promote_file_open(file, path, size);
	else
		err = promote_file_new(file, size);
	if (!err && !path)
		err = write_on_node(file, node, LARGE);
	if (!err && !in_memory_only(file))
		err = promote_file_place(file, node, large);
	return err;
}

/*
 * The control for what is never promoted, and has no other: memory that belongs
 * to no file system's file is promoted by the same accesses.
 */
static int make_memory(struct promote_file *file, int node)
{
	promote_file_remove(file);
	memset(file, 0, sizeof(*file));
	file->fd = memfd_create("promote", 0);
	if (file->fd < 0)
		return -errno;
	file->size = FILE_BYTES;
	file->nr = file->size / sysconf(_SC_PAGESIZE);
	return write_on_node(file, node, LARGE);
}

#define EXPECT_MEMORY_MOVES()						\
do {									\
	ASSERT_EQ(0, make_memory(&self->t.file, self->t.lower));	\
	EXPECT_MOVES();						\
} while (0)

static long pages_of_pmd(void)
{
	char text[32];

	if (promote_read(PMD_SIZE, text, sizeof(text)) <= 0)
		return 0;
	return strtol(text, NULL, 10) / sysconf(_SC_PAGESIZE);
}

/* A file that is read. */
FIXTURE(hot)
{
	struct promote_test t;
};

FIXTURE_VARIANT(hot)
{
	bool large;
	bool pmd;
};

FIXTURE_VARIANT_ADD(hot, order0)
{
};

FIXTURE_VARIANT_ADD(hot, large)
{
	.large = true,
};

FIXTURE_VARIANT_ADD(hot, pmd)
{
	.large = true,
	.pmd = true,
};

FIXTURE_SETUP(hot)
{
	PROMOTE_TEST_START(NULL);
}

FIXTURE_TEARDOWN(hot)
{
	promote_test_end(&self->t);
}

static bool has_order(const struct promote_where *where, long nr,
		      const struct _fixture_variant_hot *variant)
{
	if (variant->pmd)
		return pages_of_pmd() &&
		       where->tails == nr - nr / pages_of_pmd();
	return variant->large == !!where->tails;
}

TEST_F_TIMEOUT(hot, is_promoted, PROMOTE_TIMEOUT)
{
	struct promote_where before, after;
	struct stat was, is;

	ASSERT_EQ(0, make_file(&self->t.file, self->t.lower, variant->large));
	ASSERT_EQ(0, promote_file_where(&self->t.file, &before));
	ASSERT_EQ(self->t.file.nr, before.on_node[self->t.lower]);
	if (!has_order(&before, self->t.file.nr, variant))
		SKIP(return, "%ld of %ld pages are inside large folios here",
		     before.tails, self->t.file.nr);
	ASSERT_EQ(0, fstat(self->t.file.fd, &was));
	ASSERT_EQ(4711, lseek(self->t.file.fd, 4711, SEEK_SET));
	promote_count(&self->t.before);

	EXPECT_MOVES();
	EXPECT_LE(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	ASSERT_EQ(0, promote_file_where(&self->t.file, &after));
	EXPECT_EQ(before.tails, after.tails);
	EXPECT_EQ(before.private, after.private);

	EXPECT_EQ(4711, lseek(self->t.file.fd, 0, SEEK_CUR));
	ASSERT_EQ(0, fstat(self->t.file.fd, &is));
	EXPECT_EQ(was.st_size, is.st_size);
	EXPECT_EQ(was.st_blocks, is.st_blocks);
	EXPECT_EQ(was.st_mtime, is.st_mtime);
}

/* A file that is written and then read. */
FIXTURE(written)
{
	struct promote_test t;
	long dirty;
};

FIXTURE_VARIANT(written)
{
	size_t chunk;
};

FIXTURE_VARIANT_ADD(written, small_writes)
{
	.chunk = SMALL,
};

FIXTURE_VARIANT_ADD(written, large_writes)
{
	.chunk = LARGE,
};

static long nr_dirty(const struct promote_test *t)
{
	return promote_node_stat(t->lower, "nr_dirty");
}

FIXTURE_SETUP(written)
{
	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_set(&self->t.saved, WRITEBACK, "0"));
	/* What is dirty now need not stay so. */
	sync();
	self->dirty = nr_dirty(&self->t);
	ASSERT_EQ(0, promote_file_new(&self->t.file, FILE_BYTES));
	ASSERT_EQ(0, write_on_node(&self->t.file, self->t.lower,
				   variant->chunk));
	promote_flush_lru();
	self->dirty = nr_dirty(&self->t) - self->dirty;
	promote_count(&self->t.before);
}

FIXTURE_TEARDOWN(written)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(written, is_promoted_after_writeback, PROMOTE_TIMEOUT)
{
	long dirty = nr_dirty(&self->t);

	if (self->dirty < self->t.file.nr)
		SKIP(return, "nothing that can be written back, or at once");
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, read_until(&self->t, PROMOTE_FAIL_DIRTY, 1));
	EXPECT_LE(dirty, nr_dirty(&self->t));
	EXPECT_NOTHING_MOVED();
	EXPECT_REFUSED_ONLY_AS(DIRTY);

	ASSERT_EQ(0, fsync(self->t.file.fd));
	EXPECT_MOVES();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
	/* What has reached the disk is right, too. */
	ASSERT_EQ(0, promote_file_drop(&self->t.file));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

TEST_F_TIMEOUT(written, is_promoted_without_writeback, PROMOTE_TIMEOUT)
{
	if (self->dirty >= self->t.file.nr)
		SKIP(return, "has to be written back first");
	EXPECT_MOVES();
	EXPECT_LE(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/*
 * A file whose folios have private data: buffer heads, or the state of the
 * blocks in the folio.
 */
FIXTURE(private_data)
{
	struct promote_test t;
};

FIXTURE_VARIANT(private_data)
{
	size_t chunk;
};

FIXTURE_VARIANT_ADD(private_data, after_small_writes)
{
	.chunk = SMALL,
};

FIXTURE_VARIANT_ADD(private_data, after_large_writes)
{
	.chunk = LARGE,
};

FIXTURE_SETUP(private_data)
{
	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_file_new(&self->t.file, FILE_BYTES));
	ASSERT_EQ(0, write_on_node(&self->t.file, self->t.lower,
				   variant->chunk));
	ASSERT_EQ(0, fsync(self->t.file.fd));
	promote_flush_lru();
	promote_count(&self->t.before);
}

FIXTURE_TEARDOWN(private_data)
{
	promote_test_end(&self->t);
}

/* Change a part of a block in each page. */
static int write_parts(struct promote_file *file, long page)
{
	char text[32];
	long i;

	for (i = 0; i < file->nr; i++) {
		memset(text, i, sizeof(text));
		if (pwrite(file->fd, text, sizeof(text), i * page + 2000) < 0)
			return -errno;
	}
	return promote_file_learn(file);
}

TEST_F_TIMEOUT(private_data, moves_along, PROMOTE_TIMEOUT)
{
	struct promote_where where;

	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_EQ(self->t.file.nr, where.on_node[self->t.lower]);
	if (where.private < self->t.file.nr)
		SKIP(return, "%ld of %ld pages have private data here",
		     where.private, self->t.file.nr);
	if (variant->chunk == LARGE && !where.tails)
		SKIP(return, "no large folios here");

	EXPECT_MOVES();
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	EXPECT_EQ(self->t.file.nr, where.private);
	EXPECT_EQ(0, promote_file_check(&self->t.file));

	/* It is that of the new folio: what is written by its means is right. */
	ASSERT_EQ(0, write_parts(&self->t.file, self->t.page));
	ASSERT_EQ(0, promote_file_drop(&self->t.file));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/* What is never promoted. On the LRU that says which pages it takes for hot. */
FIXTURE(never)
{
	struct promote_test t;
};

FIXTURE_SETUP(never)
{
	PROMOTE_TEST_START("n");
}

FIXTURE_TEARDOWN(never)
{
	promote_test_end(&self->t);
}

#define EXPECT_STAYS_THOUGH_HOT()					\
do {									\
	struct promote_where where;					\
									\
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));		\
	promote_count(&self->t.before);					\
	ASSERT_EQ(0, promote_file_passes(&self->t.file, HOT_PASSES)); \
	EXPECT_NOTHING_DONE();						\
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));	\
	EXPECT_EQ(self->t.file.nr, where.on_node[self->t.lower]);	\
	EXPECT_EQ(self->t.file.nr, where.active);			\
} while (0)

/* Is the file system mounted with this option? */
static bool has_mount_option(int fd, const char *option)
{
	char line[1024], wanted[32];
	bool found = false;
	struct stat stat;
	FILE *mounts;

	mounts = fopen("/proc/self/mountinfo", "r");
	if (!mounts || fstat(fd, &stat))
		return false;
	snprintf(wanted, sizeof(wanted), " %u:%u ", major(stat.st_dev),
		 minor(stat.st_dev));
	while (!found && fgets(line, sizeof(line), mounts))
		found = strstr(line, wanted) && strstr(line, option);
	fclose(mounts);
	return found;
}

static int journal_data(int fd, bool on)
{
	int flags;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags))
		return -errno;
	flags = on ? flags | FS_JOURNAL_DATA_FL : flags & ~FS_JOURNAL_DATA_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags) ? -errno : 0;
}

/*
 * Ext4 journals data on a mount that says so, or without delayed allocation
 * that of a file that has the flag.
 */
TEST_F_TIMEOUT(never, journalled_data, PROMOTE_TIMEOUT)
{
	bool all, single;

	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
	all = has_mount_option(self->t.file.fd, "data=journal");
	single = has_mount_option(self->t.file.fd, "nodelalloc");
	if (!all && (!single || journal_data(self->t.file.fd, true)))
		SKIP(return, "data is not journalled here");
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_STAYS_THOUGH_HOT();
	if (all) {
		EXPECT_MEMORY_MOVES();
		return;
	}
	ASSERT_EQ(0, journal_data(self->t.file.fd, false));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_MOVES();
}

static bool is_block_device(const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && S_ISBLK(st.st_mode);
}

TEST_F_TIMEOUT(never, block_device, PROMOTE_TIMEOUT)
{
	const char *path = getenv("PROMOTE_TEST_FILE");

	if (!is_block_device(path))
		SKIP(return, "PROMOTE_TEST_FILE names no block device");
	ASSERT_EQ(0, promote_file_open(&self->t.file, path, FILE_BYTES));
	ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower, false));
	EXPECT_STAYS_THOUGH_HOT();
	EXPECT_MEMORY_MOVES();
}

/* A directory of some 50 KiB, which is metadata in the page cache of some. */
#define NR_ENTRIES 200
#define NAME_LENGTH 200

struct directory {
	char path[PATH_MAX];
	const char *cgroup;
};

static void entry_name(char *name, size_t size, struct directory *dir, int i)
{
	snprintf(name, size, "%s/%0*d", dir->path, NAME_LENGTH, i);
}

static int fill_directory(struct directory *dir)
{
	char name[PATH_MAX + NAME_LENGTH + 2];
	int i, fd;

	for (i = 0; i < NR_ENTRIES; i++) {
		entry_name(name, sizeof(name), dir, i);
		fd = open(name, O_CREAT | O_WRONLY, 0600);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	return 0;
}

static void remove_directory(struct directory *dir)
{
	char name[PATH_MAX + NAME_LENGTH + 2];
	int i;

	for (i = 0; i < NR_ENTRIES; i++) {
		entry_name(name, sizeof(name), dir, i);
		unlink(name);
	}
	rmdir(dir->path);
}

static int read_directory(struct directory *dir)
{
	int nr = 0;
	DIR *d;

	d = opendir(dir->path);
	if (!d)
		return -errno;
	while (readdir(d))
		nr++;
	closedir(d);
	return nr < NR_ENTRIES ? -ENOENT : 0;
}

static int drop_metadata(void)
{
	int err;

	sync();
	/* What the journal keeps is dropped the second time. */
	err = promote_write(DROP_CACHES, "3");
	return err ? err : promote_write(DROP_CACHES, "3");
}

/*
 * Make the directory where this task may allocate. What is written back and
 * dropped is read in there again; what the journal keeps has been there all the
 * time. A memory policy would not do: btrfs allocates metadata without it.
 */
static int make_directory_confined(void *arg)
{
	struct directory *dir = arg;

	if (promote_cgroup_enter(dir->cgroup))
		return 1;
	if (mkdir(dir->path, 0700) || fill_directory(dir))
		return 2;
	return drop_metadata() || read_directory(dir) ? 3 : 0;
}

/* Page cache of the lower node that the LRU takes for hot. */
static long nr_active(const struct promote_test *t)
{
	promote_flush_lru();
	return promote_node_stat(t->lower, "nr_active_file");
}

static bool make_cpuset(char *path, size_t size, int node)
{
	char text[16];

	if (!promote_cgroup("lower", path, size))
		return false;
	snprintf(text, sizeof(text), "%d", node);
	return !promote_cgroup_set(path, "cpuset.mems", text);
}

TEST_F_TIMEOUT(never, directory, PROMOTE_TIMEOUT)
{
	const char *tmp = getenv("TMPDIR");
	struct directory dir = { .cgroup = self->t.cgroup };
	long active;
	int i;

	if (!make_cpuset(self->t.cgroup, sizeof(self->t.cgroup), self->t.lower))
		SKIP(return, "no cpuset and memory controllers");
	snprintf(dir.path, sizeof(dir.path), "%s/promote.dir", tmp ? tmp : ".");
	ASSERT_EQ(0, drop_metadata());
	active = nr_active(&self->t);
	EXPECT_EQ(0, promote_in_child(make_directory_confined, &dir));

	EXPECT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	for (i = 0; i < HOT_PASSES; i++) {
		EXPECT_EQ(0, read_directory(&dir));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_NOTHING_DONE();
	active = nr_active(&self->t) - active;
	remove_directory(&dir);
	/* SKIP() would hide it. */
	if (!__test_passed(_metadata))
		return;
	if (active < NR_ENTRIES * NAME_LENGTH / self->t.page)
		SKIP(return, "%ld pages of the directory are hot page cache",
		     active);
	EXPECT_MEMORY_MOVES();
}

TEST_HARNESS_MAIN
