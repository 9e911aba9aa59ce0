// SPDX-License-Identifier: GPL-2.0
/*
 * Where page cache promotion may put pages: the memory policy and the cpuset of
 * the reader count, and the cgroup that the file is charged to, as they are
 * when the pages are moved; of what they allow, the nearest node of the top tier is
 * taken. The task's interleave position stays where it was.
 *
 * All tests run on a CPU of the first node of the top tier, unless they say
 * otherwise.
 */
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "promote_test.h"

#ifndef MPOL_PREFERRED_MANY
#define MPOL_PREFERRED_MANY 5
#endif
#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6
#endif

#define FILE_BYTES (512UL << 10)
#define CGROUP_ROOT "/sys/fs/cgroup"

/* What a variant calls a node, or several; real numbers are known later. */
#define TOP 1
#define LOWER 2
#define OTHER 4

static unsigned long nodemask(const struct promote_test *t, int names)
{
	unsigned long mask = 0;

	if (names & TOP)
		mask |= 1UL << t->top;
	if (names & LOWER)
		mask |= 1UL << t->lower;
	if (names & OTHER)
		mask |= 1UL << promote_other_top_node();
	return mask;
}

/* A cgroup that may use these nodes only. */
static int make_cgroup(struct promote_test *t, const char *name, int names)
{
	unsigned long mask = nodemask(t, names);
	char text[128];
	int node, len = 0;

	if (!promote_cgroup(name, t->cgroup, sizeof(t->cgroup)))
		return -1;
	for (node = 0; node < PROMOTE_MAX_NODES; node++) {
		if (mask & (1UL << node))
			len += snprintf(text + len, sizeof(text) - len, "%d,",
					node);
	}
	text[len - 1] = '\0';
	return promote_cgroup_set(t->cgroup, "cpuset.mems", text);
}

/* Where a task runs that reads a file: its cgroup and its policy. */
struct reader {
	struct promote_file *file;
	const char *cgroup;
	int mode;
	unsigned long nodes;
	int place_on;
	/* Until all has moved since, if it is expected to. */
	const struct promote_counts *before;
};

static int confined_reader(void *arg)
{
	struct reader *reader = arg;
	int err;

	if (reader->cgroup && promote_cgroup_enter(reader->cgroup))
		return 1;
	if (promote_policy_mask(reader->mode, reader->nodes))
		return 2;
	if (reader->before)
		err = promote_file_read_until_moved(reader->file,
						    reader->before);
	else
		err = promote_file_passes(reader->file, PROMOTE_PASSES);
	return err ? 3 : 0;
}

/* Whose first reader it is charged to. */
static int charged_reader(void *arg)
{
	struct reader *reader = arg;

	if (promote_cgroup_enter(reader->cgroup))
		return 1;
	if (promote_file_place(reader->file, reader->place_on, false))
		return 2;
	return 0;
}

#define START_ON_TOP()							\
do {									\
	PROMOTE_TEST_START(NULL);					\
	ASSERT_EQ(0, promote_run_on_node(self->t.top));			\
} while (0)

#define MAKE_FILE()							\
do {									\
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,	\
				       self->t.lower, false));		\
	promote_count(&self->t.before);					\
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));		\
} while (0)

/* Policies that bind or name a preferred set confine; others hint or spread. */
FIXTURE(policy)
{
	struct promote_test t;
};

FIXTURE_VARIANT(policy)
{
	int mode;
	int nodes;
	bool confines;
};

#define POLICY(name, mode_of, nodes_of, confines_of)			\
FIXTURE_VARIANT_ADD(policy, name)					\
{									\
	.mode = mode_of,						\
	.nodes = nodes_of,						\
	.confines = confines_of,					\
}

POLICY(default, MPOL_DEFAULT, 0, false);
POLICY(local, MPOL_LOCAL, 0, false);
POLICY(bind_lower, MPOL_BIND, LOWER, true);
POLICY(bind_top, MPOL_BIND, TOP, false);
POLICY(bind_both, MPOL_BIND, TOP | LOWER, false);
POLICY(preferred_lower, MPOL_PREFERRED, LOWER, false);
POLICY(preferred_top, MPOL_PREFERRED, TOP, false);
POLICY(preferred_many_lower, MPOL_PREFERRED_MANY, LOWER, true);
POLICY(preferred_many_both, MPOL_PREFERRED_MANY, TOP | LOWER, false);
POLICY(interleave_lower, MPOL_INTERLEAVE, LOWER, false);
POLICY(interleave_both, MPOL_INTERLEAVE, TOP | LOWER, false);
POLICY(weighted_lower, MPOL_WEIGHTED_INTERLEAVE, LOWER, false);
POLICY(weighted_both, MPOL_WEIGHTED_INTERLEAVE, TOP | LOWER, false);

FIXTURE_SETUP(policy)
{
	START_ON_TOP();
	MAKE_FILE();
}

FIXTURE_TEARDOWN(policy)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(policy, of_the_reader, PROMOTE_TIMEOUT)
{
	struct reader reader = {
		.file = &self->t.file,
		.mode = variant->mode,
		.nodes = nodemask(&self->t, variant->nodes),
		.before = &self->t.before,
	};

	if (variant->confines)
		reader.before = NULL;
	ASSERT_EQ(0, promote_in_child(confined_reader, &reader));
	if (variant->confines) {
		EXPECT_NOTHING_MOVED();
		EXPECT_REFUSED_ONLY_AS(POLICY);
		EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
		EXPECT_MOVES_NOW();
	} else {
		EXPECT_EQ(0, SINCE(FAIL_POLICY));
		EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	}
}

/* Neither who reads may take pages where it may not go, nor whose they are. */
FIXTURE(cpuset)
{
	struct promote_test t;
};

FIXTURE_VARIANT(cpuset)
{
	bool owner;
	enum promote_counter refusal;
};

FIXTURE_VARIANT_ADD(cpuset, of_the_reader)
{
	.refusal = PROMOTE_FAIL_CPUSET,
};

FIXTURE_VARIANT_ADD(cpuset, of_the_owner)
{
	.owner = true,
	.refusal = PROMOTE_FAIL_NODE,
};

FIXTURE_SETUP(cpuset)
{
	START_ON_TOP();
	if (make_cgroup(&self->t, "lower", LOWER))
		SKIP(return, "no cpuset and memory controllers");
}

FIXTURE_TEARDOWN(cpuset)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(cpuset, without_the_top_tier, PROMOTE_TIMEOUT)
{
	struct reader confined = {
		.file = &self->t.file,
		.cgroup = self->t.cgroup,
		.place_on = self->t.lower,
	};
	struct reader *reader = &confined, anyone = { .file = &self->t.file };

	MAKE_FILE();
	if (variant->owner) {
		ASSERT_EQ(0, promote_in_child(charged_reader, &confined));
		promote_count(&self->t.before);
		reader = &anyone;
	}
	ASSERT_EQ(0, promote_in_child(confined_reader, reader));
	EXPECT_NOTHING_MOVED();
	EXPECT_LT(0, promote_since(&self->t.before, variant->refusal));
	EXPECT_EQ(promote_since(&self->t.before, variant->refusal),
		  promote_refused_since(&self->t.before));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));

	/* Read in again by this task, it is the root cgroup's. */
	if (variant->owner)
		ASSERT_EQ(0, promote_file_place(&self->t.file, self->t.lower,
						false));
	EXPECT_MOVES_NOW();
}

/*
 * What counts is what holds when the pages are moved, not what held when they
 * were read. The task puts a few pages on its list, too few to be moved at
 * once; they are when it reads them again after some time.
 */
#define FIRST_PAGES 2
#define LATER_PAGES 16

FIXTURE(later)
{
	struct promote_test t;
	char buf[LATER_PAGES << 12];
	long first;
};

FIXTURE_VARIANT(later)
{
	enum promote_counter refusal;
	int (*prepare)(struct promote_test *t);
	/* What happens to the task between the two reads. */
	int (*confine)(struct promote_test *t);
	int (*release)(struct promote_test *t);
};

static int bind_to_lower(struct promote_test *t)
{
	return promote_policy(MPOL_BIND, t->lower);
}

static int unbind(struct promote_test *t)
{
	return promote_policy(MPOL_DEFAULT, -1);
}

static int enter_cgroup(struct promote_test *t)
{
	return promote_cgroup_enter(t->cgroup);
}

static int leave_cgroup(struct promote_test *t)
{
	return promote_cgroup_enter(CGROUP_ROOT);
}

/* The nodes of the cpuset change around the task. */
static int narrow_cgroup(struct promote_test *t)
{
	char lower[16];

	snprintf(lower, sizeof(lower), "%d", t->lower);
	return promote_cgroup_set(t->cgroup, "cpuset.mems", lower);
}

static int widen_cgroup(struct promote_test *t)
{
	char mems[256];

	if (promote_read(CGROUP_ROOT "/cpuset.mems.effective", mems,
			 sizeof(mems)) < 0)
		return -1;
	return promote_cgroup_set(t->cgroup, "cpuset.mems", mems);
}

static int enter_wide_cgroup(struct promote_test *t)
{
	return widen_cgroup(t) || enter_cgroup(t);
}

FIXTURE_VARIANT_ADD(later, policy)
{
	.refusal = PROMOTE_FAIL_POLICY,
	.confine = bind_to_lower,
	.release = unbind,
};

FIXTURE_VARIANT_ADD(later, cgroup)
{
	.refusal = PROMOTE_FAIL_CPUSET,
	.confine = enter_cgroup,
	.release = leave_cgroup,
};

FIXTURE_VARIANT_ADD(later, cpuset)
{
	.refusal = PROMOTE_FAIL_CPUSET,
	.prepare = enter_wide_cgroup,
	.confine = narrow_cgroup,
	.release = widen_cgroup,
};

static int read_pages(struct promote_file *file, char *buf, long first, long nr)
{
	long page = file->size / file->nr;
	ssize_t len = pread(file->fd, buf, nr * page, first * page);

	return len == nr * page ? 0 : -1;
}

/*
 * A list waits for company, and for its task to run as long as the last drain
 * took, which on a slow machine is long. So run, and not only sleep.
 */
static void run_for_a_gap(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000 +
		 (now.tv_nsec - start.tv_nsec) / 1000 < PROMOTE_GAP_US);
}

/*
 * Read what is on the list again. The first time it may be too young, the second
 * time the task in debt; a machine that is short of time itself needs more.
 */
static int read_to_drain(struct promote_file *file, char *buf, long first,
			 long nr)
{
	int i, err = 0;

	for (i = 0; i < 3 && !err; i++) {
		run_for_a_gap();
		err = read_pages(file, buf, first, nr);
	}
	return err;
}

static int read_until_drained(struct promote_test *t, char *buf, long first)
{
	int i;

	for (i = 0; i < 50; i++) {
		if (read_to_drain(&t->file, buf, first, LATER_PAGES))
			return -1;
		if (promote_since(&t->before, PROMOTE_DRAINED) >= LATER_PAGES)
			return 0;
	}
	return -1;
}

/*
 * The file is hot for the LRU, all its pages have their time, and the task has
 * its list, empty: what it reads from now on is queued.
 */
static int be_ready_to_queue(struct promote_test *t, char *buf)
{
	struct promote_counts before;
	int i, err;

	err = promote_write(PROMOTE_SWITCH, "0");
	err = err ? err : promote_file_passes(&t->file, 10);
	err = err ? err : promote_write(PROMOTE_SWITCH, "1");
	err = err ? err : promote_file_passes(&t->file, 1);
	if (err)
		return err;
	promote_count(&before);
	for (i = 0; i < 50; i++) {
		if (read_to_drain(&t->file, buf, 0, FIRST_PAGES))
			return -1;
		if (promote_since(&before, PROMOTE_SUCCESS) == FIRST_PAGES)
			return 0;
	}
	return -1;
}

FIXTURE_SETUP(later)
{
	START_ON_TOP();
	if (make_cgroup(&self->t, "lower", LOWER))
		SKIP(return, "no cpuset and memory controllers");
	MAKE_FILE();
	if (variant->prepare)
		ASSERT_EQ(0, variant->prepare(&self->t));
	ASSERT_EQ(0, be_ready_to_queue(&self->t, self->buf));
}

FIXTURE_TEARDOWN(later)
{
	leave_cgroup(&self->t);
	promote_test_end(&self->t);
}

/*
 * Have pages on the list that were not looked at yet. They are if a slow machine
 * takes longer to read them than the list waits for company; then take others.
 */
static int queue_pages(struct promote_test *t, char *buf, long *first)
{
	for (*first = FIRST_PAGES; *first + LATER_PAGES <= t->file.nr;
	     *first += LATER_PAGES) {
		promote_count(&t->before);
		if (read_pages(&t->file, buf, *first, LATER_PAGES))
			return -1;
		if (promote_since(&t->before, PROMOTE_QUEUED) == LATER_PAGES &&
		    !promote_since(&t->before, PROMOTE_DRAINED))
			return 0;
	}
	return -1;
}

#define QUEUE_PAGES()							\
	ASSERT_EQ(0, queue_pages(&self->t, self->buf, &self->first))

#define DRAIN_PAGES()							\
	ASSERT_EQ(0, read_until_drained(&self->t, self->buf, self->first))

/* A page may be on the list twice: more are drained than were read. */
#define EXPECT_ALL_REFUSED_AS(reason)					\
do {									\
	EXPECT_NOTHING_MOVED();						\
	EXPECT_EQ(SINCE(DRAINED), promote_since(&self->t.before, reason)); \
} while (0)

TEST_F_TIMEOUT(later, confined_after_it_has_read, PROMOTE_TIMEOUT)
{
	QUEUE_PAGES();
	ASSERT_EQ(0, variant->confine(&self->t));
	DRAIN_PAGES();
	EXPECT_ALL_REFUSED_AS(variant->refusal);
	ASSERT_EQ(0, variant->release(&self->t));
	EXPECT_MOVES_NOW();
}

TEST_F_TIMEOUT(later, released_after_it_has_read, PROMOTE_TIMEOUT)
{
	ASSERT_EQ(0, variant->confine(&self->t));
	QUEUE_PAGES();
	ASSERT_EQ(0, variant->release(&self->t));
	DRAIN_PAGES();
	EXPECT_EQ(LATER_PAGES, SINCE(SUCCESS));
	EXPECT_EQ(0, SINCE(FAIL_POLICY) + SINCE(FAIL_CPUSET));
}

/*
 * The position in an interleaved sequence is for allocations only. The kernel
 * tells the node that comes next. The task reads a few pages, which are moved,
 * and does nothing else in between that allocates memory; the counters, for one,
 * are looked at afterwards.
 */
FIXTURE(cursor)
{
	struct promote_test t;
	char buf[LATER_PAGES << 12];
};

FIXTURE_VARIANT(cursor)
{
	int mode;
};

FIXTURE_VARIANT_ADD(cursor, interleave)
{
	.mode = MPOL_INTERLEAVE,
};

FIXTURE_VARIANT_ADD(cursor, weighted_interleave)
{
	.mode = MPOL_WEIGHTED_INTERLEAVE,
};

#define WEIGHTS "/sys/kernel/mm/mempolicy/weighted_interleave/"

/* One page a node, so that every step shows. */
static int set_weights(struct promote_test *t)
{
	char path[128];
	int err;

	if (!access(WEIGHTS "auto", F_OK) &&
	    promote_set(&t->saved, WEIGHTS "auto", "false"))
		return -1;
	snprintf(path, sizeof(path), WEIGHTS "node%d", t->top);
	err = promote_set(&t->saved, path, "1");
	snprintf(path, sizeof(path), WEIGHTS "node%d", t->lower);
	return err ? err : promote_set(&t->saved, path, "1");
}

static int next_node(void)
{
	int node = -1;

	syscall(SYS_get_mempolicy, &node, NULL, 0, NULL, MPOL_F_NODE);
	return node;
}

/* A pipe that was never written to has no page yet. */
static bool allocation_moves_it(void)
{
	int ends[2], before = -1, after = -1;

	if (pipe(ends))
		return false;
	before = next_node();
	if (write(ends[1], "", 1) == 1)
		after = next_node();
	close(ends[0]);
	close(ends[1]);
	return after >= 0 && before != after;
}

FIXTURE_SETUP(cursor)
{
	START_ON_TOP();
	if (variant->mode == MPOL_WEIGHTED_INTERLEAVE && set_weights(&self->t))
		SKIP(return, "no weighted interleaving");
	MAKE_FILE();
	ASSERT_EQ(0, be_ready_to_queue(&self->t, self->buf));
	ASSERT_EQ(0, promote_policy_mask(variant->mode,
					 nodemask(&self->t, TOP | LOWER)));
}

FIXTURE_TEARDOWN(cursor)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(cursor, stays_where_it_was, PROMOTE_TIMEOUT)
{
	long first = FIRST_PAGES, nr = 2;
	int before, after, moved = 0;

	/* Two nodes: what else the kernel allocates may lead back to the first. */
	EXPECT_TRUE(allocation_moves_it() || allocation_moves_it() ||
		    allocation_moves_it());

	/*
	 * Two pages, and three, as there are two nodes. Not one: a descriptor
	 * that reads a page again does not mark it again.
	 */
	for (; moved < 10 && first + nr <= self->t.file.nr; first += nr) {
		nr = 5 - nr;
		promote_count(&self->t.before);
		before = next_node();
		ASSERT_EQ(0, read_pages(&self->t.file, self->buf, first, nr));
		ASSERT_EQ(0, read_to_drain(&self->t.file, self->buf, first,
					   nr));
		after = next_node();
		EXPECT_EQ(before, after)
			TH_LOG("when %ld pages were moved", SINCE(SUCCESS));
		moved += SINCE(SUCCESS) > 0;
	}
	EXPECT_EQ(10, moved);
}

/* What is charged to one cgroup and read by another counts for the first. */
FIXTURE(charge)
{
	struct promote_test t;
	char reader[PATH_MAX];
};

FIXTURE_SETUP(charge)
{
	START_ON_TOP();
	if (!promote_cgroup("owner", self->t.cgroup, sizeof(self->t.cgroup)) ||
	    !promote_cgroup("reader", self->reader, sizeof(self->reader)))
		SKIP(return, "no cpuset and memory controllers");
}

FIXTURE_TEARDOWN(charge)
{
	if (self->reader[0])
		promote_cgroup_remove(self->reader);
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(charge, is_not_the_readers, PROMOTE_TIMEOUT)
{
	static const enum promote_counter counters[] = {
		PROMOTE_HINT, PROMOTE_MIGRATED, PROMOTE_SUCCESS,
	};
	struct reader owner = {
		.file = &self->t.file,
		.cgroup = self->t.cgroup,
		.place_on = self->t.lower,
	};
	struct reader reader = {
		.file = &self->t.file,
		.cgroup = self->reader,
		.before = &self->t.before,
	};
	char owner_stat[PATH_MAX + 16], reader_stat[PATH_MAX + 16];
	const char *name;
	long since;
	size_t i;

	snprintf(owner_stat, sizeof(owner_stat), "%s/memory.stat",
		 self->t.cgroup);
	snprintf(reader_stat, sizeof(reader_stat), "%s/memory.stat",
		 self->reader);
	MAKE_FILE();
	ASSERT_EQ(0, promote_in_child(charged_reader, &owner));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_in_child(confined_reader, &reader));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		name = promote_counter_name(counters[i]);
		since = promote_since(&self->t.before, counters[i]);
		EXPECT_TRUE(promote_stat_becomes(owner_stat, name, since));
		EXPECT_EQ(0, promote_stat(reader_stat, name))
			TH_LOG("%s of the reader", name);
	}
}

/* Two nodes in the top tier, and in distance the lower tier between them. */
FIXTURE(nearest)
{
	struct promote_test t;
};

FIXTURE_VARIANT(nearest)
{
	int from;
	int mode;
	int nodes;
	int mems;
	/* The cgroup is that of the file, not that of the reader. */
	bool owner;
	bool full;
	int to;
};

FIXTURE_VARIANT_ADD(nearest, from_the_first)
{
	.from = TOP,
	.to = TOP,
};

FIXTURE_VARIANT_ADD(nearest, from_the_second)
{
	.from = OTHER,
	.to = OTHER,
};

FIXTURE_VARIANT_ADD(nearest, in_the_cpuset)
{
	.from = OTHER,
	.mems = TOP | LOWER,
	.to = TOP,
};

FIXTURE_VARIANT_ADD(nearest, in_the_cpuset_of_the_owner)
{
	.from = TOP,
	.mems = OTHER | LOWER,
	.owner = true,
	.to = OTHER,
};

FIXTURE_VARIANT_ADD(nearest, in_the_policy)
{
	.from = OTHER,
	.mode = MPOL_BIND,
	.nodes = TOP | LOWER,
	.to = TOP,
};

FIXTURE_VARIANT_ADD(nearest, in_the_preferred_set)
{
	.from = OTHER,
	.mode = MPOL_PREFERRED_MANY,
	.nodes = TOP,
	.to = TOP,
};

/* The lower tier is allowed and nearer, and no target. */
FIXTURE_VARIANT_ADD(nearest, beyond_the_lower_tier)
{
	.from = TOP,
	.mode = MPOL_BIND,
	.nodes = OTHER | LOWER,
	.to = OTHER,
};

FIXTURE_VARIANT_ADD(nearest, with_headroom)
{
	.from = OTHER,
	.full = true,
	.to = TOP,
};

static int node_named(const struct promote_test *t, int name)
{
	return name == TOP ? t->top : promote_other_top_node();
}

FIXTURE_SETUP(nearest)
{
	START_ON_TOP();
	if (promote_other_top_node() < 0)
		SKIP(return, "one node in the top tier");
	if (variant->mems && make_cgroup(&self->t, "near", variant->mems))
		SKIP(return, "no cpuset and memory controllers");
	MAKE_FILE();
}

FIXTURE_TEARDOWN(nearest)
{
	promote_test_end(&self->t);
}

TEST_F_TIMEOUT(nearest, node_is_taken, PROMOTE_TIMEOUT)
{
	struct reader reader = {
		.file = &self->t.file,
		.cgroup = variant->mems ? self->t.cgroup : NULL,
		.place_on = self->t.lower,
		.mode = variant->mode,
		.nodes = nodemask(&self->t, variant->nodes),
		.before = &self->t.before,
	};
	int from = node_named(&self->t, variant->from);
	int to = node_named(&self->t, variant->to);
	pid_t filler = 0;

	ASSERT_EQ(0, promote_run_on_node(from));
	if (variant->owner) {
		ASSERT_EQ(0, promote_in_child(charged_reader, &reader));
		promote_count(&self->t.before);
		reader.cgroup = NULL;
	}
	if (variant->full) {
		filler = promote_background(promote_fill_node, &from);
		ASSERT_LT(0, filler);
	}
	EXPECT_EQ(0, promote_in_child(confined_reader, &reader));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, to));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_EQ(0, SINCE(FAIL_POLICY) + SINCE(FAIL_CPUSET) +
		     SINCE(FAIL_NODE) + SINCE(FAIL_BUDGET));
	if (filler)
		promote_end_background(filler);
}

/* The nearest node has room, but not for every size of folio. */
FIXTURE(room)
{
	struct promote_test t;
	int nearest;
	pid_t filler;
};

FIXTURE_VARIANT(room)
{
	bool huge;
};

FIXTURE_VARIANT_ADD(room, for_small_folios)
{
	.huge = false,
};

FIXTURE_VARIANT_ADD(room, not_for_large_folios)
{
	.huge = true,
};

#define SMALL_PAGES 16
#define HUGE_PAGES 512
/* While there is much free memory these lists can have thousands of pages. */
#define CPU_LISTS "/proc/sys/vm/percpu_pagelist_high_fraction"

static int make_file_of(struct promote_test *t, size_t size, bool huge)
{
	if (huge)
		return promote_file_make_written(&t->file, size, t->lower);
	return promote_file_make(&t->file, size, t->lower, false);
}

/* With some to spare on both sides: others allocate and free as well. */
#define LEAST_ROOM (HUGE_PAGES / 2)
#define MOST_ROOM (HUGE_PAGES - HUGE_PAGES / 8)

/* How many a CPU takes beyond what it needs is not the same everywhere. */
static pid_t leave_room(int node)
{
	struct promote_room room = { node, MOST_ROOM };
	pid_t filler = -1;
	int tries;
	long left;

	for (tries = 0; tries < 20; tries++) {
		filler = promote_background(promote_leave_room, &room);
		if (filler < 0)
			break;
		left = promote_node_room(node);
		if (left >= LEAST_ROOM && left <= MOST_ROOM)
			break;
		printf("# room for %ld pages, not %ld\n", left, room.pages);
		promote_end_background(filler);
		filler = -1;
		room.pages += left < LEAST_ROOM ? 64 : -64;
	}
	return filler;
}

FIXTURE_SETUP(room)
{
	struct promote_where where;
	size_t size = variant->huge ? 2 * HUGE_PAGES : SMALL_PAGES;

	START_ON_TOP();
	self->nearest = promote_other_top_node();
	if (self->nearest < 0)
		SKIP(return, "one node in the top tier");
	if (variant->huge &&
	    promote_tmpfs_start(self->t.tmpfs, "huge=always"))
		SKIP(return, "no tmpfs with large folios");
	size *= self->t.page;
	ASSERT_EQ(0, make_file_of(&self->t, size, variant->huge));
	ASSERT_EQ(0, promote_set(&self->t.saved, CPU_LISTS, "1000000"));
	ASSERT_EQ(0, promote_run_on_node(self->nearest));
	ASSERT_EQ(0, promote_file_where(&self->t.file, &where));
	ASSERT_EQ(self->t.file.nr, where.on_node[self->t.lower]);
	ASSERT_EQ(variant->huge, where.tails > self->t.file.nr / 2);
	promote_count(&self->t.before);
	self->filler = leave_room(self->nearest);
	ASSERT_LT(0, self->filler);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

FIXTURE_TEARDOWN(room)
{
	if (self->filler > 0)
		promote_end_background(self->filler);
	promote_test_end(&self->t);
}

/* With as little memory of its own as the stack has anyway. */
static int read_sparingly(struct promote_test *t)
{
	int i, err = 0;

	for (i = 1; i <= PROMOTE_MAX_PASSES && !err; i++) {
		err = promote_file_read_pages(&t->file, 0, t->file.nr);
		usleep(PROMOTE_GAP_US);
		if (promote_since(&t->before, PROMOTE_SUCCESS) >= t->file.nr)
			break;
		if (i % PROMOTE_PASSES == 0)
			promote_flush_lru();
	}
	return err;
}

TEST_F_TIMEOUT(room, decides_for_each_folio, PROMOTE_TIMEOUT)
{
	int to = variant->huge ? self->t.top : self->nearest;

	printf("# room for %ld pages\n", promote_node_room(self->nearest));
	ASSERT_LE(SMALL_PAGES, promote_node_room(self->nearest));
	ASSERT_GT(HUGE_PAGES, promote_node_room(self->nearest));
	ASSERT_EQ(0, read_sparingly(&self->t));
	if (variant->huge) {
		ASSERT_LT(0, promote_node_room(self->nearest));
		ASSERT_GT(HUGE_PAGES, promote_node_room(self->nearest));
	}
	EXPECT_TRUE(promote_file_is_on(&self->t.file, to));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_EQ(0, SINCE(FAIL_BUDGET) + SINCE(FAIL_NOMEM));
}

TEST_HARNESS_MAIN
