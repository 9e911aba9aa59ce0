// SPDX-License-Identifier: GPL-2.0
/*
 * One column of the demo: put a file's page cache on a node from another
 * process, then read it again and again, 1 MiB at a time. After each pass one
 * line, "pass COLUMN N INSTRUCTIONS/MiB PAGES-TOP PAGES-LOWER HINTS SUCCESSES".
 * Under -icount shift=0 a nanosecond is an instruction. Pages are counted per
 * node over the whole VM, less what was there before: this touches no page.
 * The last line is "final COLUMN PAGES ON-TOP ON-LOWER", asked page by page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "promote_util.h"

#define CHUNK (1UL << 20)

struct column {
	const char *name;
	struct promote_file file;
	struct promote_counts before;
	int top, lower;
	long base_top, base_lower;
};

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

static long node_pages(int node)
{
	return promote_node_stat(node, "nr_file_pages");
}

static void die(const char *what, int err)
{
	fprintf(stderr, "demo-reader: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void place(struct column *column, int node)
{
	off_t end = column->file.size - 1;
	char byte;
	int err;

	/* The file system's own pages come in now, not while we count. */
	if (pread(column->file.fd, &byte, 1, 0) != 1 ||
	    pread(column->file.fd, &byte, 1, end) != 1)
		die("read", -errno);
	err = promote_file_drop(&column->file);
	if (err)
		die("cannot drop the file from the page cache", err);
	column->base_top = node_pages(column->top);
	column->base_lower = node_pages(column->lower);
	err = promote_file_place(&column->file, node, true);
	if (err)
		die("cannot place the file", err);
}

static void read_once(struct column *column, char *buf)
{
	ssize_t len;

	if (lseek(column->file.fd, 0, SEEK_SET))
		die("lseek", -errno);
	while ((len = read(column->file.fd, buf, CHUNK)) > 0)
		;
	if (len)
		die("read", -errno);
}

static void pass(struct column *column, int number, char *buf)
{
	long start = now_ns(), ns;

	read_once(column, buf);
	ns = now_ns() - start;
	printf("pass %s %d %ld %ld %ld %ld %ld\n", column->name, number,
	       (long)(ns / ((double)column->file.size / CHUNK)),
	       node_pages(column->top) - column->base_top,
	       node_pages(column->lower) - column->base_lower,
	       promote_since(&column->before, PROMOTE_HINT),
	       promote_since(&column->before, PROMOTE_SUCCESS));
}

int main(int argc, char *argv[])
{
	struct column column = { 0 };
	struct promote_where where;
	struct stat st;
	char *buf = malloc(CHUNK);
	int i, err, passes;

	if (argc != 5 || !buf) {
		fprintf(stderr, "usage: demo-reader FILE COLUMN top|lower PASSES\n");
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	column.name = argv[2];
	column.top = promote_top_node();
	column.lower = promote_lower_node();
	if (column.lower < 0)
		die("no node below the top tier", -ENODEV);
	snprintf(column.file.path, sizeof(column.file.path), "%s", argv[1]);
	column.file.fd = open(argv[1], O_RDONLY);
	if (column.file.fd < 0 || fstat(column.file.fd, &st))
		die(argv[1], -errno);
	column.file.size = st.st_size;
	column.file.nr = (st.st_size + sysconf(_SC_PAGESIZE) - 1) /
			 sysconf(_SC_PAGESIZE);
	passes = atoi(argv[4]);

	place(&column, strcmp(argv[3], "top") ? column.lower : column.top);
	memset(buf, 0, CHUNK);
	promote_count(&column.before);
	for (i = 1; i <= passes; i++)
		pass(&column, i, buf);
	err = promote_file_where(&column.file, &where);
	if (err)
		die("cannot find the pages", err);
	printf("final %s %ld %ld %ld\n", column.name, column.file.nr,
	       where.on_node[column.top], where.on_node[column.lower]);
	return 0;
}
