// SPDX-License-Identifier: GPL-2.0
/*
 * Promotion without headroom: who reads from a lower tier earns what an
 * exchange of a hot page for a cold one costs, and a worker of the node
 * demotes the cold ones.
 */
#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/init.h>
#include <linux/math.h>
#include <linux/memory-tiers.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/sched/cputime.h>
#include <linux/sched/numa_balancing.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/swap.h>
#include <linux/workqueue.h>

#include <trace/events/promote.h>

#include "../internal.h"
#include "budget.h"
#include "internal.h"
#include "policy.h"
#include "target.h"

/* How long a page takes to be read from DRAM; sets the scale of the penalty. */
#define PROMOTE_TOP_READ_NS	200
/* What promoting and demoting a page are taken to cost before it is known. */
#define PROMOTE_COST_NS		5000
/* Pages that are demoted at a time: enough to be worth it, not too many. */
#define PROMOTE_EXCHANGE_MIN	128U
#define PROMOTE_EXCHANGE_MAX	512U
/*
 * After a search without a victim the node is left alone for so many times as
 * long as it took, and for so many ms; the next one looks at twice as much, so
 * often at most. The first searches sort out who is not a victim;
 * after so many in vain the time is doubled, up to so often, and at most that.
 */
#define PROMOTE_SEARCH_EFFORT	9U
#define PROMOTE_SEARCH_PAUSES	32
#define PROMOTE_SEARCH_PAUSE_MS	20U
#define PROMOTE_SEARCHES	32U
#define PROMOTE_SEARCH_DOUBLINGS	10U
#define PROMOTE_SEARCH_PAUSE_MAX_MS	(30U * MSEC_PER_SEC)

/* Overrides what the abstract distances say, unless 0. */
u32 promote_penalty_ns __read_mostly;

/**
 * struct promote_node - the budget of a node of the top tier
 * @lock: protects what follows up to @until_ms
 * @pool: credit that no reader holds
 * @threshold_ms: hot threshold that its readers have found, on average
 * @promote_ns: what promoting a page costs
 * @demote_ns: what demoting one costs
 * @earned_ns: sum of what was earned
 * @spent_ns: sum of what was spent
 * @nr_promoted: pages promoted without headroom
 * @nr_demoted: pages demoted in exchange
 * @search_ns: how long a victim has been searched for
 * @until_ms: until when the node is left alone
 * @failures: searches for a victim that were in vain, in a row
 * @effort: how hard the next one tries; of the worker alone
 * @nr_wanted: pages that readers want to be demoted
 * @work: demotes them
 */
struct promote_node {
	spinlock_t lock;
	struct promote_pool pool;
	u32 threshold_ms;
	u32 promote_ns;
	u32 demote_ns;
	u64 earned_ns;
	u64 spent_ns;
	u64 nr_promoted;
	u64 nr_demoted;
	u64 search_ns;
	u32 until_ms;
	unsigned int failures;
	unsigned int effort;
	atomic_t nr_wanted;
	struct delayed_work work;
};

/* Of all possible nodes; NULL if there was no memory. */
static struct promote_node *promote_nodes __ro_after_init;
static struct workqueue_struct *promote_wq __ro_after_init;

/*
 * Is there a node to demote to that has room for some pages? Without it demotion
 * wakes up kswapd there, which drops pages.
 */
static bool promote_lower_takes(const nodemask_t *targets)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	int nid, i;

	for_each_node_mask(nid, *targets) {
		struct zone *zone;

		for_each_managed_zone_pgdat(zone, NODE_DATA(nid), i, highest) {
			if (zone_watermark_ok(zone, 0, low_wmark_pages(zone) +
					      PROMOTE_EXCHANGE_MAX, highest, 0))
				return true;
		}
	}
	return false;
}

/**
 * promote_exchange_state - can a page of a node be exchanged for another?
 * @nid: a node of the top tier
 *
 * Context: Any; the answer may be outdated at once.
 * Return: %PROMOTE_EXCHANGE_OPEN, or why not.
 */
enum promote_exchange promote_exchange_state(int nid)
{
	struct promote_node *node;
	nodemask_t targets;

	if (!promote_nodes || !promote_wq || !numa_demotion_enabled)
		return PROMOTE_EXCHANGE_OFF;
	node_get_allowed_targets(NODE_DATA(nid), &targets);
	if (nodes_empty(targets))
		return PROMOTE_EXCHANGE_NO_TARGET;
	if (kswapd_test_hopeless(NODE_DATA(nid)))
		return PROMOTE_EXCHANGE_HOPELESS;
	if (!promote_lower_takes(&targets))
		return PROMOTE_EXCHANGE_FULL;
	node = promote_nodes + nid;
	/* A time that is further ahead than a pause is past, and has wrapped. */
	if (READ_ONCE(node->failures) > PROMOTE_SEARCHES &&
	    READ_ONCE(node->until_ms) - promote_now_ms() - 1 <
	    PROMOTE_SEARCH_PAUSE_MAX_MS)
		return PROMOTE_EXCHANGE_NO_VICTIM;
	return PROMOTE_EXCHANGE_OPEN;
}

/* Return: for how long to leave the node alone, in ms. */
static u32 promote_no_victim(struct promote_node *node, u64 took_ns)
{
	u32 pause_ms = PROMOTE_SEARCH_PAUSE_MS +
		       div_u64(took_ns * PROMOTE_SEARCH_PAUSES, NSEC_PER_MSEC);
	unsigned int failures = node->failures + 1;

	pause_ms = min(pause_ms, PROMOTE_SEARCH_PAUSE_MAX_MS);
	if (failures > PROMOTE_SEARCHES)
		pause_ms = min(pause_ms << (failures - PROMOTE_SEARCHES),
			       PROMOTE_SEARCH_PAUSE_MAX_MS);
	node->effort = min(node->effort + 1, PROMOTE_SEARCH_EFFORT);
	WRITE_ONCE(node->until_ms, promote_now_ms() + pause_ms);
	WRITE_ONCE(node->failures, min(failures, PROMOTE_SEARCHES +
						 PROMOTE_SEARCH_DOUBLINGS));
	return pause_ms;
}

static void promote_exchange_workfn(struct work_struct *work)
{
	struct promote_node *node = container_of(to_delayed_work(work),
						 struct promote_node, work);
	unsigned int nr = atomic_xchg(&node->nr_wanted, 0);
	int nid = node - promote_nodes;
	unsigned long nr_demoted;
	u32 pause_ms;
	u64 start, took;

	if (!nr || promote_exchange_state(nid) != PROMOTE_EXCHANGE_OPEN)
		return;
	start = task_sched_runtime(current);
	nr_demoted = demote_node_pages(NODE_DATA(nid),
				       clamp(nr, PROMOTE_EXCHANGE_MIN,
					     PROMOTE_EXCHANGE_MAX),
				       node->effort);
	took = task_sched_runtime(current) - start;

	guard(spinlock)(&node->lock);
	node->search_ns += took;
	if (!nr_demoted) {
		pause_ms = promote_no_victim(node, took);
		/* Those who wait for it may not come by before it is found. */
		if (node->failures > PROMOTE_SEARCHES)
			return;
		atomic_set(&node->nr_wanted, nr);
		mod_delayed_work(promote_wq, &node->work,
				 msecs_to_jiffies(pause_ms));
		return;
	}
	WRITE_ONCE(node->failures, 0);
	if (nr_demoted >= nr && node->effort)
		node->effort--;
	node->nr_demoted += nr_demoted;
	node->demote_ns = promote_cost_learn(node->demote_ns, node->search_ns,
					     nr_demoted);
	node->search_ns = 0;
}

/**
 * promote_exchange_ask - ask for pages to be demoted
 * @nid: the node
 * @nr_pages: how many
 *
 * Context: Any. A worker does it.
 */
void promote_exchange_ask(int nid, unsigned int nr_pages)
{
	struct promote_node *node = promote_nodes + nid;

	if (atomic_read(&node->nr_wanted) < nr_pages)
		atomic_set(&node->nr_wanted, nr_pages);
	/* Not if it waits, after a search in vain. */
	queue_delayed_work(promote_wq, &node->work, 0);
}

/*
 * Abstract distances are products of latency and bandwidth, in units of DRAM:
 * the root of their quotient is between the two.
 */
static u32 promote_node_penalty_ns(int nid)
{
	u32 penalty = READ_ONCE(promote_penalty_ns);
	unsigned long top = node_abstract_distance(nid);
	unsigned long lower, root;
	nodemask_t targets;
	int target;

	if (penalty)
		return penalty;
	node_get_allowed_targets(NODE_DATA(nid), &targets);
	target = next_demotion_node(nid, &targets);
	if (target == NUMA_NO_NODE || !top)
		return 0;
	lower = node_abstract_distance(target);
	root = int_sqrt((lower << 16) / top);
	return root > 256 ? PROMOTE_TOP_READ_NS * (root - 256) >> 8 : 0;
}

/**
 * promote_reader_sampled - count an access that is looked at
 * @reader: the current task's, which is sampling
 * @order: order of the folio
 *
 * Context: Any.
 */
void promote_reader_sampled(struct promote_reader *reader, unsigned int order)
{
	reader->nr_accesses += (u64)reader->skipped << order;
	reader->random = reader->random * 1664525 + 1013904223;
	reader->skipped = (reader->random >> 27) + 1;
	reader->skip = reader->skipped;
}

/**
 * promote_reader_cost - what does an exchange of a page cost?
 * @reader: the current task's, settled
 *
 * Return: the time in ns, not 0.
 */
u32 promote_reader_cost(const struct promote_reader *reader)
{
	struct promote_node *node = promote_nodes + reader->nid;

	return READ_ONCE(node->promote_ns) + READ_ONCE(node->demote_ns);
}

/* From now on the reader asks of what it finds whether it is as hot as this. */
static void promote_reader_follow(struct promote_reader *reader,
				  struct promote_node *node)
{
	struct promote_clock clock = promote_clock();
	struct promote_range range = promote_threshold_range(&clock);
	struct promote_account *account = &reader->account;

	if (!account->threshold_ms)
		account->threshold_ms = node->threshold_ms ?: clock.threshold;
	promote_account_follow(account, node->promote_ns + node->demote_ns,
			       &range);
	node->threshold_ms = node->threshold_ms ?
		(node->threshold_ms * 3 + account->threshold_ms) / 4 :
		account->threshold_ms;
}

/**
 * promote_reader_settle - put on the account of a reader what it has earned
 * @reader: the current task's
 * @nid: the node to which it wants to promote
 *
 * Context: Process context.
 */
void promote_reader_settle(struct promote_reader *reader, int nid)
{
	struct promote_node *node = promote_nodes + nid;
	s64 income = promote_income(reader->ran_ns, reader->nr_accesses,
				    promote_node_penalty_ns(nid));
	u32 now_ms = promote_now_ms();

	income = promote_account_advance(&reader->account, income,
					 reader->ran_ns, reader->nr_accesses);
	reader->ran_ns = 0;
	reader->nr_accesses = 0;
	reader->nid = nid;

	guard(spinlock)(&node->lock);
	node->earned_ns += income;
	promote_pool_add(&node->pool,
			 promote_account_earn(&reader->account, income));
	promote_account_draw(&reader->account, &node->pool, now_ms,
			     &reader->window);
	promote_reader_follow(reader, node);
	trace_promote_budget(nid, income, reader->account.credit_ns,
			     node->pool.credit_ns, reader->account.threshold_ms);
}

/**
 * promote_reader_spend - let a reader pay for what was promoted
 * @reader: the current task's, settled
 * @took_ns: what the drain took
 * @nr_moved: pages moved
 *
 * Each of them costs a demotion too, now or later.
 *
 * Context: Process context.
 */
void promote_reader_spend(struct promote_reader *reader, u64 took_ns,
			  unsigned int nr_moved)
{
	struct promote_node *node = promote_nodes + reader->nid;
	u64 spent;

	guard(spinlock)(&node->lock);
	node->promote_ns = promote_cost_learn(node->promote_ns, took_ns,
					      nr_moved);
	spent = took_ns + (u64)node->demote_ns * nr_moved;
	promote_account_spend(&reader->account, spent);
	node->spent_ns += spent;
	node->nr_promoted += nr_moved;
}

/**
 * promote_reader_exit - leave what a reader has, or owes, to others
 * @reader: that of an exiting task
 *
 * Context: Process context.
 */
void promote_reader_exit(struct promote_reader *reader)
{
	struct promote_node *node = promote_nodes + reader->nid;

	s64 left = reader->account.credit_ns - reader->account.advance_ns;

	if (!left)
		return;
	guard(spinlock)(&node->lock);
	promote_pool_add(&node->pool, left);
}

static const char * const promote_exchange_words[] = {
	[PROMOTE_EXCHANGE_OPEN] = "budget",
	[PROMOTE_EXCHANGE_OFF] = "demotion-off",
	[PROMOTE_EXCHANGE_NO_TARGET] = "no-demotion-target",
	[PROMOTE_EXCHANGE_HOPELESS] = "kswapd-gave-up",
	[PROMOTE_EXCHANGE_FULL] = "lower-tier-full",
	[PROMOTE_EXCHANGE_NO_VICTIM] = "no-victim",
};

static void promote_budget_show_node(struct seq_file *m, int nid)
{
	struct promote_node *node = promote_nodes + nid;
	unsigned long headroom = promote_node_room(nid, false);

	seq_printf(m, "%d %lu %lu ", nid, headroom, promote_node_mark(nid));
	scoped_guard(spinlock, &node->lock)
		seq_printf(m, "%lld %u %u %u %llu %llu %llu %llu ",
			   div_s64(node->pool.credit_ns, NSEC_PER_USEC),
			   node->threshold_ms, node->promote_ns,
			   node->demote_ns,
			   div_u64(node->earned_ns, NSEC_PER_USEC),
			   div_u64(node->spent_ns, NSEC_PER_USEC),
			   node->nr_promoted, node->nr_demoted);
	seq_printf(m, "%s\n", headroom ? "headroom" :
		   promote_exchange_words[promote_exchange_state(nid)]);
}

/**
 * promote_budget_show - show the nodes of the top tier
 * @m: where to
 *
 * Context: Process context.
 */
void promote_budget_show(struct seq_file *m)
{
	int nid;

	seq_puts(m, "node headroom mark credit_us threshold_ms promote_ns demote_ns earned_us spent_us promoted demoted state\n");
	for_each_node_state(nid, N_MEMORY) {
		if (promote_nodes && node_is_toptier(nid))
			promote_budget_show_node(m, nid);
	}
}

static int __init promote_budget_init(void)
{
	int nid;

	promote_wq = alloc_workqueue("promote", WQ_UNBOUND | WQ_FREEZABLE |
				     WQ_SYSFS, 0);
	promote_nodes = kcalloc(nr_node_ids, sizeof(*promote_nodes), GFP_KERNEL);
	if (!promote_wq || !promote_nodes)
		return -ENOMEM;
	for (nid = 0; nid < nr_node_ids; nid++) {
		struct promote_node *node = promote_nodes + nid;

		spin_lock_init(&node->lock);
		INIT_DELAYED_WORK(&node->work, promote_exchange_workfn);
		node->promote_ns = PROMOTE_COST_NS;
		node->demote_ns = PROMOTE_COST_NS;
	}
	return 0;
}
subsys_initcall(promote_budget_init);
