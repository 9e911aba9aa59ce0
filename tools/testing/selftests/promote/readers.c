// SPDX-License-Identifier: GPL-2.0
/*
 * The ways to read a file without mapping it: with each, a hot file leaves the
 * lower tier, and the task that has read it moves it. With io_uring that is a
 * thread which never returns to user space.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "promote_test.h"

#ifndef RWF_NOWAIT
#define RWF_NOWAIT 0x00000008
#endif

#define FILE_BYTES (2UL << 20)
/* No more than a pipe takes. */
#define STEP_BYTES (64UL << 10)
#define BLOCK_BYTES 4096UL
#define STEP_PAGES (STEP_BYTES / 4096)
/* Of the large folios into which a step reaches. */
#define LARGE_PAGES (FILE_BYTES / 4096 / 4)
/* For more than a second: that long a busy page is left alone. */
#define MAX_PASSES PROMOTE_MAX_PASSES

#define TRACING "/sys/kernel/tracing"
#define TRACE_DRAIN TRACING "/events/promote/promote_drain/enable"

/* A way of reading has descriptors of its own, open from the first pass on. */
struct way {
	struct promote_file *file;
	char *buf;
	int in, out;
#ifdef HAVE_LIBURING
	struct io_uring ring;
#endif
};

static void way_init(struct way *way, struct promote_file *file)
{
	way->file = file;
	way->in = -1;
	way->out = -1;
	way->buf = aligned_alloc(BLOCK_BYTES, FILE_BYTES);
}

static void close_ends(struct way *way)
{
	if (way->in >= 0)
		close(way->in);
	if (way->out >= 0)
		close(way->out);
	way->in = -1;
	way->out = -1;
}

static int open_nothing(struct way *way)
{
	return 0;
}

/* Each reads a step of the file and returns its length. */
static ssize_t by_read(struct way *way, off_t at)
{
	if (lseek(way->file->fd, at, SEEK_SET) != at)
		return -1;
	return read(way->file->fd, way->buf, STEP_BYTES);
}

static ssize_t by_pread(struct way *way, off_t at)
{
	return pread(way->file->fd, way->buf, STEP_BYTES, at);
}

static ssize_t preadv2_halves(struct way *way, off_t at, int flags)
{
	struct iovec iov[2] = {
		{ way->buf + STEP_BYTES / 2, STEP_BYTES / 2 },
		{ way->buf, STEP_BYTES / 2 },
	};

	return preadv2(way->file->fd, iov, 2, at, flags);
}

static ssize_t by_preadv2(struct way *way, off_t at)
{
	return preadv2_halves(way, at, 0);
}

/* What migration has locked is not waited for. */
static ssize_t by_preadv2_nowait(struct way *way, off_t at)
{
	ssize_t len = preadv2_halves(way, at, RWF_NOWAIT);

	return len < 0 && errno == EAGAIN ? by_preadv2(way, at) : len;
}

static int open_pipe(struct way *way)
{
	int ends[2];

	if (pipe(ends))
		return -errno;
	way->out = ends[0];
	way->in = ends[1];
	return 0;
}

/* Take out of the pipe or socket what was put into it. */
static ssize_t take_out(struct way *way, ssize_t len)
{
	ssize_t done, part;

	for (done = 0; done < len; done += part) {
		part = read(way->out, way->buf, len - done);
		if (part <= 0)
			return -1;
	}
	return len;
}

static ssize_t by_splice(struct way *way, off_t at)
{
	loff_t offset = at;

	return take_out(way, splice(way->file->fd, &offset, way->in, NULL,
				    STEP_BYTES, 0));
}

static ssize_t by_sendfile_through(struct way *way, off_t at)
{
	return take_out(way, sendfile(way->in, way->file->fd, &at, STEP_BYTES));
}

static int open_socket(struct way *way)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return -errno;
	way->out = ends[0];
	way->in = ends[1];
	return 0;
}

/* Another file beside the one that is read, without a name. */
static int open_copy(struct way *way)
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof(path), "%s.copy", way->file->path);
	way->in = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (way->in < 0)
		return -errno;
	unlink(path);
	return 0;
}

static ssize_t by_sendfile(struct way *way, off_t at)
{
	if (lseek(way->in, at, SEEK_SET) != at)
		return -1;
	return sendfile(way->in, way->file->fd, &at, STEP_BYTES);
}

static ssize_t by_copy_file_range(struct way *way, off_t at)
{
	loff_t from = at, to = at;

	return copy_file_range(way->file->fd, &from, way->in, &to, STEP_BYTES,
			       0);
}

#ifdef HAVE_LIBURING
/* Requests of one step: io_uring may serve them in any order. */
#define NR_REQUESTS 4
#define REQUEST_BYTES (STEP_BYTES / NR_REQUESTS)

static int open_ring_with(struct way *way, unsigned int flags)
{
	struct io_uring_params params = {
		.flags = flags,
		.sq_thread_idle = 1000,
	};

	return io_uring_queue_init_params(NR_REQUESTS, &way->ring, &params);
}

static int open_ring(struct way *way)
{
	return open_ring_with(way, 0);
}

static int open_ring_sqpoll(struct way *way)
{
	return open_ring_with(way, IORING_SETUP_SQPOLL);
}

static int open_ring_fixed(struct way *way)
{
	struct iovec iov = { way->buf, STEP_BYTES };
	int err = open_ring(way);

	return err ? err : io_uring_register_buffers(&way->ring, &iov, 1);
}

static void close_ring(struct way *way)
{
	io_uring_queue_exit(&way->ring);
}

static ssize_t wait_for_requests(struct way *way)
{
	struct io_uring_cqe *cqe;
	ssize_t len = 0;
	int i, err;

	for (i = 0; i < NR_REQUESTS; i++) {
		err = io_uring_wait_cqe(&way->ring, &cqe);
		if (err)
			return err;
		if (cqe->res != REQUEST_BYTES)
			len = -1;
		else if (len >= 0)
			len += cqe->res;
		io_uring_cqe_seen(&way->ring, cqe);
	}
	return len;
}

/* SQPOLL may answer requests before it gives their slots back. */
static struct io_uring_sqe *next_request(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (sqe || io_uring_sqring_wait(ring) < 0)
		return sqe;
	return io_uring_get_sqe(ring);
}

static ssize_t by_ring_with(struct way *way, off_t at, unsigned int flags,
			    bool fixed)
{
	struct io_uring_sqe *sqe;
	int i, fd = way->file->fd;
	char *buf = way->buf;

	for (i = 0; i < NR_REQUESTS; i++) {
		sqe = next_request(&way->ring);
		if (!sqe)
			return -1;
		if (fixed)
			io_uring_prep_read_fixed(sqe, fd, buf, REQUEST_BYTES,
						 at, 0);
		else
			io_uring_prep_read(sqe, fd, buf, REQUEST_BYTES, at);
		sqe->flags |= flags;
		at += REQUEST_BYTES;
		buf += REQUEST_BYTES;
	}
	if (io_uring_submit(&way->ring) < 0)
		return -1;
	return wait_for_requests(way);
}

static ssize_t by_ring(struct way *way, off_t at)
{
	return by_ring_with(way, at, 0, false);
}

static ssize_t by_ring_fixed(struct way *way, off_t at)
{
	return by_ring_with(way, at, 0, true);
}

static ssize_t by_ring_async(struct way *way, off_t at)
{
	return by_ring_with(way, at, IOSQE_ASYNC, false);
}
#else
static int open_no_ring(struct way *way)
{
	return -ENOSYS;
}

static ssize_t by_no_ring(struct way *way, off_t at)
{
	return -1;
}

#define open_ring open_no_ring
#define open_ring_fixed open_no_ring
#define open_ring_sqpoll open_no_ring
#define close_ring close_ends
#define by_ring by_no_ring
#define by_ring_fixed by_no_ring
#define by_ring_async by_no_ring
#endif /* HAVE_LIBURING */

FIXTURE(reader)
{
	struct promote_test t;
	struct way way;
};

FIXTURE_VARIANT(reader)
{
	int (*open)(struct way *way);
	ssize_t (*step)(struct way *way, off_t at);
	void (*close)(struct way *way);
	/* Another thread than the one that asks for it reads. */
	bool threaded;
	bool large;
	/*
	 * Pages that are in a pipe or socket when the call returns that has put
	 * them there. A drain in that return refuses them as busy; the last of
	 * the file have no later one.
	 */
	long held;
};

#define WAY(name, open_way, step_way, close_way, ...)			\
FIXTURE_VARIANT_ADD(reader, name)					\
{									\
	.open = open_way,						\
	.step = step_way,						\
	.close = close_way,						\
	__VA_ARGS__							\
}

WAY(read, open_nothing, by_read, close_ends);
WAY(pread, open_nothing, by_pread, close_ends);
WAY(preadv2, open_nothing, by_preadv2, close_ends);
WAY(preadv2_nowait, open_nothing, by_preadv2_nowait, close_ends);
WAY(splice, open_pipe, by_splice, close_ends, .held = STEP_PAGES);
WAY(splice_large, open_pipe, by_splice, close_ends, .held = LARGE_PAGES, .large = true);
WAY(sendfile_to_file, open_copy, by_sendfile, close_ends);
WAY(sendfile_to_pipe, open_pipe, by_sendfile_through, close_ends, .held = STEP_PAGES);
WAY(sendfile_to_socket, open_socket, by_sendfile_through, close_ends, .held = STEP_PAGES);
WAY(copy_file_range, open_copy, by_copy_file_range, close_ends);
WAY(io_uring, open_ring, by_ring, close_ring);
WAY(io_uring_fixed, open_ring_fixed, by_ring_fixed, close_ring);
WAY(io_uring_async, open_ring, by_ring_async, close_ring, .threaded = true);
WAY(io_uring_sqpoll, open_ring_sqpoll, by_ring, close_ring, .threaded = true);

FIXTURE_SETUP(reader)
{
	int err;

	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, variant->large));
	way_init(&self->way, &self->t.file);
	err = variant->open(&self->way);
	if (err == -EAFNOSUPPORT)
		SKIP(return, "no CONFIG_UNIX in this kernel");
	if (err == -ENOSYS)
		SKIP(return, "no io_uring in this kernel, or built without it");
	ASSERT_EQ(0, err);
	ASSERT_EQ(0, promote_set(&self->t.saved, TRACE_DRAIN, "1"));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(reader)
{
	variant->close(&self->way);
	free(self->way.buf);
	promote_test_end(&self->t);
}

static int one_pass(struct way *way, ssize_t (*step)(struct way *, off_t))
{
	ssize_t len;
	size_t at;

	for (at = 0; at < way->file->size; at += len) {
		len = step(way, at);
		if (len <= 0)
			return -1;
	}
	return 0;
}

/*
 * Pages moved by a task, or, with 0, by all. The trace is of everything since
 * it was emptied; no more is drained than it holds.
 */
static long moved_by(pid_t pid)
{
	char line[512], *end;
	long moved = 0, nr;
	FILE *trace;

	trace = fopen(TRACING "/trace", "r");
	if (!trace)
		return -1;
	while (fgets(line, sizeof(line), trace)) {
		/* "    name-of-task-PID     [cpu] ... nr_moved=N ..." */
		end = strstr(line, " [");
		if (!end || !strstr(end, "promote_drain:"))
			continue;
		*end++ = '\0';
		nr = strtol(strstr(end, "nr_moved=") + 9, NULL, 10);
		if (!pid || atoi(strrchr(line, '-') + 1) == pid)
			moved += nr;
	}
	fclose(trace);
	return moved;
}

static void empty_trace(void)
{
	promote_write(TRACING "/trace", "");
	close(open(TRACING "/trace", O_WRONLY | O_TRUNC));
}

TEST_F_TIMEOUT(reader, promotes_what_it_reads, PROMOTE_TIMEOUT)
{
	long nr = self->t.file.nr, moved;
	int i;

	empty_trace();
	for (i = 0; i < MAX_PASSES; i++) {
		if (SINCE(SUCCESS) >= nr - variant->held)
			break;
		/* What an idle CPU has in a batch stays there otherwise. */
		if (i % 10 == 9)
			promote_flush_lru();
		ASSERT_EQ(0, one_pass(&self->way, variant->step));
		usleep(PROMOTE_GAP_US);
	}
	moved = moved_by(0);
	EXPECT_EQ(SINCE(SUCCESS), moved);
	EXPECT_EQ(variant->threaded ? 0 : moved, moved_by(getpid()));
	EXPECT_LE(nr - variant->held, moved);
	/* Nothing is left in flight, and what was can move. */
	if (variant->held)
		EXPECT_MOVES_NOW();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(nr, SINCE(SUCCESS));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

/*
 * Buffered and direct I/O on the same file. The direct side is another process,
 * with a counter of its rounds that both see.
 */
FIXTURE(direct)
{
	struct promote_test t;
	struct direct *direct;
};

struct direct {
	struct promote_file *file;
	char *buf;
	int fd;
	volatile long rounds;
};

FIXTURE_SETUP(direct)
{
	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	self->direct = promote_shared(sizeof(*self->direct));
	ASSERT_NE(NULL, self->direct);
	self->direct->file = &self->t.file;
	self->direct->buf = aligned_alloc(BLOCK_BYTES, STEP_BYTES);
	self->direct->fd = open(self->t.file.path, O_RDWR | O_DIRECT);
	if (self->direct->fd < 0 && errno == EINVAL)
		SKIP(return, "no O_DIRECT on this file system");
	ASSERT_LT(0, self->direct->fd);
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(direct)
{
	if (self->direct->fd > 0)
		close(self->direct->fd);
	promote_test_end(&self->t);
}

/* Start a process that does nothing else until it is killed. */
static pid_t start_process(void (*function)(struct direct *direct),
			   struct direct *direct)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		function(direct);
		_exit(1);
	}
	return pid;
}

static void read_directly(struct direct *direct)
{
	off_t at;

	for (;; direct->rounds++) {
		for (at = 0; at < FILE_BYTES; at += STEP_BYTES) {
			if (pread(direct->fd, direct->buf, STEP_BYTES, at) !=
			    STEP_BYTES)
				return;
		}
	}
}

/* Read until the file has moved and the other process has done its share. */
static int read_beside(struct direct *direct, struct promote_counts *before)
{
	int i;

	for (i = 0; i < MAX_PASSES; i++) {
		if (i % 10 == 9)
			promote_flush_lru();
		if (promote_file_read(direct->file))
			return -1;
		usleep(PROMOTE_GAP_US);
		if (direct->rounds > 3 &&
		    promote_since(before, PROMOTE_SUCCESS) >= direct->file->nr)
			return 0;
	}
	return -1;
}

TEST_F_TIMEOUT(direct, reader_beside_buffered_reads, PROMOTE_TIMEOUT)
{
	pid_t pid = start_process(read_directly, self->direct);

	EXPECT_EQ(0, read_beside(self->direct, &self->t.before));
	promote_end_background(pid);
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

static void read_buffered(struct direct *direct)
{
	while (!promote_file_read(direct->file)) {
		direct->rounds++;
		usleep(PROMOTE_GAP_US);
	}
}

/* Do buffered and direct reads of a step agree? */
static bool same_both_ways(struct direct *direct, off_t at)
{
	static char cached[STEP_BYTES];

	return pread(direct->file->fd, cached, STEP_BYTES, at) == STEP_BYTES &&
	       pread(direct->fd, direct->buf, STEP_BYTES, at) == STEP_BYTES &&
	       !memcmp(cached, direct->buf, STEP_BYTES);
}

/* Write a step directly; what is read through the cache must be that. */
static bool write_is_seen(struct direct *direct, off_t at, int value)
{
	static char cached[STEP_BYTES];

	memset(direct->buf, value, STEP_BYTES);
	return pwrite(direct->fd, direct->buf, STEP_BYTES, at) == STEP_BYTES &&
	       pread(direct->file->fd, cached, STEP_BYTES, at) == STEP_BYTES &&
	       !memcmp(cached, direct->buf, STEP_BYTES);
}

#define NR_STEPS ((long)(FILE_BYTES / STEP_BYTES))

/*
 * A direct write drops what is cached of the first half of the file, step by
 * step, while another process reads all of it hot and promotes it. What is read
 * in again goes back to the lower tier, to be promoted once more.
 */
TEST_F_TIMEOUT(direct, writer_beside_buffered_reads, PROMOTE_TIMEOUT)
{
	pid_t pid = start_process(read_buffered, self->direct);
	bool seen = true;
	long i;

	ASSERT_EQ(0, promote_policy(MPOL_PREFERRED, self->t.lower));
	for (i = 0; seen && i < 1000; i++) {
		seen = write_is_seen(self->direct,
				     i * 7 % (NR_STEPS / 2) * STEP_BYTES, i);
		usleep(PROMOTE_GAP_US / 2);
		if (i > 2 * NR_STEPS && SINCE(SUCCESS) >= self->t.file.nr / 2)
			break;
	}
	EXPECT_TRUE(seen)
		TH_LOG("write %ld was not seen", i - 1);
	promote_end_background(pid);
	EXPECT_LE(self->t.file.nr / 2, SINCE(SUCCESS));
	/* A write that could not drop the cached pages says so here. */
	EXPECT_EQ(0, fsync(self->direct->fd));
	for (i = 0; i < NR_STEPS; i++)
		EXPECT_TRUE(same_both_ways(self->direct, i * STEP_BYTES));
	EXPECT_MOVES_NOW();
}

TEST_HARNESS_MAIN
