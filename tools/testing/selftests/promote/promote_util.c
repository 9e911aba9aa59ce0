// SPDX-License-Identifier: GPL-2.0
/* Helpers for the tests of page cache promotion, see promote_util.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "promote_util.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CGROUP_ROOT "/sys/fs/cgroup"
#define KPF_ACTIVE 6
#define KPF_COMPOUND_TAIL 16
#define KPF_PRIVATE 35
#define PAGEMAP_PRESENT 0x8000000000000000ULL
#define PAGEMAP_PFN 0x7fffffffffffffULL
#define CHUNK (1024UL * 1024)

static const char * const counter_names[PROMOTE_NR_COUNTERS] = {
	[PROMOTE_HINT] = "numa_hint_page_cache",
	[PROMOTE_HINT_LOCAL] = "numa_hint_page_cache_local",
	[PROMOTE_MIGRATED] = "numa_pages_migrated",
	[PROMOTE_SUCCESS] = "pgpromote_success",
	[PROMOTE_CANDIDATE] = "pgpromote_candidate",
	[PROMOTE_CANDIDATE_NRL] = "pgpromote_candidate_nrl",
	[PROMOTE_QUEUED] = "pagecache_promote_queued",
	[PROMOTE_DRAINED] = "pagecache_promote_drained",
	[PROMOTE_FAIL_STALE] = "pagecache_promote_fail_stale",
	[PROMOTE_FAIL_MAPPED] = "pagecache_promote_fail_mapped",
	[PROMOTE_FAIL_DIRTY] = "pagecache_promote_fail_dirty",
	[PROMOTE_FAIL_WRITEBACK] = "pagecache_promote_fail_writeback",
	[PROMOTE_FAIL_LOCKED] = "pagecache_promote_fail_locked",
	[PROMOTE_FAIL_BUSY] = "pagecache_promote_fail_busy",
	[PROMOTE_FAIL_NODE] = "pagecache_promote_fail_node",
	[PROMOTE_FAIL_CPUSET] = "pagecache_promote_fail_cpuset",
	[PROMOTE_FAIL_POLICY] = "pagecache_promote_fail_policy",
	[PROMOTE_FAIL_RATE] = "pagecache_promote_fail_rate",
	[PROMOTE_FAIL_BUDGET] = "pagecache_promote_fail_budget",
	[PROMOTE_FAIL_NOMEM] = "pagecache_promote_fail_nomem",
	[PROMOTE_FAIL_OTHER] = "pagecache_promote_fail_other",
};

const char *promote_counter_name(enum promote_counter counter)
{
	return counter_names[counter];
}

static long page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

long promote_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int promote_read(const char *path, char *text, size_t size)
{
	ssize_t len;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	len = read(fd, text, size - 1);
	if (len < 0) {
		len = -errno;
		close(fd);
		return len;
	}
	close(fd);
	if (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return len;
}

int promote_write(const char *path, const char *text)
{
	ssize_t len;
	int fd, err = 0;

	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	len = write(fd, text, strlen(text));
	if (len < 0)
		err = -errno;
	else if ((size_t)len != strlen(text))
		err = -EIO;
	close(fd);
	return err;
}

int promote_write_number(const char *path, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	return promote_write(path, text);
}

int promote_set(struct promote_saved *saved, const char *path,
		const char *value)
{
	int i, err;

	for (i = 0; i < saved->nr; i++) {
		if (!strcmp(saved->path[i], path))
			return promote_write(path, value);
	}
	if (i == PROMOTE_MAX_SAVED)
		return -ENOSPC;
	err = promote_read(path, saved->value[i], sizeof(saved->value[i]));
	if (err < 0)
		return err;
	snprintf(saved->path[i], sizeof(saved->path[i]), "%s", path);
	saved->nr++;
	return promote_write(path, value);
}

void promote_restore(struct promote_saved *saved)
{
	while (saved->nr--)
		promote_write(saved->path[saved->nr], saved->value[saved->nr]);
	saved->nr = 0;
}

/* The first number of a list such as "0-1,4", or -1. */
static int first_of_list(const char *path)
{
	char text[256];

	if (promote_read(path, text, sizeof(text)) <= 0)
		return -1;
	return strtol(text, NULL, 10);
}

/* Is the node in a list such as "0-1,4"? */
static bool in_list(const char *list, int node)
{
	int first, last, used;

	while (sscanf(list, "%d%n", &first, &used) == 1) {
		list += used;
		last = first;
		if (sscanf(list, "-%d%n", &last, &used) == 1)
			list += used;
		if (node >= first && node <= last)
			return true;
		if (*list++ != ',')
			break;
	}
	return false;
}

static int tier_of(int node)
{
	char path[128], list[256];
	int tier;

	for (tier = 0; tier < 512; tier++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/virtual/memory_tiering/memory_tier%d/nodelist",
			 tier);
		if (promote_read(path, list, sizeof(list)) > 0 &&
		    in_list(list, node))
			return tier;
	}
	return -1;
}

int promote_top_node(void)
{
	return first_of_list("/sys/devices/system/node/has_cpu");
}

int promote_lower_node(void)
{
	char nodes[256];
	int node, top = tier_of(promote_top_node());

	if (top < 0 || promote_read("/sys/devices/system/node/has_memory",
				    nodes, sizeof(nodes)) <= 0)
		return -1;
	for (node = 0; node < PROMOTE_MAX_NODES; node++) {
		if (in_list(nodes, node) && tier_of(node) > top)
			return node;
	}
	return -1;
}

int promote_other_top_node(void)
{
	char nodes[256];
	int node, top = promote_top_node();

	if (promote_read("/sys/devices/system/node/has_cpu", nodes,
			 sizeof(nodes)) <= 0)
		return -1;
	for (node = 0; node < PROMOTE_MAX_NODES; node++) {
		if (node != top && in_list(nodes, node) &&
		    tier_of(node) == tier_of(top))
			return node;
	}
	return -1;
}

int promote_run_on_node(int node)
{
	char path[128];
	cpu_set_t cpus;
	int cpu;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist",
		 node);
	cpu = first_of_list(path);
	if (cpu < 0)
		return -ENOENT;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return sched_setaffinity(0, sizeof(cpus), &cpus) ? -errno : 0;
}

const char *promote_no_feature(void)
{
	if (geteuid())
		return "needs root";
	if (access(PROMOTE_SWITCH, F_OK))
		return "no CONFIG_PAGECACHE_PROMOTION in this kernel";
	if (access(PROMOTE_BALANCING, F_OK))
		return "no CONFIG_NUMA_BALANCING in this kernel";
	if (access(PROMOTE_STATE, F_OK) || access(PROMOTE_THRESHOLD, F_OK))
		return "debugfs is not mounted";
	return NULL;
}

const char *promote_no_tiers(void)
{
	const char *why = promote_no_feature();

	if (why)
		return why;
	if (promote_lower_node() < 0)
		return "no node below the top memory tier";
	return NULL;
}

/*
 * Hint faults promote mapped memory of the tests and count as well: let no
 * process that starts from now on be scanned for them.
 */
int promote_enable(struct promote_saved *saved, bool on)
{
	int err = promote_set(saved, PROMOTE_SCAN_DELAY, "3600000");

	err = err ? err : promote_set(saved, PROMOTE_BALANCING, "2");
	return err ? err : promote_set(saved, PROMOTE_SWITCH, on ? "1" : "0");
}

long promote_stat(const char *path, const char *name)
{
	char line[256];
	size_t len = strlen(name);
	long value = -1;
	FILE *file;

	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, len) && line[len] == ' ') {
			value = strtol(line + len + 1, NULL, 10);
			break;
		}
	}
	fclose(file);
	return value;
}

bool promote_stat_becomes(const char *path, const char *name, long want)
{
	long got;
	int tries;

	for (tries = 0; tries < 60; tries++) {
		got = promote_stat(path, name);
		if (got == want)
			return true;
		usleep(200000);
	}
	printf("# %s: %s is %ld, not %ld\n", path, name, got, want);
	return false;
}

/* Fold the per-CPU parts into the global counters. */
static void refresh_vmstat(void)
{
	char text[16];

	promote_read("/proc/sys/vm/stat_refresh", text, sizeof(text));
}

long promote_vmstat(const char *name)
{
	refresh_vmstat();
	return promote_stat("/proc/vmstat", name);
}

long promote_node_stat(int node, const char *name)
{
	char path[128];

	refresh_vmstat();
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/vmstat",
		 node);
	return promote_stat(path, name);
}

/*
 * Pages of a node above the promotion watermarks of its zones, above what the
 * zones keep for allocations that can use no other, and above a share of each.
 */
/* As promote_zone_mark() of mm/promote/policy.c has it. */
static long zone_margin(long high, long managed)
{
	long margin = high * 2 + high / 2;

	if (margin < managed >> 8)
		margin = managed >> 8;
	return margin < 64 ? 64 : margin;
}

static long node_room(int node, bool with_margin)
{
	long free = 0, boost = 0, high = 0, promo = 0, managed = 0;
	long value, keep, room = 0;
	char line[256];
	int nid = -1, number;
	FILE *f;

	f = fopen("/proc/zoneinfo", "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Node %d, zone", &number) == 1)
			nid = number;
		if (sscanf(line, " pages free %ld", &value) == 1)
			free = value;
		if (sscanf(line, " boost %ld", &value) == 1)
			boost = value;
		if (sscanf(line, " high %ld", &value) == 1)
			high = value;
		if (sscanf(line, " promo %ld", &value) == 1)
			promo = value;
		if (sscanf(line, " managed %ld", &value) == 1)
			managed = value;
		if (nid != node || !strstr(line, "protection: ("))
			continue;
		/* The last of the list is for movable memory. */
		keep = promo + strtol(strrchr(line, ' '), NULL, 10);
		if (with_margin)
			keep += zone_margin(high - boost, managed);
		if (free > keep)
			room += free - keep;
	}
	fclose(f);
	return room;
}

/* What can be taken from a node without reclaim. */
long promote_node_headroom(int node)
{
	return node_room(node, false);
}

/* What can be promoted to it without paying. */
long promote_node_room(int node)
{
	return node_room(node, true);
}

void promote_count(struct promote_counts *counts)
{
	int i;

	refresh_vmstat();
	for (i = 0; i < PROMOTE_NR_COUNTERS; i++)
		counts->value[i] = promote_stat("/proc/vmstat",
						counter_names[i]);
}

long promote_since(const struct promote_counts *before,
		   enum promote_counter counter)
{
	return promote_vmstat(counter_names[counter]) -
	       before->value[counter];
}

long promote_activity_since(const struct promote_counts *before)
{
	return promote_since(before, PROMOTE_HINT) +
	       promote_since(before, PROMOTE_HINT_LOCAL) +
	       promote_since(before, PROMOTE_QUEUED) +
	       promote_since(before, PROMOTE_DRAINED);
}

long promote_refused_since(const struct promote_counts *before)
{
	struct promote_counts now;
	long refused = 0;
	int i;

	promote_count(&now);
	for (i = PROMOTE_FAIL_STALE; i <= PROMOTE_FAIL_OTHER; i++)
		refused += now.value[i] - before->value[i];
	return refused;
}

/*
 * A CPU keeps the last few folios that it has added or activated in batches of
 * its own before it puts them on their lists, and meanwhile nobody can move
 * them. Migration of memory flushes all CPUs first, even if there is nothing to
 * migrate.
 */
void promote_flush_lru(void)
{
	unsigned long mask = 1UL << promote_top_node();

	syscall(SYS_migrate_pages, 0, PROMOTE_MAX_NODES, &mask, &mask);
}

size_t promote_test_bytes(void)
{
	const char *text = getenv("PROMOTE_TEST_MB");
	long mb = text ? strtol(text, NULL, 10) : 0;

	return (mb > 0 ? mb : 64) << 20;
}

static unsigned long long sum_of(unsigned long long sum, const void *data, size_t size)
{
	const unsigned long long *word = data;
	size_t i;

	for (i = 0; i < size / sizeof(*word); i++)
		sum = (sum ^ word[i]) * 0x100000001b3ULL;
	return sum;
}

/* Write the content that a file of this size has, in pieces of this size. */
int promote_file_write(struct promote_file *file, size_t chunk)
{
	unsigned long long word = 0x9e3779b97f4a7c15ULL ^ file->size;
	unsigned long long *data;
	size_t done, len, i;
	int err = 0;

	data = malloc(chunk);
	if (!data)
		return -ENOMEM;
	file->sum = 0;
	for (done = 0; done < file->size && !err; done += len) {
		len = file->size - done < chunk ? file->size - done : chunk;
		for (i = 0; i < len / sizeof(word); i++) {
			word ^= word << 13;
			word ^= word >> 7;
			word ^= word << 17;
			data[i] = word;
		}
		file->sum = sum_of(file->sum, data, len);
		errno = EIO;
		if (pwrite(file->fd, data, len, done) != (ssize_t)len)
			err = -errno;
	}
	free(data);
	return err;
}

static void set_size(struct promote_file *file, size_t size)
{
	file->size = size;
	file->nr = size / page_size();
}

/* A file without content, which promote_file_write() writes. */
int promote_file_new(struct promote_file *file, size_t size)
{
	const char *dir = getenv("TMPDIR");
	static int serial;

	set_size(file, size);
	snprintf(file->path, sizeof(file->path), "%s/promote.%d.%d",
		 dir ? dir : ".", (int)getpid(), serial++);
	file->fd = open(file->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return file->fd < 0 ? -errno : 0;
}

int promote_file_create(struct promote_file *file, size_t size)
{
	int err = promote_file_new(file, size);

	return err ? err : promote_file_write(file, CHUNK);
}

/*
 * A file of holes: cached as any other, and no disk is read for it. Where what
 * matters is not its content.
 */
int promote_file_sparse(struct promote_file *file, size_t size)
{
	int err = promote_file_new(file, size);

	if (!err && ftruncate(file->fd, size))
		err = -errno;
	return err;
}

/* The head of a file, or a block device, that is there: whole pages. */
int promote_file_open(struct promote_file *file, const char *path, size_t size)
{
	off_t end;

	file->keep = true;
	snprintf(file->path, sizeof(file->path), "%s", path);
	file->fd = open(path, O_RDONLY);
	if (file->fd < 0)
		return -errno;
	end = lseek(file->fd, 0, SEEK_END);
	if (end < page_size())
		return -ENODATA;
	set_size(file, size < (size_t)end ? size : (size_t)end & -page_size());
	return promote_file_learn(file);
}

void promote_file_remove(struct promote_file *file)
{
	if (file->fd > 0)
		close(file->fd);
	file->fd = -1;
	if (file->path[0] && !file->keep)
		unlink(file->path);
}

/* The number of pages in the page cache. */
long promote_file_resident(struct promote_file *file)
{
	unsigned char *in_core = malloc(file->nr);
	long i, resident = 0;
	void *map;

	map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED || !in_core) {
		free(in_core);
		return -1;
	}
	if (mincore(map, file->size, in_core))
		resident = -1;
	for (i = 0; i < file->nr && resident >= 0; i++)
		resident += in_core[i] & 1;
	munmap(map, file->size);
	free(in_core);
	return resident;
}

/* Take all pages out of the page cache. */
int promote_file_drop(struct promote_file *file)
{
	int tries;

	for (tries = 0; tries < 10; tries++) {
		/* A read-only file system may know no fsync(). */
		if (fsync(file->fd) && errno != EINVAL)
			return -errno;
		posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
		if (!promote_file_resident(file))
			return 0;
		usleep(100000);
	}
	return -EBUSY;
}

struct place_arg {
	struct promote_file *file;
	int node;
	bool large;
};

static int place(void *data)
{
	struct place_arg *arg = data;
	size_t chunk = arg->large ? CHUNK : (size_t)page_size();
	size_t done = 0;
	ssize_t len;
	char *buf;
	int fd;

	if (promote_policy(MPOL_BIND, arg->node))
		return 1;
	buf = malloc(chunk);
	fd = open(arg->file->path, O_RDONLY);
	if (fd < 0 || !buf)
		return 2;
	posix_fadvise(fd, 0, 0, arg->large ? POSIX_FADV_SEQUENTIAL :
					     POSIX_FADV_RANDOM);
	while (done < arg->file->size && (len = read(fd, buf, chunk)) > 0)
		done += len;
	return done < arg->file->size ? 3 : 0;
}

/*
 * Put the page cache of a file on a node: another process, bound to it, reads
 * the file once. Its policy ends with it. Small reads without readahead leave
 * order-0 folios, a sequential read large ones.
 */
int promote_file_place(struct promote_file *file, int node, bool large)
{
	struct place_arg arg = { file, node, large };
	long before, after;
	int err;

	err = promote_file_drop(file);
	if (err)
		return err;
	before = promote_node_stat(node, "nr_file_pages");
	err = promote_in_child(place, &arg);
	if (err)
		return -ECHILD;
	promote_flush_lru();
	after = promote_node_stat(node, "nr_file_pages");
	return after - before < file->nr - file->nr / 100 ? -ENODATA : 0;
}

/* A file of known content whose page cache is on a node. */
int promote_file_make(struct promote_file *file, size_t size, int node,
		      bool large)
{
	int err = promote_file_create(file, size);

	return err ? err : promote_file_place(file, node, large);
}

/*
 * The same where what is written is where its writer's policy says, and stays
 * there: in a tmpfs.
 */
int promote_file_make_written(struct promote_file *file, size_t size, int node)
{
	int err = promote_policy(MPOL_BIND, node);

	err = err ? err : promote_file_create(file, size);
	return promote_policy(MPOL_DEFAULT, -1) ? -EINVAL : err;
}

static int read_file(struct promote_file *file, unsigned long long *sum)
{
	size_t done = 0;
	ssize_t len;
	char *buf;

	buf = malloc(CHUNK);
	if (!buf)
		return -ENOMEM;
	while (done < file->size) {
		len = file->size - done < CHUNK ? file->size - done : CHUNK;
		len = pread(file->fd, buf, len, done);
		if (len <= 0)
			break;
		if (sum)
			*sum = sum_of(*sum, buf, len);
		done += len;
	}
	free(buf);
	return done < file->size ? -EIO : 0;
}

/* Read the file once, as a plain reader does. */
int promote_file_read(struct promote_file *file)
{
	return read_file(file, NULL);
}

/* Read some pages one by one, or those that the file has of them. */
int promote_file_read_pages(struct promote_file *file, long first, long nr)
{
	long page = page_size();
	char buf[1 << 16];

	for (; nr-- > 0 && first < file->nr; first++) {
		if (pread(file->fd, buf, page, first * page) != page)
			return -EIO;
	}
	return 0;
}

/* Read the file once and compare; -EBADMSG if it has changed. */
int promote_file_check(struct promote_file *file)
{
	unsigned long long sum = 0;
	int err = read_file(file, &sum);

	if (err)
		return err;
	return sum == file->sum ? 0 : -EBADMSG;
}

/* Take the content that the file has now for the right one. */
int promote_file_learn(struct promote_file *file)
{
	file->sum = 0;
	return read_file(file, &file->sum);
}

/*
 * Read passes, further apart than the shortest re-access time that counts. An
 * idle CPU, on which this task has run before, would hold on to a few folios
 * for ever: flush it on the way.
 */
int promote_file_passes(struct promote_file *file, int passes)
{
	int i, err = 0;

	for (i = 0; i < passes && !err; i++) {
		if (i && i == passes / 2)
			promote_flush_lru();
		err = promote_file_read(file);
		usleep(PROMOTE_GAP_US);
	}
	return err;
}

/* Passes until all pages have moved, or many; the caller finds out which. */
int promote_file_read_until_moved(struct promote_file *file,
				  const struct promote_counts *before)
{
	int i, err;

	for (i = 1; i <= PROMOTE_MAX_PASSES; i++) {
		err = promote_file_passes(file, 1);
		if (err)
			return err;
		if (promote_since(before, PROMOTE_SUCCESS) >= file->nr)
			break;
		if (i % PROMOTE_PASSES == 0)
			promote_flush_lru();
	}
	return 0;
}

int promote_page_nodes(void *start, size_t nr, long on_node[PROMOTE_MAX_NODES])
{
	long size = page_size();
	void *pages[512];
	int status[512];
	size_t done, batch, i;

	for (done = 0; done < nr; done += batch) {
		batch = nr - done < 512 ? nr - done : 512;
		for (i = 0; i < batch; i++)
			pages[i] = (char *)start + (done + i) * size;
		if (syscall(SYS_move_pages, 0, batch, pages, NULL, status, 0))
			return -errno;
		for (i = 0; i < batch; i++) {
			if (status[i] >= 0 && status[i] < PROMOTE_MAX_NODES)
				on_node[status[i]]++;
		}
	}
	return 0;
}

/* Map a file and have all of it in the page table; NULL if that fails. */
void *promote_file_map(struct promote_file *file)
{
	void *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);

	if (map == MAP_FAILED)
		return NULL;
	if (madvise(map, file->size, MADV_POPULATE_READ)) {
		munmap(map, file->size);
		return NULL;
	}
	return map;
}

/* The flags of the mapped pages, from /proc/kpageflags. */
static int count_flags(void *start, size_t nr, struct promote_where *where)
{
	unsigned long long entry, flags;
	int pagemap, kpageflags;
	long size = page_size();
	size_t i;
	off_t at;

	pagemap = open("/proc/self/pagemap", O_RDONLY);
	kpageflags = open("/proc/kpageflags", O_RDONLY);
	if (pagemap < 0 || kpageflags < 0)
		return -errno;
	for (i = 0; i < nr; i++) {
		at = ((unsigned long)start / size + i) * sizeof(entry);
		if (pread(pagemap, &entry, sizeof(entry), at) != sizeof(entry))
			break;
		if (!(entry & PAGEMAP_PRESENT))
			continue;
		at = (entry & PAGEMAP_PFN) * sizeof(flags);
		if (pread(kpageflags, &flags, sizeof(flags), at) !=
		    sizeof(flags))
			break;
		where->active += (flags >> KPF_ACTIVE) & 1;
		where->tails += (flags >> KPF_COMPOUND_TAIL) & 1;
		where->private += (flags >> KPF_PRIVATE) & 1;
	}
	close(pagemap);
	close(kpageflags);
	return i < nr ? -EIO : 0;
}

static int where_mapped(struct promote_file *file, char *map,
			unsigned char *in_core, struct promote_where *where)
{
	long i, run, nr = file->nr, size = page_size();
	int err = 0;

	madvise(map, file->size, MADV_RANDOM);
	if (mincore(map, file->size, in_core))
		return -errno;
	for (i = 0; i < nr && !err; i += run) {
		for (run = 1; i + run < nr; run++) {
			if ((in_core[i + run] ^ in_core[i]) & 1)
				break;
		}
		if (!(in_core[i] & 1)) {
			where->absent += run;
			continue;
		}
		if (madvise(map + i * size, run * size, MADV_POPULATE_READ))
			return -errno;
		err = promote_page_nodes(map + i * size, run, where->on_node);
	}
	return err ? err : count_flags(map, nr, where);
}

/*
 * Find the pages of a file, without reading any in. Mapping and unmapping them
 * counts as an access, so promotion is switched off meanwhile, and the LRU
 * state is not what it was.
 */
int promote_file_where(struct promote_file *file, struct promote_where *where)
{
	unsigned char *in_core = malloc(file->nr);
	char enabled[16];
	char *map;
	bool have;
	int err;

	memset(where, 0, sizeof(*where));
	have = promote_read(PROMOTE_SWITCH, enabled, sizeof(enabled)) > 0;
	if (have)
		promote_write(PROMOTE_SWITCH, "0");
	map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (map == MAP_FAILED || !in_core) {
		err = -ENOMEM;
	} else {
		err = where_mapped(file, map, in_core, where);
		munmap(map, file->size);
	}
	free(in_core);
	if (have)
		promote_write(PROMOTE_SWITCH, enabled);
	return err;
}

/* Are over 99.9 % of the file's pages on this node? */
bool promote_file_is_on(struct promote_file *file, int node)
{
	struct promote_where where;
	long nr = file->nr;

	if (promote_file_where(file, &where))
		return false;
	if (where.on_node[node] >= nr - nr / 1000)
		return true;
	printf("# of %ld pages %ld are on node %d, %ld not in the cache\n",
	       nr, where.on_node[node], node, where.absent);
	return false;
}

int promote_policy_mask(int mode, unsigned long mask)
{
	if (syscall(SYS_set_mempolicy, mode, mask ? &mask : NULL,
		    mask ? PROMOTE_MAX_NODES : 0))
		return -errno;
	return 0;
}

int promote_policy(int mode, int node)
{
	return promote_policy_mask(mode, node < 0 ? 0 : 1UL << node);
}

/* The directory is made up, and its name is put into dir, of 32 bytes. */
int promote_tmpfs_start(char *dir, const char *options)
{
	strcpy(dir, "/tmp/promote.XXXXXX");
	if (!mkdtemp(dir)) {
		dir[0] = '\0';
		return -errno;
	}
	if (mount("promote", dir, "tmpfs", 0, options)) {
		rmdir(dir);
		dir[0] = '\0';
		return -errno;
	}
	return setenv("TMPDIR", dir, 1) ? -errno : 0;
}

void promote_tmpfs_end(const char *dir)
{
	umount2(dir, MNT_DETACH);
	rmdir(dir);
}

/* Memory for what a child has to tell, zeroed; NULL if there is none. */
void *promote_shared(size_t size)
{
	void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return shared == MAP_FAILED ? NULL : shared;
}

int promote_in_child(int (*function)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(function(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

pid_t promote_background(int (*function)(void *arg), void *arg)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready))
		return -1;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (function(arg))
			_exit(1);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

void promote_end_background(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Use so many pages until the process ends. */
static int take_pages(long nr)
{
	size_t size = nr * page_size();
	void *map;

	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	madvise(map, size, MADV_NOHUGEPAGE);
	return madvise(map, size, MADV_POPULATE_WRITE) ? -errno : 0;
}

/*
 * Take what is free on a node, down to the watermark to which kswapd reclaims,
 * so that nothing is reclaimed: only the margin above it is gone.
 */
int promote_fill_node(void *arg)
{
	int node = *(int *)arg;
	long headroom;

	if (promote_policy(MPOL_BIND, node))
		return 1;
	while ((headroom = promote_node_headroom(node)) > 64) {
		if (take_pages(headroom / 2))
			return 2;
	}
	return headroom < 0;
}

/* Not ahead, or more is cached than is asked for. */
int promote_cache_until_full(void *arg)
{
	const struct promote_hoarder *hoarder = arg;
	static char buf[1 << 16];
	long headroom, nr;
	off_t at = 0;

	if (promote_policy(MPOL_BIND, hoarder->node))
		return 1;
	posix_fadvise(hoarder->file->fd, 0, 0, POSIX_FADV_RANDOM);
	while ((headroom = promote_node_headroom(hoarder->node)) > 64) {
		for (nr = headroom / 2; nr > 0; nr -= sizeof(buf) / page_size()) {
			if (pread(hoarder->file->fd, buf, sizeof(buf), at) !=
			    sizeof(buf))
				return 2;
			at += sizeof(buf);
		}
	}
	return headroom < 0;
}

/*
 * CPUs take pages from a node in batches, so it will be somewhat less; and give
 * back what they have too much when their counters are looked at, so look more
 * than once.
 */
int promote_leave_room(void *arg)
{
	const struct promote_room *room = arg;
	int settled;
	long more;

	if (promote_policy(MPOL_BIND, room->node))
		return 1;
	for (settled = 0; settled < 10; settled++) {
		refresh_vmstat();
		more = promote_node_room(room->node) - room->pages;
		if (more <= 0)
			continue;
		if (take_pages(more > 512 ? more / 2 : more))
			return 2;
		settled = 0;
	}
	return 0;
}

const char *promote_cgroup(const char *name, char *path, size_t size)
{
	char text[256];

	promote_write(CGROUP_ROOT "/cgroup.subtree_control", "+memory +cpuset");
	if (promote_read(CGROUP_ROOT "/cgroup.subtree_control", text,
			 sizeof(text)) < 0 ||
	    !strstr(text, "memory") || !strstr(text, "cpuset"))
		return NULL;
	snprintf(path, size, CGROUP_ROOT "/promote.%s.%d", name, (int)getpid());
	if (mkdir(path, 0755) && errno != EEXIST)
		return NULL;
	return path;
}

int promote_cgroup_set(const char *path, const char *file, const char *value)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", path, file);
	return promote_write(full, value);
}

int promote_cgroup_enter(const char *path)
{
	return promote_cgroup_set(path, "cgroup.procs", "0");
}

void promote_cgroup_remove(const char *path)
{
	int tries;

	for (tries = 0; rmdir(path) && errno == EBUSY && tries < 50; tries++)
		usleep(20000);
}
