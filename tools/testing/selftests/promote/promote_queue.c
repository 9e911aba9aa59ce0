// SPDX-License-Identifier: GPL-2.0
/* Lists of hot folios that wait for the test, see promote_queue.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "promote_queue.h"

#define TRACING "/sys/kernel/tracing/"
#define PAGEMAP_PFN 0x7fffffffffffffULL

#define BELL_PAGES 64
/* A slow machine may drain a list before the test has looked. */
#define RECORD_TRIES 10
/* Longer than a partial list waits, 30 ms */
#define RING_US 40000
/* The bell stays hot, and a list is not forgotten, while a slow machine works */
#define HOLD_MS "600000"
/* More than a task can be in debt to its pacing, in ns of run time */
#define DEBT_NS 12000000L

static long page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* What becomes of them is for others to see: the tails report nothing. */
static int move_range(char *start, long nr, int node)
{
	long page = page_size();
	int nodes[64], status[64];
	void *pages[64];
	int batch, i;

	for (; nr; nr -= batch, start += batch * page) {
		batch = nr < 64 ? nr : 64;
		for (i = 0; i < batch; i++) {
			pages[i] = start + i * page;
			nodes[i] = node;
		}
		if (syscall(SYS_move_pages, 0, batch, pages, nodes, status,
			    MPOL_MF_MOVE) < 0)
			return -errno;
	}
	return 0;
}

/*
 * promote_file_move - move the page cache of a file to a node
 * @file: the file, clean or of a file system that does not write back
 * @node: where to
 *
 * Unlike promote_file_place() it keeps the folios as they are, their order and
 * their cgroup. Their access time is lost, as whenever the tier changes.
 */
int promote_file_move(struct promote_file *file, int node)
{
	void *map = promote_file_map(file);
	int err;

	if (!map)
		return -errno;
	err = move_range(map, file->nr, node);
	munmap(map, file->size);
	return err;
}

int promote_map_pfns(void *start, long nr, unsigned long *pfns)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	ssize_t size = nr * sizeof(*pfns);
	off_t at = (unsigned long)start / page_size() * sizeof(*pfns);
	int err = 0;
	long i;

	if (fd < 0)
		return -errno;
	if (pread(fd, pfns, size, at) != size)
		err = -EIO;
	for (i = 0; i < nr; i++)
		pfns[i] &= PAGEMAP_PFN;
	close(fd);
	return err;
}

int promote_file_pfns(struct promote_file *file, unsigned long *pfns)
{
	void *map = promote_file_map(file);
	int err;

	if (!map)
		return -errno;
	err = promote_map_pfns(map, file->nr, pfns);
	munmap(map, file->size);
	return err;
}

unsigned long long promote_page_flags(unsigned long pfn)
{
	int fd = open("/proc/kpageflags", O_RDONLY);
	unsigned long long flags = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &flags, sizeof(flags), pfn * sizeof(flags)) !=
	    sizeof(flags))
		flags = 0;
	close(fd);
	return flags;
}

/* How many pages of the file have this bit set in /proc/kpageflags? */
long promote_file_flagged(struct promote_file *file, int flag)
{
	unsigned long *pfns = calloc(file->nr, sizeof(*pfns));
	long i, nr = 0;

	if (!pfns || promote_file_pfns(file, pfns)) {
		free(pfns);
		return -1;
	}
	for (i = 0; i < file->nr; i++)
		nr += promote_page_flags(pfns[i]) >> flag & 1;
	free(pfns);
	return nr;
}

static int warm(struct promote_file *file)
{
	int err = promote_file_passes(file, PROMOTE_WARM_PASSES);

	promote_flush_lru();
	return err;
}

/* One CPU: what another one keeps in its LRU batches cannot be moved. */
static int stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* The next hot access; the page is not read again. */
static int ring(struct promote_queue *q)
{
	long page = page_size();
	char buf[1 << 16];

	if (q->next == q->bell.nr)
		return -ENOSPC;
	q->rung++;
	return pread(q->bell.fd, buf, page, q->next++ * page) == page ? 0 :
								       -EIO;
}

/*
 * promote_queue_start - prepare the calling task for recording
 * @q: zeroed
 * @node: a lower node
 *
 * The hot threshold is raised, which promote_test_end() undoes.
 * Promotion is on afterwards, and the task has an empty list.
 */
int promote_queue_start(struct promote_queue *q, int node)
{
	int err = stay_here();

	q->node = node;
	err = err ? err : promote_write(PROMOTE_THRESHOLD, HOLD_MS);
	err = err ? err : promote_write(PROMOTE_SWITCH, "0");
	err = err ? err : promote_file_make(&q->bell, BELL_PAGES * page_size(),
					    node, false);
	err = err ? err : warm(&q->bell);
	err = err ? err : promote_write(PROMOTE_SWITCH, "1");
	/* The first pass seen notes the time. */
	err = err ? err : promote_file_read(&q->bell);
	if (err)
		return err;
	usleep(PROMOTE_GAP_US);
	promote_count(&q->empty);
	/* The first hot access of a task only gets it a list. */
	return ring(q);
}

void promote_queue_end(struct promote_queue *q)
{
	promote_file_remove(&q->bell);
}

/* Pacing lets a task promote for as long as it has run. */
static void earn(void)
{
	struct timespec now;
	long start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	start = now.tv_sec * 1000000000L + now.tv_nsec;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000L + now.tv_nsec - start < DEBT_NS);
}

/* Recorded, and not drained yet */
static long waiting(struct promote_queue *q)
{
	return promote_since(&q->empty, PROMOTE_QUEUED) -
	       promote_since(&q->empty, PROMOTE_DRAINED);
}

/*
 * promote_queue_drain - let the list go
 * @q: the queue
 *
 * Return: 0 when the list is empty.
 */
int promote_queue_drain(struct promote_queue *q)
{
	int err;

	do {
		earn();
		usleep(RING_US);
		err = ring(q);
	} while (!err && waiting(q));
	return err;
}

/* Put all folios of the file on the empty list, in one system call. */
static int record(struct promote_queue *q, struct promote_file *file,
		  struct promote_counts *before)
{
	int err;

	promote_count(before);
	q->empty = *before;
	q->rung = 0;
	err = promote_file_read(file);
	if (err)
		return err;
	q->nr_folios = waiting(q);
	return promote_since(before, PROMOTE_DRAINED) ? -EAGAIN : 0;
}

static int make_hot(struct promote_queue *q, struct promote_file *file,
		    long *folios)
{
	struct promote_where where = { };
	int err;

	err = fsync(file->fd) ? -errno : 0;
	err = err ? err : promote_write(PROMOTE_SWITCH, "0");
	err = err ? err : promote_file_move(file, q->node);
	err = err ? err : promote_file_where(file, &where);
	if (!err && where.on_node[q->node] != file->nr)
		err = -EAGAIN;
	*folios = file->nr - where.tails;
	err = err ? err : warm(file);
	err = err ? err : promote_write(PROMOTE_SWITCH, "1");
	err = err ? err : promote_file_read(file);
	usleep(PROMOTE_GAP_US);
	return err;
}

/*
 * promote_queue_record - put all folios of a file on the list
 * @q: the queue
 * @file: of %PROMOTE_QUEUE_PAGES pages and two folios at least
 * @before: the counters before that
 *
 * The file is moved to the lower node. Nothing happens to the list until
 * promote_queue_drain(), if the calling task finds nothing else hot: let a
 * child do what counts as an access.
 */
int promote_queue_record(struct promote_queue *q, struct promote_file *file,
			 struct promote_counts *before)
{
	long folios = 0;
	int tries, err;

	for (tries = 0; tries < RECORD_TRIES; tries++) {
		err = make_hot(q, file, &folios);
		err = err ? err : promote_queue_drain(q);
		err = err ? err : record(q, file, before);
		if (!err && q->nr_folios == folios)
			return 0;
		if (err && err != -EAGAIN)
			return err;
		printf("# %ld of %ld folios recorded, once more\n",
		       q->nr_folios, folios);
		err = promote_queue_drain(q);
		if (err)
			return err;
	}
	return -ETIME;
}

static int overwrite(void *arg)
{
	struct promote_file *file = arg;
	char *data = malloc(file->size);

	if (!data || pread(file->fd, data, file->size, 0) < 0)
		return 1;
	return pwrite(file->fd, data, file->size, 0) != (ssize_t)file->size;
}

/* Write what the file has, in a child, for writing may count as an access. */
int promote_file_overwrite(struct promote_file *file)
{
	return promote_in_child(overwrite, file);
}

struct splice_arg {
	struct promote_file *file;
	int to;
};

static int fill_pipe(void *data)
{
	struct splice_arg *arg = data;
	size_t left = arg->file->size;
	loff_t at = 0;
	ssize_t len;

	for (; left; left -= len) {
		len = splice(arg->file->fd, &at, arg->to, NULL, left,
			     SPLICE_F_NONBLOCK);
		if (len <= 0)
			return 1;
	}
	return 0;
}

/*
 * promote_file_to_pipe - let a pipe hold a reference to each page of a file
 * @file: the file
 * @pipes: where to put the descriptors of the pipe; closing both ends it
 *
 * In a child, since splicing is an access.
 */
int promote_file_to_pipe(struct promote_file *file, int pipes[2])
{
	struct splice_arg arg = { .file = file };

	if (pipe(pipes))
		return -errno;
	arg.to = pipes[1];
	if (fcntl(arg.to, F_SETPIPE_SZ, file->size) < 0)
		return -errno;
	return promote_in_child(fill_pipe, &arg);
}

/*
 * promote_queue_drop_caches - drop the page cache of all files but the bell
 * @q: the queue
 *
 * What is mapped is not dropped, but taken for cold.
 */
int promote_queue_drop_caches(struct promote_queue *q)
{
	void *map = promote_file_map(&q->bell);
	int err;

	if (!map)
		return -errno;
	err = promote_write("/proc/sys/vm/drop_caches", "1");
	munmap(map, q->bell.size);
	err = err ? err : promote_write(PROMOTE_SWITCH, "0");
	err = err ? err : warm(&q->bell);
	return err ? err : promote_write(PROMOTE_SWITCH, "1");
}

/*
 * promote_trace_start - empty the trace buffer and enable our events
 * @saved: to put back what was set
 */
int promote_trace_start(struct promote_saved *saved)
{
	int fd, err = promote_set(saved, TRACING "events/promote/enable", "1");

	if (err)
		return err;
	fd = open(TRACING "trace", O_WRONLY | O_TRUNC);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/*
 * promote_trace_count - count lines of the trace
 * @event: name of the event
 * @fields: text that the line has to contain after that
 */
long promote_trace_count(const char *event, const char *fields)
{
	char line[512], name[64], *found;
	long count = 0;
	FILE *trace;

	trace = fopen(TRACING "trace", "r");
	if (!trace)
		return -errno;
	snprintf(name, sizeof(name), " %s: ", event);
	while (fgets(line, sizeof(line), trace)) {
		found = strstr(line, name);
		if (found && strstr(found + strlen(name), fields))
			count++;
	}
	fclose(trace);
	return count;
}
