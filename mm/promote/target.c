// SPDX-License-Identifier: GPL-2.0
/*
 * Where to: the nodes of the top tier that may take what is promoted, and how
 * much memory they have for it.
 */
#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/memory-tiers.h>
#include <linux/mempolicy.h>
#include <linux/mmzone.h>
#include <linux/topology.h>
#include <linux/vmstat.h>

#include "internal.h"
#include "policy.h"
#include "target.h"

/* Free pages as kswapd counts them when it asks whether it is done. */
static unsigned long promote_zone_free(struct zone *zone)
{
	unsigned long free = zone_page_state(zone, NR_FREE_PAGES);
	unsigned long unusable = zone_page_state(zone, NR_FREE_CMA_PAGES) +
				 READ_ONCE(zone->nr_free_highatomic);

	return free > unusable ? free - unusable : 0;
}

/*
 * What is free beyond the high watermark may be used by those who pay. By default
 * a boost is half as much again as that, and at least a block of pages.
 */
static unsigned long promote_zone_keeps(struct zone *zone, bool paid)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	unsigned long reserve = zone->lowmem_reserve[highest];
	unsigned long high = zone->_watermark[WMARK_HIGH];

	if (paid)
		return high_wmark_pages(zone) + reserve;
	return promote_zone_mark(promo_wmark_pages(zone), high,
				 max(high + high / 2, pageblock_nr_pages),
				 reserve, zone_managed_pages(zone));
}

/**
 * promote_node_room - pages that a node can take
 * @nid: the node
 * @paid: whether room that demotion has to restore counts
 *
 * Context: Any; the answer may be outdated at once.
 * Return: the number of pages: the headroom, or what is free above the high
 * watermark if @paid.
 */
unsigned long promote_node_room(int nid, bool paid)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	pg_data_t *pgdat = NODE_DATA(nid);
	unsigned long free, keeps, room = 0;
	int i;

	for (i = 0; i <= highest; i++) {
		struct zone *zone = pgdat->node_zones + i;

		if (!managed_zone(zone))
			continue;
		free = promote_zone_free(zone);
		keeps = promote_zone_keeps(zone, paid);
		if (free > keeps)
			room += free - keeps;
	}
	return room;
}

/**
 * promote_node_mark - free memory of a node above which there is headroom
 * @nid: the node
 *
 * Context: Any.
 * Return: the sum over its zones, in pages.
 */
unsigned long promote_node_mark(int nid)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	pg_data_t *pgdat = NODE_DATA(nid);
	unsigned long mark = 0;
	int i;

	for (i = 0; i <= highest; i++) {
		struct zone *zone = pgdat->node_zones + i;

		if (managed_zone(zone))
			mark += promote_zone_keeps(zone, false);
	}
	return mark;
}

/*
 * What large folios the nodes have no memory for. Racy on purpose: what is lost
 * costs an attempt.
 */
static struct promote_scarcity promote_scarcity[MAX_NUMNODES];

static bool promote_node_scarce(int nid, unsigned int order)
{
	/* See above. */
	return order && promote_scarce(data_race(promote_scarcity[nid]), order,
				       promote_now_ms());
}

/**
 * promote_note_scarcity - note how an allocation for a batch ended
 * @nid: the target
 * @order: order of its folios
 * @ret: -ENOMEM if the node had no memory for them, 0 if it had
 *
 * Context: Any.
 */
void promote_note_scarcity(int nid, unsigned int order, int ret)
{
	/* See above. */
	struct promote_scarcity old = data_race(promote_scarcity[nid]);
	struct promote_scarcity new = old;

	if (ret == -ENOMEM)
		new = promote_scarcity_failed(old, order, promote_now_ms());
	else if (!ret)
		new = promote_scarcity_moved(old, order);
	/* Written seldom, so that the line can be shared. */
	if (old.until_ms == new.until_ms && old.order == new.order)
		return;
	/* See above. */
	data_race(promote_scarcity[nid] = new);
}

/*
 * Why may the current task, or the owner of a folio, not have memory moved to a
 * node? @owner is NULL as long as no folio is known.
 */
static enum promote_refusal promote_check_node(int nid, const nodemask_t *owner)
{
	if (owner && !node_isset(nid, *owner))
		return PROMOTE_FAIL_NODE;
	if (!node_isset(nid, cpuset_current_mems_allowed))
		return PROMOTE_FAIL_CPUSET;
	if (!mempolicy_allows_node(nid))
		return PROMOTE_FAIL_POLICY;
	return PROMOTE_ACCEPTED;
}

/**
 * promote_check_target - may a node be a target?
 * @ask: what is asked of it
 * @nid: the node, of the top tier
 * @room: set to the pages that it can take
 *
 * Who pays may have to wait for room, but not where nothing can be demoted.
 *
 * Context: Process context, for the current task.
 * Return: %PROMOTE_ACCEPTED, or why not.
 */
enum promote_refusal promote_check_target(const struct promote_ask *ask,
					  int nid, unsigned long *room)
{
	enum promote_refusal refusal = promote_check_node(nid, ask->owner);

	if (refusal != PROMOTE_ACCEPTED)
		return refusal;
	*room = promote_node_room(nid, ask->paid);
	if (*room < ask->nr_pages ||
	    (ask->paid && promote_exchange_state(nid) != PROMOTE_EXCHANGE_OPEN))
		return PROMOTE_FAIL_BUDGET;
	return promote_node_scarce(nid, ask->order) ? PROMOTE_FAIL_NOMEM :
						      PROMOTE_ACCEPTED;
}

/**
 * promote_choose_target - find the nearest node of the top tier that meets all
 * @ask: what is asked of it
 * @target: set to the node
 * @room: set to the pages that it can take
 *
 * Context: Process context, for the current task.
 * Return: %PROMOTE_ACCEPTED, or the refusal by the test that came furthest.
 */
enum promote_refusal promote_choose_target(const struct promote_ask *ask,
					   int *target, unsigned long *room)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	enum promote_refusal refusal, furthest = PROMOTE_FAIL_NODE;
	int nid, last = NUMA_NO_NODE;
	struct zonelist *zonelist;
	struct zoneref *z;
	struct zone *zone;

	zonelist = node_zonelist(numa_node_id(), GFP_HIGHUSER_MOVABLE);
	for_each_zone_zonelist(zone, z, zonelist, highest) {
		nid = zone_to_nid(zone);
		if (nid == last || !node_is_toptier(nid))
			continue;
		last = nid;
		refusal = promote_check_target(ask, nid, room);
		if (refusal == PROMOTE_ACCEPTED) {
			*target = nid;
			return PROMOTE_ACCEPTED;
		}
		furthest = max(furthest, refusal);
	}
	return furthest;
}
