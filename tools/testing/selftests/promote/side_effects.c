// SPDX-License-Identifier: GPL-2.0
/*
 * What promotion does to the rest of the machine: promoted pages arrive among
 * the young ones, or demotion would take them next; kswapd is not woken for
 * them; no other file is evicted for them; and a backup moves nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "promote_events.h"
#include "promote_test.h"

#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"
#define LRU_GEN_PAGES "/sys/kernel/debug/lru_gen"

#define FILE_BYTES (4UL << 20)
#define MAX_GENS 16

FIXTURE(arrival)
{
	struct promote_test t;
};

PROMOTE_LRU_VARIANTS(arrival);

FIXTURE_SETUP(arrival)
{
	PROMOTE_TEST_START(variant->lru_gen);
	/* A cgroup has generations of its own, with nothing else in them. */
	if (!promote_cgroup("young", self->t.cgroup, sizeof(self->t.cgroup)))
		SKIP(return, "no cpuset and memory controllers");
	ASSERT_EQ(0, promote_file_create(&self->t.file, FILE_BYTES));
}

FIXTURE_TEARDOWN(arrival)
{
	promote_test_end(&self->t);
}

static int read_until_promoted(void *arg)
{
	struct promote_test *t = arg;
	int tries;

	if (promote_cgroup_enter(t->cgroup))
		return 1;
	if (promote_file_place(&t->file, t->lower, false))
		return 2;
	for (tries = 0; tries < 5; tries++) {
		if (promote_file_passes(&t->file, PROMOTE_PASSES))
			return 3;
		if (promote_since(&t->before, PROMOTE_SUCCESS) >= t->file.nr)
			return 0;
		/* What was in use by then is left alone for a while. */
		usleep(PROMOTE_BACKOFF_US);
	}
	return 4;
}

/* File pages of a cgroup by generation, the oldest first; how many there are. */
static int read_generations(const char *cgroup, int node, long pages[MAX_GENS])
{
	const char *name = strrchr(cgroup, '/');
	bool in_cgroup = false;
	int nid = -1, nr = 0;
	char line[512];
	long file;
	FILE *f;

	f = fopen(LRU_GEN_PAGES, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "memcg "))
			in_cgroup = strstr(line, name);
		else if (sscanf(line, " node %d", &nid) == 1)
			continue;
		else if (in_cgroup && nid == node && nr < MAX_GENS &&
			 sscanf(line, "%*u %*u %*u %ld", &file) == 1)
			pages[nr++] = file;
	}
	fclose(f);
	return nr;
}

TEST_F_TIMEOUT(arrival, is_among_the_young, PROMOTE_TIMEOUT)
{
	long active, inactive, moved, pages[MAX_GENS];
	int i, nr;

	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	promote_count(&self->t.before);
	promote_flush_lru();
	active = promote_node_stat(self->t.top, "nr_active_file");
	inactive = promote_node_stat(self->t.top, "nr_inactive_file");
	ASSERT_EQ(0, promote_in_child(read_until_promoted, &self->t));
	promote_flush_lru();
	moved = SINCE(SUCCESS);

	if (variant->lru_gen[0] == 'n') {
		active = promote_node_stat(self->t.top, "nr_active_file") -
			 active;
		inactive = promote_node_stat(self->t.top, "nr_inactive_file") -
			   inactive;
		EXPECT_LE(moved, active);
		EXPECT_GT(moved / 10, inactive);
	} else {
		nr = read_generations(self->t.cgroup, self->t.top, pages);
		/* Old and young are not the same. */
		ASSERT_LE(3, nr);
		EXPECT_LE(moved, pages[nr - 1] + pages[nr - 2]);
		for (i = 0; i < nr - 2; i++)
			EXPECT_EQ(0, pages[i]);
	}
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

FIXTURE(bystander)
{
	struct promote_test t;
	struct promote_file cache;
	struct promote_events events;
	pid_t filler;
};

PROMOTE_LRU_VARIANTS(bystander);

FIXTURE_SETUP(bystander)
{
	PROMOTE_TEST_START(variant->lru_gen);
	if (access(PROMOTE_TRACING "/events/vmscan", F_OK))
		SKIP(return, "no trace events in this kernel");
	ASSERT_EQ(0, promote_set(&self->t.saved, DEMOTION, "0"));
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
}

FIXTURE_TEARDOWN(bystander)
{
	if (self->filler > 0)
		promote_end_background(self->filler);
	promote_events_end(&self->events);
	promote_file_remove(&self->cache);
	promote_test_end(&self->t);
}

static long kswapd_wakeups(struct promote_events *events, int node)
{
	char text[64];

	snprintf(text, sizeof(text), "mm_vmscan_wakeup_kswapd: nid=%d", node);
	return promote_events_lines(events, text, NULL, NULL);
}

static int watch_kswapd(struct promote_events *events)
{
	return promote_events_start(events, "vmscan/mm_vmscan_wakeup_kswapd");
}

TEST_F_TIMEOUT(bystander, kswapd_sleeps_on_promotion, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, watch_kswapd(&self->events));
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, kswapd_wakeups(&self->events, self->t.top));
}

TEST_F_TIMEOUT(bystander, kswapd_sleeps_on_refusal, PROMOTE_TIMEOUT)
{
	self->filler = promote_background(promote_fill_node, &self->t.top);
	ASSERT_LT(0, self->filler);
	ASSERT_EQ(0, watch_kswapd(&self->events));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_REFUSED_ONLY_AS(BUDGET);
	EXPECT_EQ(0, kswapd_wakeups(&self->events, self->t.top));
	promote_end_background(self->filler);
	self->filler = 0;
	EXPECT_MOVES_NOW();
}

/* Demotion is off: who would have to make room could only be evicted. */
TEST_F_TIMEOUT(bystander, cold_cache_is_not_evicted, PROMOTE_TIMEOUT)
{
	struct promote_hoarder hoarder = { &self->cache, self->t.top };
	long resident, evicted;

	ASSERT_EQ(0, promote_file_sparse(&self->cache, 4UL << 30));
	self->filler = promote_background(promote_cache_until_full, &hoarder);
	ASSERT_LT(0, self->filler);
	EXPECT_GE(64, promote_node_headroom(self->t.top));
	resident = promote_file_resident(&self->cache);
	EXPECT_LT(self->t.file.nr, resident);
	evicted = promote_vmstat("pgsteal_kswapd") +
		  promote_vmstat("pgsteal_direct");

	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, PROMOTE_PASSES));
	EXPECT_EQ(0, SINCE(SUCCESS));
	EXPECT_REFUSED_ONLY_AS(BUDGET);
	EXPECT_EQ(resident, promote_file_resident(&self->cache));
	EXPECT_EQ(evicted, promote_vmstat("pgsteal_kswapd") +
		  promote_vmstat("pgsteal_direct"));

	promote_end_background(self->filler);
	self->filler = 0;
	promote_file_remove(&self->cache);
	EXPECT_MOVES_NOW();
}

static int copy_file(struct promote_file *file)
{
	loff_t at = 0;
	ssize_t len;
	int out;

	out = open(getenv("TMPDIR") ? : ".", O_TMPFILE | O_RDWR, 0600);
	if (out < 0)
		return -errno;
	while ((len = copy_file_range(file->fd, &at, out, NULL, file->size,
				      0)) > 0)
		;
	close(out);
	return len;
}

/*
 * All of DRAM is free, and a backup comes by again and again: not often enough
 * for what it reads to be hot, however well the LRU knows it by then.
 */
TEST_F_TIMEOUT(bystander, backup_moves_nothing, PROMOTE_TIMEOUT)
{
	int i;

	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "100"));
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
	EXPECT_LT(self->t.file.nr, promote_node_headroom(self->t.top));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, copy_file(&self->t.file));
		usleep(300000);
	}
	EXPECT_NOTHING_DONE();
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));

	/* Two copies in a row are something else. */
	ASSERT_EQ(0, promote_write(PROMOTE_THRESHOLD, "60000"));
	for (i = 0; i < PROMOTE_PASSES; i++) {
		ASSERT_EQ(0, copy_file(&self->t.file));
		usleep(PROMOTE_GAP_US);
	}
	EXPECT_LT(0, SINCE(SUCCESS));
}

TEST_HARNESS_MAIN
