// SPDX-License-Identifier: GPL-2.0
/*
 * What the life of a task or a file can do to pages that are queued for
 * promotion: fork, exec, exit, threads, fadvise, truncate, unlink, the switch.
 * Nothing may be lost, counted wrongly or touched after it was freed; the splats
 * of a debug kernel are half of this test.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "promote_test.h"

#define NR_CHILDREN 4

FIXTURE(life)
{
	struct promote_test t;
};

FIXTURE_SETUP(life)
{
	PROMOTE_TEST_START(NULL);
	/* Hot for the LRU already, so that every pass from now on queues. */
	ASSERT_EQ(0, promote_test_make_hot(&self->t, promote_test_bytes() / 8));
}

FIXTURE_TEARDOWN(life)
{
	promote_test_end(&self->t);
}

#define EXPECT_WHOLE_FILE_MOVES()					\
do {									\
	EXPECT_MOVES_NOW();						\
	EXPECT_EQ(0, promote_file_check(&self->t.file));		\
	EXPECT_GE(self->t.file.nr, SINCE(SUCCESS));				\
} while (0)

TEST_F_TIMEOUT(life, exit_with_a_queue, PROMOTE_TIMEOUT)
{
	long first, step = 100;
	int status;
	pid_t pid;

	for (first = 0; first + step <= self->t.file.nr; first += step) {
		pid = fork();
		if (!pid)
			_exit(promote_file_read_pages(&self->t.file, first,
						      step));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_LT(0, SINCE(QUEUED));
	EXPECT_WHOLE_FILE_MOVES();
}

TEST_F_TIMEOUT(life, killed_with_a_queue, PROMOTE_TIMEOUT)
{
	int i, status;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid) {
			while (!promote_file_read_pages(&self->t.file, 0, 100))
				;
			_exit(1);
		}
		usleep(30000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	EXPECT_WHOLE_FILE_MOVES();
}

/* The parent queues, forks while it does, and both go on. */
TEST_F_TIMEOUT(life, fork_with_a_queue, PROMOTE_TIMEOUT)
{
	long first, step = 50;
	int status;
	pid_t pid;

	for (first = 0; first + 2 * step <= self->t.file.nr; first += step) {
		ASSERT_EQ(0, promote_file_read_pages(&self->t.file, first,
						     step));
		pid = fork();
		if (!pid)
			_exit(promote_file_read_pages(&self->t.file,
						      first + step, step));
		ASSERT_EQ(0, promote_file_read_pages(&self->t.file,
						     first + step, step));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_WHOLE_FILE_MOVES();
}

/* A child of a task that has promoted can promote as well. */
static int promote_own_file(void *arg)
{
	struct promote_counts before;
	struct promote_file file;
	int *nodes = arg;
	int err;

	err = promote_file_make(&file, 2UL << 20, nodes[1], false);
	promote_count(&before);
	err = err ? err : promote_file_read_until_moved(&file, &before);
	err = err ? err : promote_file_check(&file);
	/* Finding the pages flips the switch: the parent has it done alone. */
	if (!err)
		err = !promote_file_is_on(&file, nodes[0]);
	promote_file_remove(&file);
	return !!err;
}

TEST_F_TIMEOUT(life, children_promote, PROMOTE_TIMEOUT)
{
	int nodes[2] = { self->t.top, self->t.lower };
	int i;

	EXPECT_WHOLE_FILE_MOVES();
	for (i = 0; i < NR_CHILDREN; i++)
		EXPECT_EQ(0, promote_in_child(promote_own_file, nodes));
}

static int read_all(void *arg)
{
	return promote_file_passes(arg, PROMOTE_PASSES) ? 1 : 0;
}

TEST_F_TIMEOUT(life, readers_at_the_same_time, PROMOTE_TIMEOUT)
{
	pid_t pid[NR_CHILDREN];
	int i, status;

	for (i = 0; i < NR_CHILDREN; i++) {
		pid[i] = fork();
		if (!pid[i])
			_exit(read_all(&self->t.file));
	}
	for (i = 0; i < NR_CHILDREN; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_WHOLE_FILE_MOVES();
}

static void *thread_reads(void *arg)
{
	return (void *)(long)promote_file_read(arg);
}

TEST_F_TIMEOUT(life, threads_come_and_go, PROMOTE_TIMEOUT)
{
	pthread_t thread[NR_CHILDREN];
	void *result;
	int i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < NR_CHILDREN; i++) {
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    thread_reads, &self->t.file));
		}
		for (i = 0; i < NR_CHILDREN; i++) {
			ASSERT_EQ(0, pthread_join(thread[i], &result));
			EXPECT_EQ(NULL, result);
		}
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_WHOLE_FILE_MOVES();
}

TEST_F_TIMEOUT(life, exec_with_a_queue, PROMOTE_TIMEOUT)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		/* Whatever it is: what matters is that it is executed. */
		if (!promote_file_read_pages(&self->t.file, 0, 100))
			execl("/proc/self/exe", "lifecycle", "-h", NULL);
		_exit(99);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_NE(99, WEXITSTATUS(status));
	EXPECT_WHOLE_FILE_MOVES();
}

/*
 * SIGKILL arrives anywhere in a read of the whole file and in the drains after
 * it. When the file has moved it is put back, to be moved again.
 */
TEST_F_TIMEOUT(life, killed_in_a_read, PROMOTE_TIMEOUT)
{
	int i, status, delay_ms;
	long moved = 0;
	pid_t pid;

	for (i = 0; i < 40; i++) {
		pid = fork();
		if (!pid) {
			while (!promote_file_read(&self->t.file))
				;
			_exit(1);
		}
		/* All delays up to a tenth of a second, in no order. */
		delay_ms = i * 37 % 100;
		usleep(20000 + delay_ms * 1000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		if (SINCE(SUCCESS) < moved + self->t.file.nr)
			continue;
		moved = SINCE(SUCCESS);
		ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower,
						false));
		ASSERT_EQ(0, promote_file_passes(&self->t.file, 3));
	}
	EXPECT_LT(0, SINCE(SUCCESS));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, promote_file_check(&self->t.file));
}

static void *thread_reads_on(void *arg)
{
	while (!promote_file_read(arg))
		;
	return NULL;
}

struct exec_arg {
	struct promote_file *file;
	struct promote_counts before;
	int delay_ms;
};

/* When the others have something on their lists, and somewhat later. */
static void *thread_execs(void *arg)
{
	struct exec_arg *exec = arg;
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (promote_since(&exec->before, PROMOTE_QUEUED))
			break;
		usleep(10000);
	}
	usleep(exec->delay_ms * 1000);
	execl("/proc/self/exe", "lifecycle", "-l", NULL);
	_exit(99);
}

/*
 * exec ends all other threads, whatever they have on their lists. A test program
 * that is asked for a list of its tests skips.
 */
static int exec_among_readers(void *arg)
{
	struct exec_arg *exec = arg;
	pthread_t thread;
	int i;

	fclose(stdout);
	fclose(stderr);
	close(1);
	close(2);
	for (i = 0; i < NR_CHILDREN; i++) {
		if (pthread_create(&thread, NULL, thread_reads_on,
				   exec->file))
			return 98;
	}
	if (pthread_create(&thread, NULL, thread_execs, exec))
		return 98;
	pause();
	return 98;
}

TEST_F_TIMEOUT(life, exec_from_a_thread, PROMOTE_TIMEOUT)
{
	struct exec_arg exec = { .file = &self->t.file };
	int i;

	for (i = 0; i < 10 && SINCE(SUCCESS) < self->t.file.nr; i++) {
		promote_count(&exec.before);
		exec.delay_ms = i * 10;
		EXPECT_EQ(KSFT_SKIP,
			  promote_in_child(exec_among_readers, &exec));
	}
	EXPECT_LT(0, SINCE(QUEUED));
	EXPECT_WHOLE_FILE_MOVES();
}

/* Queued pages are not pinned: they can be dropped, cut off, deleted. */
TEST_F_TIMEOUT(life, fadvise_drops_queued_pages, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_read_pages(&self->t.file, 0, 100));
	posix_fadvise(self->t.file.fd, 0, 0, POSIX_FADV_DONTNEED);
	EXPECT_EQ(0, promote_file_resident(&self->t.file));
}

TEST_F_TIMEOUT(life, truncate_of_queued_pages, PROMOTE_TIMEOUT)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, promote_file_read_pages(&self->t.file, i * 10,
						     10));
		ASSERT_EQ(0, ftruncate(self->t.file.fd, self->t.page * i * 10));
		ASSERT_EQ(0, ftruncate(self->t.file.fd, self->t.file.size));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_EQ(0, promote_file_read(&self->t.file));
}

TEST_F_TIMEOUT(life, unlink_of_queued_pages, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, promote_file_read(&self->t.file));
	promote_file_remove(&self->t.file);
	/* Let other files reuse what was freed. */
	ASSERT_EQ(0, promote_file_make(&self->t.file, self->t.file.size,
				       self->t.lower, false));
	promote_count(&self->t.before);
	EXPECT_WHOLE_FILE_MOVES();
}

static int toggle(void *arg)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (promote_write(PROMOTE_SWITCH, i & 1 ? "1" : "0") ||
		    promote_write(PROMOTE_BALANCING, i & 2 ? "2" : "0"))
			return 1;
		usleep(5000);
	}
	return 0;
}

TEST_F_TIMEOUT(life, switching_while_reading, PROMOTE_TIMEOUT)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		for (;;) {
			if (promote_file_read(&self->t.file))
				_exit(1);
		}
	}
	EXPECT_EQ(0, promote_in_child(toggle, NULL));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_WHOLE_FILE_MOVES();
}

TEST_HARNESS_MAIN
