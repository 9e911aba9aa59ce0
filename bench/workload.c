// SPDX-License-Identifier: GPL-2.0
/*
 * A reader to be measured: puts a file's page cache on a tier, reads it pass by
 * pass, and marks each pass for the plugin. For each region that the plugin
 * writes this prints a line, in the same order:
 *
 *   region NAME ROUND PASS READS PAGES MOVED
 *
 * READS are the system calls of the pass, PAGES those of the file, MOVED what
 * has been promoted since it was placed.
 *
 * There are two shapes. "steady" places the file once and reads it until the
 * LRU has nothing more to note; then each pass is a round. In a "sequence" a
 * round is the placing and the first passes; what is promoted is read until all
 * of it is, and then some more. Round 0 is a warm-up.
 *
 * The file is one of holes: its page cache is read and moved like any other, and
 * placing it does not wait for a disk.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/marker.h"
#include "promote_util.h"

#define ROUNDS 6
#define WARM_UP_PASSES 8
/* Of a sequence in which nothing is to be promoted */
#define SEQUENCE_PASSES 12
/* Of one in which something is: after it has been, and at most */
#define PASSES_AFTER 2
#define MAX_PASSES 60

struct workload {
	const char *name;
	struct promote_file file;
	int node;
	bool large;
	bool promotes;
	size_t chunk;
	int gap_us;
	char *buf;
	struct promote_counts placed;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "bench-workload: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void place(struct workload *work)
{
	int err = promote_file_place(&work->file, work->node, work->large);

	if (err)
		die("cannot place the file", err);
	promote_count(&work->placed);
}

/* Small folios come from small reads without readahead; nothing is read in. */
static void read_pass(struct workload *work)
{
	size_t at;

	for (at = 0; at < work->file.size; at += work->chunk) {
		if (pread(work->file.fd, work->buf, work->chunk, at) !=
		    (ssize_t)work->chunk)
			die("read", errno ? -errno : -EIO);
	}
}

static long measured_pass(struct workload *work, int round, int pass)
{
	long moved;

	MARKER_NOP(MARKER_START);
	read_pass(work);
	MARKER_NOP(MARKER_STOP);
	moved = promote_since(&work->placed, PROMOTE_SUCCESS);
	printf("region %s %d %d %zu %ld %ld\n", work->name, round, pass,
	       work->file.size / work->chunk, work->file.nr, moved);
	usleep(work->gap_us);
	return moved;
}

static void steady(struct workload *work)
{
	int i;

	place(work);
	for (i = 0; i < WARM_UP_PASSES; i++) {
		read_pass(work);
		usleep(work->gap_us);
	}
	for (i = 0; i <= ROUNDS; i++)
		measured_pass(work, i, 1);
}

static void sequence(struct workload *work)
{
	int round, pass, last;

	for (round = 0; round <= ROUNDS; round++) {
		place(work);
		last = work->promotes ? MAX_PASSES : SEQUENCE_PASSES;
		for (pass = 1; pass <= last; pass++) {
			if (measured_pass(work, round, pass) >= work->file.nr &&
			    last == MAX_PASSES)
				last = pass + PASSES_AFTER;
		}
		if (last == MAX_PASSES)
			die("the file was not promoted", -ETIME);
	}
}

static void set_up(struct workload *work, char *argv[])
{
	bool lower = !strcmp(argv[3], "lower");
	char enabled[16] = "";
	int err;

	work->name = argv[1];
	work->node = lower ? promote_lower_node() : promote_top_node();
	if (work->node < 0)
		die("no such node", -ENODEV);
	work->large = !strcmp(argv[4], "large");
	work->chunk = atol(argv[5]) << 10;
	work->gap_us = atoi(argv[7]) * 1000;
	promote_read(PROMOTE_SWITCH, enabled, sizeof(enabled));
	work->promotes = lower && !strcmp(enabled, "true");
	work->buf = malloc(work->chunk);
	if (!work->buf)
		die("memory", -ENOMEM);
	memset(work->buf, 1, work->chunk);

	err = promote_run_on_node(promote_top_node());
	if (err)
		die("cannot choose the CPU", err);
	err = promote_file_sparse(&work->file, atol(argv[2]) << 20);
	if (err)
		die("cannot make the file", err);
}

int main(int argc, char *argv[])
{
	struct workload work = { 0 };

	if (argc != 8) {
		fprintf(stderr, "usage: bench-workload NAME MIB top|lower "
			"small|large READ-KIB steady|sequence GAP-MS\n");
		return 1;
	}
	/* The console's interrupts are not to come while we count. */
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	set_up(&work, argv);
	if (!strcmp(argv[6], "steady"))
		steady(&work);
	else
		sequence(&work);
	promote_file_remove(&work.file);
	return 0;
}
