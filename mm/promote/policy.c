// SPDX-License-Identifier: GPL-2.0
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

/* The margin above the watermark, as a share of the zone and at least */
#define PROMOTE_MARGIN_SHIFT	8
#define PROMOTE_MARGIN_MIN	64

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
 * promote_zone_room - headroom of a zone
 * @free: free pages
 * @wmark: the promotion watermark, to which kswapd reclaims
 * @reserve: pages of the zone kept for allocations that can use no other
 * @managed: size of the zone in pages
 *
 * kswapd frees a little more than up to the watermark. What is free beyond
 * a margin above it is not the work of demotion.
 *
 * Return: the number of pages that can be promoted without causing reclaim.
 */
unsigned long promote_zone_room(unsigned long free, unsigned long wmark,
				unsigned long reserve, unsigned long managed)
{
	unsigned long margin = managed >> PROMOTE_MARGIN_SHIFT;
	unsigned long keep;

	if (margin < PROMOTE_MARGIN_MIN)
		margin = PROMOTE_MARGIN_MIN;
	keep = wmark + reserve + margin;
	return free > keep ? free - keep : 0;
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
