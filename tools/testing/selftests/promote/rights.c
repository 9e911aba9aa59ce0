// SPDX-License-Identifier: GPL-2.0
/*
 * Who may do what: only root switches and tunes, a reader does not get memory
 * from outside his cpuset, whatever he does with what he has recorded, and
 * what a cgroup protects in the top tier stays there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <linux/loop.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "promote_test.h"

#define DEBUGFS_DIR "/sys/kernel/debug/promote"
#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"
#define NOBODY 65534

#define FILE_BYTES (2UL << 20)

FIXTURE(knob)
{
	char value[64];
};

FIXTURE_VARIANT(knob)
{
	const char *path;
};

FIXTURE_VARIANT_ADD(knob, pagecache_promotion_enabled)
{
	.path = PROMOTE_SWITCH,
};

FIXTURE_VARIANT_ADD(knob, numa_balancing)
{
	.path = PROMOTE_BALANCING,
};

FIXTURE_SETUP(knob)
{
	const char *why = promote_no_feature();

	if (why)
		SKIP(return, "%s", why);
	ASSERT_LT(0, promote_read(variant->path, self->value,
				  sizeof(self->value)));
}

FIXTURE_TEARDOWN(knob)
{
}

/* The errno with which it ends if somebody without privileges opens a file. */
static int nobody_opens(const char *path, int flags)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return -EINVAL;
	if (open(path, flags) < 0)
		return errno;
	return 0;
}

static int nobody_writes(void *path)
{
	return nobody_opens(path, O_WRONLY);
}

static int nobody_reads(void *path)
{
	return nobody_opens(path, O_RDONLY);
}

TEST_F(knob, is_written_by_root_alone)
{
	char value[64];
	struct stat st;

	ASSERT_EQ(0, stat(variant->path, &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	EXPECT_EQ(0, st.st_uid);
	EXPECT_EQ(EACCES, promote_in_child(nobody_writes, (void *)variant->path));
	/* Anybody may know. */
	EXPECT_EQ(0, promote_in_child(nobody_reads, (void *)variant->path));
	ASSERT_LT(0, promote_read(variant->path, value, sizeof(value)));
	EXPECT_STREQ(self->value, value);
}

/* Also where the mount lets others in, as some systems do. */
TEST(debugfs_is_for_root_alone)
{
	const char *why = promote_no_feature();
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	int nr = 0;
	DIR *dir;

	if (why)
		SKIP(return, "%s", why);
	dir = opendir(DEBUGFS_DIR);
	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), DEBUGFS_DIR "/%s", entry->d_name);
		ASSERT_EQ(0, stat(path, &st));
		EXPECT_EQ(0, st.st_mode & 0077)
			TH_LOG("%s has mode %o", path, st.st_mode & 07777);
		EXPECT_EQ(EACCES, promote_in_child(nobody_writes, path));
		EXPECT_EQ(EACCES, promote_in_child(nobody_reads, path));
		nr++;
	}
	closedir(dir);
	EXPECT_LT(0, nr);
}

/*
 * Ways to read a file so that it is promoted, or to get away with what was
 * recorded. Each runs in a process of its own.
 */
static int reads(struct promote_file *file)
{
	return promote_file_passes(file, PROMOTE_WARM_PASSES);
}

static void *thread_reads(void *arg)
{
	return (void *)(long)reads(arg);
}

static int has_a_thread_read(struct promote_file *file)
{
	pthread_t thread;
	void *err;

	if (pthread_create(&thread, NULL, thread_reads, file))
		return -errno;
	pthread_join(thread, &err);
	return (long)err;
}

enum ending {
	BY_EXIT,
	BY_EXEC,
	BY_KILL,
};

/* Children that record a few pages, too few for a drain at once, and end. */
static int ends(struct promote_file *file, enum ending how)
{
	long first, step = 100;
	int status, err = 0;
	pid_t pid;

	for (first = 0; first < file->nr && !err; first += step) {
		pid = fork();
		if (!pid) {
			/* The first of them only has the list allocated. */
			if (promote_file_read_pages(file, first, step))
				_exit(1);
			/* A test program that is asked for a list skips. */
			if (how == BY_EXEC)
				execl("/proc/self/exe", "rights", "-l", NULL);
			if (how == BY_KILL)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			err = 1;
		else if (how == BY_KILL)
			err = !WIFSIGNALED(status);
		else if (how == BY_EXEC)
			err = WEXITSTATUS(status) != KSFT_SKIP;
		else
			err = status != 0;
	}
	return err;
}

static int exits(struct promote_file *file)
{
	return ends(file, BY_EXIT);
}

static int execs(struct promote_file *file)
{
	fclose(stdout);
	fclose(stderr);
	close(1);
	close(2);
	return ends(file, BY_EXEC);
}

static int is_killed(struct promote_file *file)
{
	return ends(file, BY_KILL);
}

/* As little of io_uring as it takes to read with one of its workers. */
struct uring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqes;
};

static int uring_start(struct uring *ring)
{
	struct io_uring_params *p = &ring->params;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(__NR_io_uring_setup, 1, p);
	if (ring->fd < 0)
		return -errno;
	ring->sq = mmap(NULL, p->sq_off.array + p->sq_entries * sizeof(int),
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			ring->fd, IORING_OFF_SQ_RING);
	ring->cq = mmap(NULL, p->cq_off.cqes + p->cq_entries *
			sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_CQ_RING);
	ring->sqes = mmap(NULL, p->sq_entries * sizeof(*ring->sqes),
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			  ring->fd, IORING_OFF_SQES);
	if (ring->sq == MAP_FAILED || ring->cq == MAP_FAILED ||
	    ring->sqes == MAP_FAILED)
		return -errno;
	return 0;
}

/* One entry in the ring: submitted and waited for. */
static int uring_read(struct uring *ring, int fd, void *buf, unsigned int size,
		      off_t offset)
{
	struct io_uring_params *p = &ring->params;
	unsigned int *tail = (unsigned int *)(ring->sq + p->sq_off.tail);
	unsigned int *array = (unsigned int *)(ring->sq + p->sq_off.array);
	unsigned int *head = (unsigned int *)(ring->cq + p->cq_off.head);
	struct io_uring_cqe *cqes = (void *)(ring->cq + p->cq_off.cqes);
	struct io_uring_cqe *cqe;

	ring->sqes[0] = (struct io_uring_sqe) {
		.opcode = IORING_OP_READ,
		.flags = IOSQE_ASYNC,
		.fd = fd,
		.addr = (unsigned long)buf,
		.len = size,
		.off = offset,
	};
	array[*tail % p->sq_entries] = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(__NR_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS,
		    NULL, 0) != 1)
		return -errno;
	cqe = &cqes[*head % p->cq_entries];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return cqe->res;
}

static int has_a_worker_read(struct promote_file *file)
{
	static char buf[1 << 16];
	struct uring ring;
	off_t at;
	int i;

	if (uring_start(&ring))
		return 1;
	for (i = 0; i < PROMOTE_WARM_PASSES; i++) {
		for (at = 0; at < (off_t)file->size; at += sizeof(buf)) {
			if (uring_read(&ring, file->fd, buf, sizeof(buf), at) !=
			    sizeof(buf))
				return 2;
		}
		usleep(PROMOTE_GAP_US);
	}
	return 0;
}

/* A kernel thread reads the file on behalf of who reads the loop device. */
static int loop_start(struct promote_file *file, char *path, size_t size)
{
	struct loop_config config = { .fd = file->fd };
	int control, device, nr;

	control = open("/dev/loop-control", O_RDWR);
	nr = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	if (nr < 0)
		return -1;
	snprintf(path, size, "/dev/loop%d", nr);
	/* Direct I/O on the device, so that it keeps no copy. */
	device = open(path, O_RDWR | O_DIRECT);
	if (device < 0 || ioctl(device, LOOP_CONFIGURE, &config))
		return -1;
	return device;
}

static int has_a_kernel_thread_read(struct promote_file *file)
{
	int device, i, err = 0;
	char path[64];
	void *buf;
	off_t at;

	device = loop_start(file, path, sizeof(path));
	if (device < 0 || posix_memalign(&buf, 1 << 16, 1 << 16))
		return 1;
	for (i = 0; i < PROMOTE_WARM_PASSES && !err; i++) {
		for (at = 0; at < (off_t)file->size && !err; at += 1 << 16) {
			if (pread(device, buf, 1 << 16, at) != 1 << 16)
				err = 2;
		}
		usleep(PROMOTE_GAP_US);
	}
	ioctl(device, LOOP_CLR_FD, 0);
	close(device);
	return err;
}

FIXTURE(cpuset)
{
	struct promote_test t;
};

FIXTURE_VARIANT(cpuset)
{
	int (*reader)(struct promote_file *file);
	/* Are pages queued? Are they moved if there is no cpuset? */
	bool queues, moves;
};

FIXTURE_VARIANT_ADD(cpuset, reader)
{
	.reader = reads,
	.moves = true,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, thread)
{
	.reader = has_a_thread_read,
	.moves = true,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, io_uring_worker)
{
	.reader = has_a_worker_read,
	.moves = true,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, exit)
{
	.reader = exits,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, exec)
{
	.reader = execs,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, killed)
{
	.reader = is_killed,
	.queues = true,
};

FIXTURE_VARIANT_ADD(cpuset, kernel_thread)
{
	.reader = has_a_kernel_thread_read,
};

FIXTURE_SETUP(cpuset)
{
	char node[16];

	PROMOTE_TEST_START(NULL);
	if (!promote_cgroup("lower", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	snprintf(node, sizeof(node), "%d", self->t.lower);
	ASSERT_EQ(0, promote_cgroup_set(self->t.cgroup, "cpuset.mems", node));
	ASSERT_EQ(0, promote_test_make_hot(&self->t, FILE_BYTES));
}

FIXTURE_TEARDOWN(cpuset)
{
	promote_test_end(&self->t);
}

struct confined {
	int (*reader)(struct promote_file *file);
	struct promote_file *file;
	const char *cgroup;
};

static int run_confined(void *arg)
{
	struct confined *confined = arg;

	if (confined->cgroup && promote_cgroup_enter(confined->cgroup))
		return 100;
	return confined->reader(confined->file);
}

TEST_F_TIMEOUT(cpuset, is_not_escaped_by, PROMOTE_TIMEOUT)
{
	struct confined confined = {
		variant->reader, &self->t.file, self->t.cgroup
	};

	ASSERT_EQ(0, promote_in_child(run_confined, &confined));
	/* Whoever else might still have to do something gets the time for it. */
	usleep(PROMOTE_BACKOFF_US);
	EXPECT_EQ(variant->queues, SINCE(QUEUED) > 0);
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_EQ(0, SINCE(CANDIDATE) + SINCE(CANDIDATE_NRL));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));

	/*
	 * The control. What ends early may have had the time for a drain, or
	 * not.
	 */
	promote_count(&self->t.before);
	confined.cgroup = NULL;
	ASSERT_EQ(0, promote_in_child(run_confined, &confined));
	if (variant->moves)
		EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_MOVES_NOW();
}

/* Cache of a cgroup in the top tier, which another cgroup's hot file wants. */
FIXTURE(protected)
{
	struct promote_test t;
	struct promote_file cache;
	char owner[PATH_MAX];
	pid_t filler;
};

FIXTURE_VARIANT(protected)
{
	const char *knob;
};

FIXTURE_VARIANT_ADD(protected, memory_min)
{
	.knob = "memory.min",
};

FIXTURE_VARIANT_ADD(protected, memory_low)
{
	.knob = "memory.low",
};

#define CACHE_BYTES (32UL << 20)
#define HOT_BYTES (8UL << 20)

struct owner {
	struct promote_file *file;
	const char *cgroup;
	int node;
};

static int read_once_in_cgroup(void *arg)
{
	struct owner *owner = arg;

	if (promote_cgroup_enter(owner->cgroup))
		return 1;
	return promote_file_place(owner->file, owner->node, false) ? 2 : 0;
}

static int read_hot_in_cgroup(void *arg)
{
	struct owner *owner = arg;

	if (promote_cgroup_enter(owner->cgroup))
		return 1;
	return promote_file_passes(owner->file, PROMOTE_PASSES) ? 2 : 0;
}

FIXTURE_SETUP(protected)
{
	struct owner owner = { &self->cache, self->owner };
	char bytes[32];

	PROMOTE_TEST_START(NULL);
	if (!promote_cgroup("owner", self->owner, sizeof(self->owner)) ||
	    !promote_cgroup("reader", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	if (access(DEMOTION, W_OK))
		SKIP(return, "no demotion in this kernel");
	ASSERT_EQ(0, promote_set(&self->t.saved, DEMOTION, "1"));
	snprintf(bytes, sizeof(bytes), "%lu", 2 * CACHE_BYTES);
	ASSERT_EQ(0, promote_cgroup_set(self->owner, variant->knob, bytes));
	ASSERT_EQ(0, promote_file_create(&self->cache, CACHE_BYTES));
	owner.node = self->t.top;
	ASSERT_EQ(0, promote_in_child(read_once_in_cgroup, &owner));
	/* A second name, since both are called after the process. */
	ASSERT_EQ(0, unlink(self->cache.path));
	owner = (struct owner) { &self->t.file, self->t.cgroup, self->t.lower };
	ASSERT_EQ(0, promote_file_create(&self->t.file, HOT_BYTES));
	ASSERT_EQ(0, promote_in_child(read_once_in_cgroup, &owner));
	self->filler = promote_background(promote_fill_node, &self->t.top);
	ASSERT_LT(0, self->filler);
	promote_count(&self->t.before);
}

FIXTURE_TEARDOWN(protected)
{
	if (self->filler > 0)
		promote_end_background(self->filler);
	close(self->cache.fd);
	promote_cgroup_remove(self->owner);
	promote_test_end(&self->t);
}

static long cgroup_stat(const char *cgroup, const char *name)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	return promote_stat(path, name);
}

TEST_F_TIMEOUT(protected, cache_is_not_displaced, PROMOTE_TIMEOUT)
{
	struct owner reader = { &self->t.file, self->t.cgroup };
	struct promote_where where;

	EXPECT_GE(64, promote_node_headroom(self->t.top));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_in_child(read_hot_in_cgroup, &reader));
	/* It was hot, and its pages were not simply overlooked. */
	EXPECT_LT(0, SINCE(QUEUED));
	ASSERT_EQ(0, promote_file_where(&self->cache, &where));
	EXPECT_EQ(self->cache.nr, where.on_node[self->t.top]);
	EXPECT_EQ(0, where.absent);
	EXPECT_EQ(0, cgroup_stat(self->owner, "workingset_refault_file"));

	/* The memory it could not have is what kept the file where it was. */
	promote_end_background(self->filler);
	self->filler = 0;
	EXPECT_MOVES_NOW();
	ASSERT_EQ(0, promote_file_where(&self->cache, &where));
	EXPECT_EQ(self->cache.nr, where.on_node[self->t.top]);
}

TEST_HARNESS_MAIN
