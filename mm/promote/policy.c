// SPDX-License-Identifier: GPL-2.0
#include <linux/limits.h>
#include <linux/minmax.h>

#include "policy.h"

/* A node that has no large folio is asked again after this, doubled 5 times */
#define PROMOTE_SCARCE_MS	1000U
#define PROMOTE_SCARCE_DOUBLINGS	5
#define PROMOTE_SCARCE_MAX_MS	(PROMOTE_SCARCE_MS << PROMOTE_SCARCE_DOUBLINGS)

/* A task that has run for long without a drain may not make up for all of it */
#define PROMOTE_PACE_MAX_NS	(1000 * 1000)
/* Of its run time a task keeps a quarter: what it recorded was part of it */
#define PROMOTE_PACE_KEEP_SHIFT	2
/* A drain that took longer than it had is paid for, up to this */
#define PROMOTE_PACE_DEBT_NS	(10 * 1000 * 1000)
/* What a task waits to have earned, after a drain that left some */
#define PROMOTE_PACE_MIN_NS	(200 * 1000)

/* The margin above the watermark: a share of the zone */
#define PROMOTE_MARGIN_SHIFT	8
#define PROMOTE_MARGIN_MIN	64

/* Of the time that a reader runs, the share that may be spent: 1/128 + 1/512 */
#define PROMOTE_SHARE_SHIFT	7
#define PROMOTE_SHARE_MORE_SHIFT	9
/* Of what slow memory costs it: a quarter */
#define PROMOTE_PENALTY_SHIFT	2
/* What a reader can save up */
#define PROMOTE_CREDIT_MAX_NS	(2 * 1000 * 1000)
/* What pays for a large folio too; it may overdraw the account, to at most */
#define PROMOTE_CREDIT_ENOUGH_NS	(1000 * 1000)
#define PROMOTE_OVERDRAFT_NS	(10 * 1000 * 1000)
/*
 * A reader whose rate of slow accesses is a quarter above its average, of about so
 * much time, has moved to other data: it gets as much again, up to so much,
 */
#define PROMOTE_SHIFT_RISE_SHIFT	2
#define PROMOTE_PAST_MIN_NS	(500ULL * 1000 * 1000)
#define PROMOTE_PAST_MAX_NS	(8ULL * 1000 * 1000 * 1000)
#define PROMOTE_ADVANCE_MAX_NS	(40 * 1000 * 1000)
/* and gives a sixteenth of its income for that later. */
#define PROMOTE_REPAY_SHIFT	4
/* What a node can save up, or owe */
#define PROMOTE_POOL_MAX_NS	(10 * 1000 * 1000)

/* What moving a page may be found to cost, and the weight of a new finding */
#define PROMOTE_COST_MIN_NS	100U
#define PROMOTE_COST_MAX_NS	(100U * 1000)
#define PROMOTE_COST_SHIFT	3

/* The threshold is judged by the income for so many pages, or as many found */
#define PROMOTE_EVIDENCE_PAGES	16
/* It goes by an eighth, by a quarter if it is off by more than twice */
#define PROMOTE_STEP_SHIFT	3
/* It goes up to so much more than the one that is set, as a shift */
#define PROMOTE_THRESHOLD_MAX_SHIFT	8

/**
 * promote_scarce - is it vain to ask a node for a large folio?
 * @scarcity: what is known of the node
 * @order: order of the folio
 * @now_ms: the time
 *
 * Return: true if this order, or a smaller one, has failed not long ago.
 */
bool promote_scarce(struct promote_scarcity scarcity, unsigned int order,
		    u32 now_ms)
{
	return scarcity.order && order >= scarcity.order &&
	       scarcity.until_ms - now_ms - 1 < PROMOTE_SCARCE_MAX_MS;
}

/**
 * promote_scarcity_failed - note that a node had no memory for a large folio
 * @scarcity: what was known of the node
 * @order: order of the folio
 * @now_ms: the time
 *
 * Order 0 is not noted: the next drain asks about room anyway.
 *
 * Return: what is known now.
 */
struct promote_scarcity
promote_scarcity_failed(struct promote_scarcity scarcity, unsigned int order,
			u32 now_ms)
{
	/* Others have failed at the same time. */
	if (!order || promote_scarce(scarcity, order, now_ms))
		return scarcity;

	/* How often a larger one has failed says nothing about this one. */
	if (order < scarcity.order)
		scarcity.failures = 0;
	scarcity.order = order;
	scarcity.until_ms = now_ms + (PROMOTE_SCARCE_MS << scarcity.failures);
	if (scarcity.failures < PROMOTE_SCARCE_DOUBLINGS)
		scarcity.failures++;
	return scarcity;
}

/**
 * promote_scarcity_moved - note that a node had memory for a large folio
 * @scarcity: what was known of the node
 * @order: order of the folio
 *
 * Return: what is known now.
 */
struct promote_scarcity
promote_scarcity_moved(struct promote_scarcity scarcity, unsigned int order)
{
	if (scarcity.order && order >= scarcity.order)
		scarcity = (struct promote_scarcity) { };
	return scarcity;
}

/**
 * promote_zone_mark - free memory of a zone above which there is headroom
 * @wmark: the promotion watermark, to which kswapd reclaims, with its boost
 * @high: the high watermark without boost
 * @boost: by how much the watermarks can be boosted
 * @reserve: pages of the zone kept for allocations that can use no other
 * @managed: size of the zone in pages
 *
 * kswapd asks for a high watermark at a time, so it stops by up to that above
 * the one it reclaims to; and when a boost is over, what it has freed remains.
 * What is free beyond a margin for these, or of a part of the zone if that is
 * more, is not the work of demotion.
 *
 * Return: the mark in pages.
 */
unsigned long promote_zone_mark(unsigned long wmark, unsigned long high,
				unsigned long boost, unsigned long reserve,
				unsigned long managed)
{
	unsigned long margin = high + boost;

	if (margin < managed >> PROMOTE_MARGIN_SHIFT)
		margin = managed >> PROMOTE_MARGIN_SHIFT;
	if (margin < PROMOTE_MARGIN_MIN)
		margin = PROMOTE_MARGIN_MIN;
	return wmark + reserve + margin;
}

/**
 * promote_income - what a reader earns by reading from a lower tier
 * @ran_ns: time for which it ran
 * @nr_accesses: pages that it read from a lower tier meanwhile
 * @penalty_ns: by how much longer a page takes there
 *
 * Return: a quarter of the penalty, or 1 % of the time if that is less, in ns.
 */
s64 promote_income(u64 ran_ns, u64 nr_accesses, u32 penalty_ns)
{
	u64 share = (ran_ns >> PROMOTE_SHARE_SHIFT) +
		    (ran_ns >> PROMOTE_SHARE_MORE_SHIFT);
	u64 penalty;

	if (share > PROMOTE_POOL_MAX_NS)
		share = PROMOTE_POOL_MAX_NS;
	/* So many that it cannot be less; and the product does not overflow. */
	if (nr_accesses > U32_MAX)
		nr_accesses = U32_MAX;
	penalty = nr_accesses * penalty_ns >> PROMOTE_PENALTY_SHIFT;
	return share < penalty ? share : penalty;
}

/* Does a reader read more from a lower tier than it used to? */
static bool promote_account_shifted(struct promote_account *account, u64 ran_ns,
				    u64 nr_accesses)
{
	u64 past_us = account->past_ns >> 10;
	u64 expected = account->past_accesses * (ran_ns >> 10);

	expected += expected >> PROMOTE_SHIFT_RISE_SHIFT;
	return account->past_ns >= PROMOTE_PAST_MIN_NS &&
	       nr_accesses * past_us > expected;
}

/**
 * promote_account_advance - pay in advance, or take back what was
 * @account: the account of a reader
 * @income_ns: its income
 * @ran_ns: time for which it ran for that
 * @nr_accesses: pages that it read from a lower tier meanwhile
 *
 * When the working set shifts there is more to exchange than later, so that much
 * of the income of the next seconds is worth more now. Over time a reader does
 * not get more than its share.
 *
 * Return: what it gets.
 */
s64 promote_account_advance(struct promote_account *account, s64 income_ns,
			    u64 ran_ns, u64 nr_accesses)
{
	s64 advance;

	/* Bounded, so that no product overflows. */
	ran_ns = min_t(u64, ran_ns, PROMOTE_PAST_MAX_NS);
	nr_accesses = min_t(u64, nr_accesses, U32_MAX);
	if (promote_account_shifted(account, ran_ns, nr_accesses))
		advance = min(income_ns,
			      PROMOTE_ADVANCE_MAX_NS - account->advance_ns);
	else
		advance = -min(income_ns >> PROMOTE_REPAY_SHIFT,
			       account->advance_ns);
	account->advance_ns += advance;

	account->past_ns += ran_ns;
	account->past_accesses += nr_accesses;
	if (account->past_ns > PROMOTE_PAST_MAX_NS) {
		account->past_ns >>= 1;
		account->past_accesses >>= 1;
	}
	return income_ns + advance;
}

/**
 * promote_account_earn - put income on the account of a reader
 * @account: the account
 * @income_ns: the income
 *
 * Return: what is more than the account takes, for the pool of the node.
 */
s64 promote_account_earn(struct promote_account *account, s64 income_ns)
{
	s64 over;

	account->supply_ns += (u64)income_ns;
	account->credit_ns += income_ns;
	over = account->credit_ns - PROMOTE_CREDIT_MAX_NS;
	if (over <= 0)
		return 0;
	account->credit_ns = PROMOTE_CREDIT_MAX_NS;
	/* It has more than it spends: let more be found hot. */
	account->supply_ns += (u64)over;
	return over;
}

/**
 * promote_credit_pages - how many pages does credit pay for?
 * @credit_ns: the credit, at most what an account takes
 * @cost_ns: what a page costs, not 0
 *
 * Return: the number of pages.
 */
u32 promote_credit_pages(s64 credit_ns, u32 cost_ns)
{
	if (credit_ns <= 0)
		return 0;
	return (u32)min_t(s64, credit_ns, PROMOTE_CREDIT_MAX_NS) / cost_ns;
}

/**
 * promote_credit_pays - does credit pay for a folio?
 * @credit_ns: the credit
 * @cost_ns: what a page costs
 * @nr_pages: size of the folio
 *
 * Return: true if it does, or if the folio is large and the credit, too.
 */
bool promote_credit_pays(s64 credit_ns, u32 cost_ns, u32 nr_pages)
{
	return credit_ns >= PROMOTE_CREDIT_ENOUGH_NS ||
	       credit_ns >= (s64)((u64)cost_ns * nr_pages);
}

/**
 * promote_account_spend - take off what was spent
 * @account: the account of the reader
 * @took_ns: what moving pages has cost
 */
void promote_account_spend(struct promote_account *account, u64 took_ns)
{
	if (took_ns > PROMOTE_CREDIT_MAX_NS + PROMOTE_OVERDRAFT_NS)
		took_ns = PROMOTE_CREDIT_MAX_NS + PROMOTE_OVERDRAFT_NS;
	account->credit_ns -= (s64)took_ns;
	if (account->credit_ns < -PROMOTE_OVERDRAFT_NS)
		account->credit_ns = -PROMOTE_OVERDRAFT_NS;
}

/**
 * promote_threshold_range - between what a hot threshold may be
 * @clock: how times are kept, with the threshold that is set
 *
 * Below the lowest nothing would be hot. The highest is one that old times do
 * not meet by chance.
 *
 * Return: the bounds.
 */
struct promote_range promote_threshold_range(const struct promote_clock *clock)
{
	struct promote_range range = {
		.min = (clock->min_gap + clock->slack) * 2 + 1,
		.max = clock->mask >> 2,
	};

	if (clock->threshold < range.max >> PROMOTE_THRESHOLD_MAX_SHIFT)
		range.max = clock->threshold << PROMOTE_THRESHOLD_MAX_SHIFT;
	if (range.max < range.min)
		range.max = range.min;
	return range;
}

/**
 * promote_account_follow - let the hot threshold follow what can be paid for
 * @account: the account of the reader; a threshold of 0 is not known yet
 * @cost_ns: what a page costs
 * @range: between what the threshold may be
 *
 * If more is found hot than can be paid for, the hottest are to go first: what
 * is read again sooner. If less is found, what is less hot may go too.
 */
void promote_account_follow(struct promote_account *account, u32 cost_ns,
			    const struct promote_range *range)
{
	u64 evidence = (u64)PROMOTE_EVIDENCE_PAGES * cost_ns;
	u64 demand_ns = (u64)account->demand * cost_ns;
	u64 supply_ns = account->supply_ns;
	u32 threshold = account->threshold_ms;
	u32 step = (threshold >> PROMOTE_STEP_SHIFT) + 1;

	if (demand_ns < evidence && supply_ns < evidence)
		return;
	account->demand = 0;
	account->supply_ns = 0;

	if (demand_ns > supply_ns * 2 || demand_ns < supply_ns / 2)
		step *= 2;
	if (demand_ns > supply_ns)
		threshold -= min(step, threshold);
	else
		threshold += step;
	account->threshold_ms = clamp(threshold, range->min, range->max);
}

/**
 * promote_cost_learn - what does moving a page cost?
 * @cost_ns: what it was taken to cost
 * @took_ns: how long moving some pages took
 * @nr_pages: how many
 *
 * Return: what it is taken to cost now.
 */
u32 promote_cost_learn(u32 cost_ns, u64 took_ns, u32 nr_pages)
{
	u32 each;

	if (!nr_pages)
		return cost_ns;
	if (took_ns > U32_MAX)
		took_ns = U32_MAX;
	each = (u32)took_ns / nr_pages;
	each = clamp(each, PROMOTE_COST_MIN_NS, PROMOTE_COST_MAX_NS);
	return cost_ns - (cost_ns >> PROMOTE_COST_SHIFT) +
	       (each >> PROMOTE_COST_SHIFT);
}

/**
 * promote_pool_add - give credit to a node, or take what nobody has to pay
 * @pool: the pool of the node
 * @ns: the credit, negative to take
 */
void promote_pool_add(struct promote_pool *pool, s64 ns)
{
	pool->credit_ns += ns;
	pool->credit_ns = clamp_t(s64, pool->credit_ns,
				  -PROMOTE_POOL_MAX_NS, PROMOTE_POOL_MAX_NS);
}

/**
 * promote_pool_draw - draw credit from the pool of a node
 * @pool: the pool
 * @wanted_ns: how much a reader wants
 * @now_ms: the time
 * @last_window: the window in which the reader last drew, updated
 *
 * In a window a reader gets a share once. What was there when the window
 * started is shared by as many as drew in the one before, so nobody has to wait
 * for longer than a window because of another who takes all that there is.
 *
 * Return: what it gets.
 */
s64 promote_pool_draw(struct promote_pool *pool, s64 wanted_ns, u32 now_ms,
		      u32 *last_window)
{
	u32 window = now_ms / PROMOTE_WINDOW_MS;
	s64 drawn = wanted_ns;

	if (window != pool->window) {
		u32 sharers = pool->drawers ? pool->drawers : 1;

		pool->share_ns = pool->credit_ns <= 0 ? 0 :
				 (u32)pool->credit_ns / sharers;
		pool->window = window;
		pool->drawers = 0;
	}
	if (*last_window == window)
		return 0;
	*last_window = window;
	pool->drawers++;
	drawn = min(drawn, min(pool->share_ns, pool->credit_ns));
	if (drawn <= 0)
		return 0;
	pool->credit_ns -= drawn;
	return drawn;
}

/**
 * promote_account_draw - let a reader have more than it has earned
 * @account: its account
 * @pool: the pool of the node
 * @now_ms: the time
 * @last_window: the window in which it last drew, updated
 *
 * What others cannot use is income like any other: more may be found hot.
 */
void promote_account_draw(struct promote_account *account,
			  struct promote_pool *pool, u32 now_ms,
			  u32 *last_window)
{
	s64 lacks = PROMOTE_CREDIT_MAX_NS - account->credit_ns;
	s64 drawn;

	if (lacks <= 0)
		return;
	drawn = promote_pool_draw(pool, lacks, now_ms, last_window);
	account->credit_ns += drawn;
	account->supply_ns += (u64)drawn;
}

/**
 * promote_pace_earn - time a task may spend on promotion
 * @credit: what was left after the last drain, in ns; negative after a drain
 * that took longer than it had
 * @ran: time for which the task has run since, in ns
 *
 * Return: the new credit in ns. With every drain taking no more than this, a
 * task spends no more time on promotion than on its own work, with what it
 * takes to record included.
 */
s64 promote_pace_earn(s64 credit, u64 ran)
{
	const u64 enough = PROMOTE_PACE_MAX_NS + PROMOTE_PACE_DEBT_NS;

	ran -= ran >> PROMOTE_PACE_KEEP_SHIFT;
	if (ran > enough)
		ran = enough;
	credit += (s64)ran;
	return credit < PROMOTE_PACE_MAX_NS ? credit : PROMOTE_PACE_MAX_NS;
}

/**
 * promote_pace_spend - take off what a drain took
 * @credit: the credit before, in ns
 * @took: run time of the drain, in ns
 *
 * Return: the new credit in ns; the debt is bounded.
 */
s64 promote_pace_spend(s64 credit, u64 took)
{
	const s64 most = -PROMOTE_PACE_DEBT_NS;

	if (took > PROMOTE_PACE_MAX_NS + PROMOTE_PACE_DEBT_NS)
		return most;
	credit -= (s64)took;
	return credit > most ? credit : most;
}

/**
 * promote_pace_retry - when to try a drain again
 * @now: the time, in ns
 * @credit: what the last drain has left, in ns, negative if it is in debt
 *
 * Return: a time at which the task can have earned enough.
 */
u64 promote_pace_retry(u64 now, s64 credit)
{
	u64 wait;

	if (credit >= PROMOTE_PACE_MIN_NS)
		return now;
	/* A quarter of what it runs is not earned, and there is no hurry. */
	wait = (u64)(PROMOTE_PACE_MIN_NS - credit);
	return now + wait + (wait >> 1);
}
