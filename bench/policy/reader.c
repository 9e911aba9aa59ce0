// SPDX-License-Identifier: GPL-2.0
/* Placing and reading files, see reader.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"

/*
 * Placing a file takes some memory, and gives it back. With less free than this
 * above the high watermark, that wakes up kswapd, which frees too much.
 */
#define FILL_LEFT 256

void die(const char *what, int err)
{
	fprintf(stderr, "policy-workload: %s: %s\n", what, strerror(-err));
	exit(1);
}

long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void sleep_until(long long ns)
{
	struct timespec until = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

pid_t start_spinning(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpriority(PRIO_PROCESS, 0, 19);
	for (;;)
		;
}

void stop_spinning(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int try_to_place(struct promote_file *file, size_t size, int node)
{
	pid_t spinner = start_spinning();
	int err = promote_file_sparse(file, size);

	/* No disk is to be written to because of a time of access. */
	if (!err && fcntl(file->fd, F_SETFL, O_NOATIME))
		err = -errno;
	err = err ? err : -posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
	err = err ? err : promote_file_place(file, node, false);
	sync();
	stop_spinning(spinner);
	return err;
}

void place_file(struct promote_file *file, size_t size, int node)
{
	int err = try_to_place(file, size, node);

	if (err)
		die("cannot place the file", err);
}

void fill_with_cache(struct fill *fill, int node)
{
	struct promote_file *file;
	long nr, above;
	int err;

	memset(fill, 0, sizeof(*fill));
	for (;;) {
		/* What is being freed is to be free. */
		sleep_until(now_ns() + 100000000);
		promote_vmstat("nr_free_pages");
		above = pages_above_high(node);
		if (above <= FILL_LEFT) {
			fill->left = above;
			return;
		}
		if (fill->nr_files == FILL_FILES)
			die("cannot fill the node", -ENOSPC);
		nr = above - above / 8 - FILL_LEFT / 2;
		file = &fill->file[fill->nr_files++];
		/* Some of the last may go to the other node. */
		err = try_to_place(file, nr * PAGE, node);
		if (err && err != -ENODATA)
			die("cannot fill the node", err);
		fill->nr += nr;
	}
}

long fill_resident(struct fill *fill)
{
	long nr = 0;
	int i;

	for (i = 0; i < fill->nr_files; i++)
		nr += promote_file_resident(&fill->file[i]);
	return nr;
}

void fill_remove(struct fill *fill)
{
	int i;

	for (i = 0; i < fill->nr_files; i++)
		promote_file_remove(&fill->file[i]);
}

void reader_init(struct reader *reader, const char *pattern, size_t size,
		 double seconds)
{
	int err = pattern_init(&reader->pattern, pattern, size / PAGE);

	if (err)
		die(pattern, err);
	reader->pace_ns = seconds * 1e9 / (size / PAGE);
	reader->on_node = malloc(size / PAGE);
	if (!reader->on_node)
		die("memory", -ENOMEM);
	memset(reader->on_node, 1, size / PAGE);
	place_file(&reader->file, size, promote_lower_node());
}

void reader_takes(struct reader *reader, uint32_t reads, uint32_t step)
{
	reader->reads = reads;
	reader->step = step;
	reader->pages = malloc(reads * sizeof(*reader->pages));
	if (!reader->pages)
		die("memory", -ENOMEM);
	memset(reader->pages, 1, reads * sizeof(*reader->pages));
}

void reader_draw(struct reader *reader)
{
	pattern_draw(&reader->pattern, reader->pages, reader->reads);
}

void reader_read(struct reader *reader)
{
	long long next = now_ns();
	static char buf[PAGE];
	uint32_t i;

	for (i = 0; i < reader->reads; i++) {
		if (reader->pace_ns && i % reader->step == 0) {
			next += reader->step * reader->pace_ns;
			sleep_until(next);
		}
		if (pread(reader->file.fd, buf, PAGE, reader->pages[i] * PAGE) !=
		    (ssize_t)PAGE)
			die("read", errno ? -errno : -EIO);
	}
}

long reader_pages_on(struct reader *reader, int node)
{
	long nr = 0;
	int err = pages_on_node(&reader->file, node, reader->on_node, &nr);

	if (err)
		die("cannot find the pages", err);
	return nr;
}
