// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion to a node that is full: a hot page takes the place of a cold one,
 * which is demoted; nothing is dropped; it is paid for; and where nothing can be
 * demoted nothing is promoted.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "promote_test.h"

#define DEMOTION "/sys/kernel/mm/numa/demotion_enabled"
#define NODES "/sys/kernel/debug/promote/nodes"
#define PENALTY "/sys/kernel/debug/promote/penalty_ns"

/* What is hot, and what is read once to fill the node. */
#define HOT_PAGES 128
#define COLD_BYTES (4UL << 30)
/* Enough to pay for all that is hot, many times over. */
#define MAX_PASSES 60000

/* A line of NODES. */
struct budget_node {
	long headroom, mark, credit_us, threshold_ms, promote_ns, demote_ns;
	long earned_us, spent_us, promoted, demoted;
	char state[32];
};

static int read_node(int nid, struct budget_node *node)
{
	char line[256];
	int found = -ENOENT, number;
	FILE *f;

	f = fopen(NODES, "r");
	if (!f)
		return -errno;
	while (found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %31s",
			   &number, &node->headroom, &node->mark,
			   &node->credit_us, &node->threshold_ms,
			   &node->promote_ns, &node->demote_ns,
			   &node->earned_us, &node->spent_us, &node->promoted,
			   &node->demoted, node->state) == 12 && number == nid)
			found = 0;
	}
	fclose(f);
	return found;
}

/* Reclaim, of any kind, that drops pages. */
static long evicted(void)
{
	return promote_vmstat("pgsteal_kswapd") -
	       promote_vmstat("pgdemote_kswapd") +
	       promote_vmstat("pgsteal_direct") -
	       promote_vmstat("pgdemote_direct");
}

FIXTURE(full)
{
	struct promote_test t;
	struct promote_file cold;
	struct promote_hoarder hoarder;
	struct budget_node before;
	char owner[PATH_MAX];
	pid_t filler;
	long resident, evicted;
};

FIXTURE_SETUP(full)
{
	self->cold.fd = -1;
	PROMOTE_TEST_START(NULL);
	if (access(DEMOTION, W_OK) || access(NODES, R_OK))
		SKIP(return, "no demotion in this kernel, or no debugfs");
	ASSERT_EQ(0, promote_set(&self->t.saved, DEMOTION, "1"));
	ASSERT_EQ(0, promote_file_make(&self->t.file, HOT_PAGES * self->t.page,
				       self->t.lower, false));
	/* A second file of the process has the name of the first. */
	ASSERT_EQ(0, unlink(self->t.file.path));
	ASSERT_EQ(0, promote_file_sparse(&self->cold, COLD_BYTES));
	self->hoarder = (struct promote_hoarder) { &self->cold, self->t.top };
	self->filler = promote_background(promote_cache_until_full,
					  &self->hoarder);
	ASSERT_LT(0, self->filler);
	ASSERT_GE(64, promote_node_headroom(self->t.top));
	self->resident = promote_file_resident(&self->cold);
	self->evicted = evicted();
	ASSERT_EQ(0, read_node(self->t.top, &self->before));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(full)
{
	if (self->filler > 0)
		promote_end_background(self->filler);
	promote_file_remove(&self->cold);
	promote_test_end(&self->t);
}

/* Read what is hot until all has moved, or so often. */
static int read_hot(struct promote_test *t, int passes)
{
	int i, err = 0;

	for (i = 0; i < passes && !err; i++) {
		if (promote_since(&t->before, PROMOTE_SUCCESS) >= t->file.nr)
			break;
		err = promote_file_read_pages(&t->file, 0, t->file.nr);
		if (i % PROMOTE_PASSES == 0) {
			usleep(PROMOTE_GAP_US);
			promote_flush_lru();
		}
	}
	printf("# %d passes\n", i);
	return err;
}

/* Nothing was dropped from memory, hot or cold. */
#define EXPECT_NOTHING_EVICTED()					\
do {									\
	EXPECT_EQ(self->evicted, evicted());				\
	EXPECT_EQ(self->resident, promote_file_resident(&self->cold));	\
	EXPECT_EQ(self->t.file.nr, promote_file_resident(&self->t.file)); \
} while (0)

TEST_F_TIMEOUT(full, hot_takes_the_place_of_cold, PROMOTE_TIMEOUT)
{
	struct budget_node node;
	long demoted = promote_vmstat("pgdemote_proactive");

	ASSERT_EQ(0, read_hot(&self->t, MAX_PASSES));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(0, SINCE(CANDIDATE_NRL));
	EXPECT_LE(self->t.file.nr, SINCE(CANDIDATE));
	EXPECT_NOTHING_EVICTED();

	/* The room for the last of them was there, or was made. */
	ASSERT_EQ(0, read_node(self->t.top, &node));
	EXPECT_EQ(SINCE(SUCCESS), node.promoted - self->before.promoted);
	EXPECT_EQ(promote_vmstat("pgdemote_proactive") - demoted,
		  node.demoted - self->before.demoted);
	EXPECT_LT(0, node.demoted - self->before.demoted);
	EXPECT_STREQ("budget", node.state);
}

/* What one reader has saved up, or overdrawn, and what the pool holds, in us. */
#define SLACK_US (2000 + 10000 + 10000)

TEST_F_TIMEOUT(full, it_is_paid_for, PROMOTE_TIMEOUT)
{
	struct budget_node node;
	long ran_us, earned, spent;
	clock_t start = clock();

	ASSERT_EQ(0, read_hot(&self->t, MAX_PASSES));
	ran_us = clock() - start;
	ASSERT_EQ(0, read_node(self->t.top, &node));
	earned = node.earned_us - self->before.earned_us;
	spent = node.spent_us - self->before.spent_us;
	printf("# ran %ld us, earned %ld, spent %ld\n", ran_us, earned, spent);
	EXPECT_LT(0, spent);
	EXPECT_LE(spent, earned + SLACK_US);
	/* 1 %, and what may be paid in advance. */
	EXPECT_LE(earned, ran_us / 100 + 40000);
	EXPECT_LT(0, node.threshold_ms);
	EXPECT_LT(100, node.promote_ns);
	EXPECT_LT(100, node.demote_ns);
}

TEST_F_TIMEOUT(full, not_without_demotion, PROMOTE_TIMEOUT)
{
	struct budget_node node;

	ASSERT_EQ(0, promote_write(DEMOTION, "0"));
	ASSERT_EQ(0, promote_file_passes(&self->t.file, 2 * PROMOTE_PASSES));
	EXPECT_NOTHING_MOVED();
	EXPECT_REFUSED_ONLY_AS(BUDGET);
	EXPECT_NOTHING_EVICTED();
	ASSERT_EQ(0, read_node(self->t.top, &node));
	EXPECT_STREQ("demotion-off", node.state);

	/* The control. */
	ASSERT_EQ(0, promote_write(DEMOTION, "1"));
	usleep(PROMOTE_BACKOFF_US);
	ASSERT_EQ(0, read_hot(&self->t, MAX_PASSES));
	EXPECT_LT(0, SINCE(SUCCESS));
}

/* Free memory is headroom again, and is not paid for. */
TEST_F_TIMEOUT(full, room_ends_it, PROMOTE_TIMEOUT)
{
	struct budget_node node;

	promote_end_background(self->filler);
	self->filler = 0;
	promote_file_remove(&self->cold);
	ASSERT_EQ(0, read_node(self->t.top, &node));
	EXPECT_STREQ("headroom", node.state);
	EXPECT_MOVES_NOW();
	EXPECT_LE(self->t.file.nr, SINCE(CANDIDATE_NRL));
	EXPECT_EQ(0, SINCE(CANDIDATE));
}

TEST_F(full, penalty_takes_numbers_only)
{
	char value[32];

	ASSERT_EQ(0, promote_set(&self->t.saved, PENALTY, "500"));
	EXPECT_GT(0, promote_write(PENALTY, "much"));
	EXPECT_GT(0, promote_write(PENALTY, "-1"));
	EXPECT_GT(0, promote_write(PENALTY, "99999999999"));
	ASSERT_LE(0, promote_read(PENALTY, value, sizeof(value)));
	EXPECT_EQ(500, atoi(value));
}

TEST_HARNESS_MAIN
