/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decisions of page cache promotion: numbers in, verdict out. No folio, no
 * lock, no time source, so that policy.c compiles and is tested in userspace
 * (tools/testing/promote). What every access to a lower tier asks is inline.
 */
#ifndef _MM_PROMOTE_POLICY_H
#define _MM_PROMOTE_POLICY_H

#include <linux/types.h>

/*
 * A mark covers a whole folio, so that at the same heat per page a large
 * folio is marked more often. Halve the threshold for every factor of 16 in
 * size: a quarter for 2 MiB of 4 KiB pages, which a sequential reader of a
 * file larger than the threshold's worth of reading still meets.
 */
#define PROMOTE_ORDERS_PER_HALF	4

/* What is recorded is left alone for this long, also if it is not moved. */
#define PROMOTE_CLAIM_MS	1000U
/* A claim is not further ahead than that, if read by a CPU that is late. */
#define PROMOTE_CLAIM_MAX_MS	(PROMOTE_CLAIM_MS + 100)

/**
 * enum promote_heat - what the time of the last access says
 * @PROMOTE_COLD: unknown or too long ago; note the present access
 * @PROMOTE_RECENT: the same burst of accesses; leave the noted time alone, or a
 * reader that comes back within every gap would never be found hot
 * @PROMOTE_CLAIMED: recorded not long ago
 * @PROMOTE_HOT: accessed again within the hot threshold
 */
enum promote_heat {
	PROMOTE_COLD,
	PROMOTE_RECENT,
	PROMOTE_CLAIMED,
	PROMOTE_HOT,
};

/**
 * struct promote_clock - how access times are kept, all in milliseconds
 * @mask: bits of a time that are kept. A time with all of them set is unset; the
 * access that is noted with it by chance is lost, and so is the claim
 * @slack: by how much two times may be closer than they look
 * @min_gap: accesses closer together than this count as one
 * @threshold: a folio accessed again after less than this is hot
 */
struct promote_clock {
	u32 mask;
	u32 slack;
	u32 min_gap;
	u32 threshold;
};

/**
 * struct promote_scarcity - large folios that a node has no memory for
 * @until_ms: time until which it is not asked again
 * @order: the smallest order that failed, 0 if none did
 * @failures: how often in a row
 */
struct promote_scarcity {
	u32 until_ms;
	u8 order;
	u8 failures;
};

/**
 * promote_glance - judge an access to a page by the time of the last one
 * @clock: how times are kept
 * @now: time of the access
 * @last: noted time of the last access
 *
 * The gap allows for the slack, so that what is closer is never hot. A time in
 * the future is one that promote_claim_time() has set. A time that is unset is
 * taken for one, to be quick: after the verdicts hot and claimed promote_heat()
 * tells the truth.
 *
 * Return: the verdict.
 */
static inline enum promote_heat
promote_glance(const struct promote_clock *clock, u32 now, u32 last)
{
	u32 distance = (now - last) & clock->mask;

	if (distance < clock->min_gap + clock->slack)
		return PROMOTE_RECENT;
	if (distance > clock->mask - PROMOTE_CLAIM_MAX_MS)
		return PROMOTE_CLAIMED;
	return distance < clock->threshold ? PROMOTE_HOT : PROMOTE_COLD;
}

/**
 * promote_heat - judge an access to a folio by the time of the last one
 * @clock: how times are kept
 * @now: time of the access
 * @last: noted time of the last access
 * @order: order of the folio
 *
 * Return: the verdict.
 */
static inline enum promote_heat
promote_heat(const struct promote_clock *clock, u32 now, u32 last,
	     unsigned int order)
{
	u32 distance = (now - last) & clock->mask;
	enum promote_heat heat;

	if ((last & clock->mask) == clock->mask)
		return PROMOTE_COLD;
	heat = promote_glance(clock, now, last);
	if (heat == PROMOTE_HOT &&
	    distance >= clock->threshold >> (order / PROMOTE_ORDERS_PER_HALF))
		return PROMOTE_COLD;
	return heat;
}

/**
 * promote_claim_time - the time to note for a folio that is recorded
 * @now: the time
 *
 * It would be found hot again after the gap, by other readers while it waits
 * for its drain, and for ever if it cannot be moved. Noted as accessed in the
 * future, it is left alone until then. If it is moved, its new place starts
 * with no time.
 *
 * Return: a time in the future, which promote_heat() knows.
 */
static inline u32 promote_claim_time(u32 now)
{
	return now + PROMOTE_CLAIM_MS;
}

/**
 * struct promote_account - what a reader may spend where there is no headroom
 * @credit_ns: what it has; negative after a large folio
 * @advance_ns: what it has got in advance
 * @past_ns: time for which it ran, with less weight for what is long ago
 * @past_accesses: pages that it read from a lower tier meanwhile
 * @threshold_ms: its hot threshold, which follows what it can pay for
 * @demand: pages found hot since the threshold was last judged
 * @supply_ns: its income since then
 */
struct promote_account {
	s64 credit_ns;
	s64 advance_ns;
	u64 past_ns;
	u64 past_accesses;
	u64 supply_ns;
	u32 demand;
	u32 threshold_ms;
};

/**
 * struct promote_pool - credit of a node that no reader holds
 * @credit_ns: what there is; negative after readers that owed something
 * @share_ns: what one reader may draw in this window
 * @window: number of the window
 * @drawers: readers that have drawn in this window, or tried to
 */
struct promote_pool {
	s64 credit_ns;
	s64 share_ns;
	u32 window;
	u32 drawers;
};

/* A reader's account is settled, and a node's pool shared out, this often. */
#define PROMOTE_WINDOW_MS	100U

/**
 * struct promote_range - bounds of a hot threshold, in ms
 * @min: the lowest
 * @max: the highest
 */
struct promote_range {
	u32 min;
	u32 max;
};

bool promote_scarce(struct promote_scarcity scarcity, unsigned int order,
		    u32 now_ms);
struct promote_scarcity
promote_scarcity_failed(struct promote_scarcity scarcity, unsigned int order,
			u32 now_ms);
struct promote_scarcity
promote_scarcity_moved(struct promote_scarcity scarcity, unsigned int order);
unsigned long promote_zone_mark(unsigned long wmark, unsigned long high,
				unsigned long boost, unsigned long reserve,
				unsigned long managed);
s64 promote_income(u64 ran_ns, u64 nr_accesses, u32 penalty_ns);
s64 promote_account_advance(struct promote_account *account, s64 income_ns,
			    u64 ran_ns, u64 nr_accesses);
s64 promote_account_earn(struct promote_account *account, s64 income_ns);
u32 promote_credit_pages(s64 credit_ns, u32 cost_ns);
bool promote_credit_pays(s64 credit_ns, u32 cost_ns, u32 nr_pages);
void promote_account_spend(struct promote_account *account, u64 took_ns);
void promote_account_follow(struct promote_account *account, u32 cost_ns,
			    const struct promote_range *range);
u32 promote_cost_learn(u32 cost_ns, u64 took_ns, u32 nr_pages);
void promote_pool_add(struct promote_pool *pool, s64 ns);
s64 promote_pool_draw(struct promote_pool *pool, s64 wanted_ns, u32 now_ms,
		      u32 *last_window);
void promote_account_draw(struct promote_account *account,
			  struct promote_pool *pool, u32 now_ms,
			  u32 *last_window);
struct promote_range promote_threshold_range(const struct promote_clock *clock);
s64 promote_pace_earn(s64 credit, u64 ran);
s64 promote_pace_spend(s64 credit, u64 took);
u64 promote_pace_retry(u64 now, s64 credit);

#endif /* _MM_PROMOTE_POLICY_H */
