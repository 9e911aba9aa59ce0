/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of page cache promotion: settings, counters, and files
 * whose page cache is put on a node and found again.
 */
#ifndef __PROMOTE_UTIL_H
#define __PROMOTE_UTIL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROMOTE_SWITCH "/sys/kernel/mm/numa/pagecache_promotion_enabled"
#define PROMOTE_BALANCING "/proc/sys/kernel/numa_balancing"
#define PROMOTE_SCAN_DELAY "/sys/kernel/debug/sched/numa_balancing/scan_delay_ms"
#define PROMOTE_THRESHOLD "/sys/kernel/debug/sched/numa_balancing/hot_threshold_ms"
#define PROMOTE_MIN_GAP "/sys/kernel/debug/promote/min_gap_ms"
#define PROMOTE_STATE "/sys/kernel/debug/promote/state"
#define PROMOTE_LRU_GEN "/sys/kernel/mm/lru_gen/enabled"

/* Longer than the shortest re-access time that counts, 16 ms and a bit. */
#define PROMOTE_GAP_US 30000
/* Longer than a folio is left alone after it was refused. */
#define PROMOTE_BACKOFF_US 1200000
/* Passes after which any LRU takes a file for hot. */
#define PROMOTE_WARM_PASSES 10
/* More passes over a file than it takes on any LRU until it is promoted. */
#define PROMOTE_PASSES 20
/* Enough where a drain takes much longer than a pass, and is paid for. */
#define PROMOTE_MAX_PASSES 200

/* Seconds for one test: emulated machines are slow. */
#define PROMOTE_TIMEOUT 300

#define PROMOTE_MAX_NODES 64

/* Milliseconds, from some time on. */
long promote_now_ms(void);

/* Small files and values. Errors are negative errno values. */
int promote_read(const char *path, char *text, size_t size);
int promote_write(const char *path, const char *text);
int promote_write_number(const char *path, long number);

/* Settings that a test changes, to be put back when it ends. */
#define PROMOTE_MAX_SAVED 16
struct promote_saved {
	int nr;
	char path[PROMOTE_MAX_SAVED][128];
	char value[PROMOTE_MAX_SAVED][64];
};

int promote_set(struct promote_saved *saved, const char *path,
		const char *value);
void promote_restore(struct promote_saved *saved);

/* Nodes: the first of the top tier, the first below it or -1. */
int promote_top_node(void);
int promote_lower_node(void);
/* Another node of the top tier that has CPUs and memory, or -1. */
int promote_other_top_node(void);
/* Stay on the first CPU of a node. */
int promote_run_on_node(int node);

/* Why a test cannot run here, or NULL. */
const char *promote_no_feature(void);
const char *promote_no_tiers(void);

/* The switch on or off, and numa_balancing to memory tiering. */
int promote_enable(struct promote_saved *saved, bool on);

enum promote_counter {
	PROMOTE_HINT,
	PROMOTE_HINT_LOCAL,
	PROMOTE_MIGRATED,
	PROMOTE_SUCCESS,
	PROMOTE_CANDIDATE,
	PROMOTE_CANDIDATE_NRL,
	PROMOTE_QUEUED,
	PROMOTE_DRAINED,
	PROMOTE_FAIL_STALE,
	PROMOTE_FAIL_MAPPED,
	PROMOTE_FAIL_DIRTY,
	PROMOTE_FAIL_WRITEBACK,
	PROMOTE_FAIL_LOCKED,
	PROMOTE_FAIL_BUSY,
	PROMOTE_FAIL_NODE,
	PROMOTE_FAIL_CPUSET,
	PROMOTE_FAIL_POLICY,
	PROMOTE_FAIL_RATE,
	PROMOTE_FAIL_BUDGET,
	PROMOTE_FAIL_NOMEM,
	PROMOTE_FAIL_OTHER,
	PROMOTE_NR_COUNTERS,
};

struct promote_counts {
	long value[PROMOTE_NR_COUNTERS];
};

const char *promote_counter_name(enum promote_counter counter);
long promote_stat(const char *path, const char *name);
/* Counters of a cgroup lag behind: wait until this one has the value. */
bool promote_stat_becomes(const char *path, const char *name, long want);
long promote_vmstat(const char *name);
long promote_node_stat(int node, const char *name);
long promote_node_headroom(int node);
long promote_node_room(int node);
void promote_count(struct promote_counts *counts);
long promote_since(const struct promote_counts *before,
		   enum promote_counter counter);
/* Sum of all counters that only this path moves. */
long promote_activity_since(const struct promote_counts *before);
/* Sum of the refusals, for any reason. */
long promote_refused_since(const struct promote_counts *before);

/* A file of known content in $TMPDIR or the current directory. */
struct promote_file {
	char path[PATH_MAX];
	size_t size;
	long nr;		/* of pages */
	unsigned long long sum;
	int fd;
	bool keep;		/* not ours to remove */
};

/* Where the pages of a file are, and what the kernel has flagged them as. */
struct promote_where {
	long on_node[PROMOTE_MAX_NODES];
	long absent;
	long tails;		/* inside large folios */
	long active;		/* hot for the classic LRU */
	long private;		/* with data of the file system's own */
};

/* Put what CPUs keep in batches on the LRU lists. */
void promote_flush_lru(void);

size_t promote_test_bytes(void);
int promote_file_new(struct promote_file *file, size_t size);
int promote_file_create(struct promote_file *file, size_t size);
int promote_file_sparse(struct promote_file *file, size_t size);
int promote_file_open(struct promote_file *file, const char *path, size_t size);
int promote_file_write(struct promote_file *file, size_t chunk);
void promote_file_remove(struct promote_file *file);
int promote_file_drop(struct promote_file *file);
long promote_file_resident(struct promote_file *file);
int promote_file_place(struct promote_file *file, int node, bool large);
int promote_file_make(struct promote_file *file, size_t size, int node,
		      bool large);
int promote_file_make_written(struct promote_file *file, size_t size, int node);
int promote_file_read(struct promote_file *file);
int promote_file_read_pages(struct promote_file *file, long first, long nr);
int promote_file_check(struct promote_file *file);
int promote_file_learn(struct promote_file *file);
int promote_file_passes(struct promote_file *file, int passes);
int promote_file_read_until_moved(struct promote_file *file,
				  const struct promote_counts *before);
void *promote_file_map(struct promote_file *file);
int promote_file_where(struct promote_file *file, struct promote_where *where);
bool promote_file_is_on(struct promote_file *file, int node);

/* NUMA policy of the calling task: MPOL_* mode on one node. */
int promote_policy(int mode, int node);
/* The same on a set of nodes, one bit each; 0 for none. */
int promote_policy_mask(int mode, unsigned long mask);
int promote_page_nodes(void *start, size_t nr, long on_node[PROMOTE_MAX_NODES]);

/* A tmpfs of its own for the files that are created from now on. */
int promote_tmpfs_start(char *dir, const char *options);
void promote_tmpfs_end(const char *dir);

/* Run a function in a child; its return value, or -1 if the child died. */
void *promote_shared(size_t size);
int promote_in_child(int (*function)(void *arg), void *arg);
/* A child that runs a function that returns 0, and waits to be killed. */
pid_t promote_background(int (*function)(void *arg), void *arg);
void promote_end_background(pid_t pid);
/* For promote_background(): leave no headroom on the node that arg points to. */
int promote_fill_node(void *arg);
/*
 * The same: read, once, as much of a file as a node has room for without reclaim.
 * To stay in the background: what it has itself there must not become free.
 */
struct promote_hoarder {
	struct promote_file *file;
	int node;
};

int promote_cache_until_full(void *arg);
/* The same: leave at most so many pages for promotion. */
struct promote_room {
	int node;
	long pages;
};

int promote_leave_room(void *arg);

/* Cgroups (v2); NULL when the controllers are not there. */
const char *promote_cgroup(const char *name, char *path, size_t size);
int promote_cgroup_enter(const char *path);
void promote_cgroup_remove(const char *path);
int promote_cgroup_set(const char *path, const char *file, const char *value);

#endif /* __PROMOTE_UTIL_H */
