/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Trace events for the promotion tests, in a buffer of their own.
 */
#ifndef __PROMOTE_EVENTS_H
#define __PROMOTE_EVENTS_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "promote_util.h"

#define PROMOTE_TRACING "/sys/kernel/tracing"

struct promote_events {
	char dir[PATH_MAX / 2];
};

/* Trace an event, such as "promote/promote_drain". */
static inline int promote_events_start(struct promote_events *events,
				       const char *event)
{
	char path[PATH_MAX];

	snprintf(events->dir, sizeof(events->dir),
		 PROMOTE_TRACING "/instances/promote.%d", (int)getpid());
	if (mkdir(events->dir, 0700) && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/events/%s/enable", events->dir, event);
	return promote_write(path, "1");
}

static inline void promote_events_end(struct promote_events *events)
{
	rmdir(events->dir);
}

/*
 * Call a function for each line that has a text; the number of such lines, or
 * a negative error.
 */
static inline long promote_events_lines(struct promote_events *events,
					const char *text,
					void (*function)(const char *line,
							 void *arg),
					void *arg)
{
	char path[PATH_MAX], line[512];
	long nr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", events->dir);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		/* The head of the file explains the columns. */
		if (line[0] == '#' || !strstr(line, text))
			continue;
		nr++;
		if (function)
			function(line, arg);
	}
	fclose(f);
	return nr;
}

/* The number after "name=" in a line, or -1. */
static inline long promote_events_field(const char *line, const char *name)
{
	size_t len = strlen(name);
	const char *at = line;

	while ((at = strstr(at, name))) {
		if (at > line && at[-1] == ' ' && at[len] == '=')
			return strtol(at + len + 1, NULL, 10);
		at += len;
	}
	return -1;
}

#endif /* __PROMOTE_EVENTS_H */
