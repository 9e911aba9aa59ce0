// SPDX-License-Identifier: GPL-2.0
/*
 * The mover: takes PFNs of candidates, checks that each is still a folio
 * worth moving, and hands them to migration in batches. Sources of
 * candidates differ, the mover does not.
 */
#include <linux/backing-dev.h>
#include <linux/buffer_head.h>
#include <linux/cpuset.h>
#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mempolicy.h>
#include <linux/migrate.h>
#include <linux/mmzone.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <trace/events/promote.h>

#include "../internal.h"
#include "internal.h"
#include "policy.h"
#include "promo_list.h"

static_assert(PAGECACHE_PROMOTE_FAIL_OTHER - PAGECACHE_PROMOTE_FAIL_STALE ==
	      PROMOTE_FAIL_OTHER - PROMOTE_FAIL_STALE);

/**
 * promote_count_refused - count candidates that were not promoted
 * @refusal: why
 * @nr: how many folios
 */
void promote_count_refused(enum promote_refusal refusal, unsigned long nr)
{
	count_vm_events(PAGECACHE_PROMOTE_FAIL_STALE + refusal, nr);
}

/* Free pages as kswapd counts them when it asks whether it is done. */
static unsigned long promote_zone_free(struct zone *zone)
{
	unsigned long free = zone_page_state(zone, NR_FREE_PAGES);
	unsigned long unusable = zone_page_state(zone, NR_FREE_CMA_PAGES) +
				 READ_ONCE(zone->nr_free_highatomic);

	return free > unusable ? free - unusable : 0;
}

/* Pages that the node can take without reclaim. */
static unsigned long promote_node_room(int nid)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	pg_data_t *pgdat = NODE_DATA(nid);
	unsigned long room = 0;
	int i;

	for (i = 0; i <= highest; i++) {
		struct zone *zone = pgdat->node_zones + i;

		if (!managed_zone(zone))
			continue;
		room += promote_zone_room(promote_zone_free(zone),
					  promo_wmark_pages(zone),
					  zone->lowmem_reserve[highest],
					  zone_managed_pages(zone));
	}
	return room;
}

/*
 * Why may the current task, or the owner of a folio, not have memory moved to a
 * node? @owner is NULL as long as no folio is known.
 */
static enum promote_refusal promote_check_target(int nid,
						 const nodemask_t *owner)
{
	if (owner && !node_isset(nid, *owner))
		return PROMOTE_FAIL_NODE;
	if (!node_isset(nid, cpuset_current_mems_allowed))
		return PROMOTE_FAIL_CPUSET;
	if (!mempolicy_allows_node(nid))
		return PROMOTE_FAIL_POLICY;
	return PROMOTE_ACCEPTED;
}

/*
 * The nearest node of the top tier that is allowed and has headroom for so many
 * pages, or NUMA_NO_NODE. The refusal then names the test that came furthest.
 */
static int promote_choose_target(const nodemask_t *owner, unsigned long nr_pages,
				 enum promote_refusal *refusal)
{
	enum zone_type highest = gfp_zone(GFP_HIGHUSER_MOVABLE);
	enum promote_refusal furthest = PROMOTE_FAIL_NODE;
	int nid, last = NUMA_NO_NODE;
	enum promote_refusal check;
	struct zonelist *zonelist;
	struct zoneref *z;
	struct zone *zone;

	zonelist = node_zonelist(numa_node_id(), GFP_HIGHUSER_MOVABLE);
	for_each_zone_zonelist(zone, z, zonelist, highest) {
		nid = zone_to_nid(zone);
		if (nid == last || !node_is_toptier(nid))
			continue;
		last = nid;
		check = promote_check_target(nid, owner);
		if (check == PROMOTE_ACCEPTED &&
		    promote_node_room(nid) >= nr_pages) {
			*refusal = PROMOTE_ACCEPTED;
			return nid;
		}
		if (check == PROMOTE_ACCEPTED)
			check = PROMOTE_FAIL_BUDGET;
		furthest = max(furthest, check);
	}
	*refusal = furthest;
	return NUMA_NO_NODE;
}

/**
 * promote_mover_start - prepare to move candidates for the current task
 * @mover: the mover, on the stack of the caller
 *
 * Sets the target node, or the reason why there is none.
 *
 * Context: Process context.
 */
void promote_mover_start(struct promote_mover *mover)
{
	*mover = (struct promote_mover) {
		.folios = LIST_HEAD_INIT(mover->folios),
		.batch_nid = NUMA_NO_NODE,
		.nomem_order = UINT_MAX,
	};
	mover->nid = promote_choose_target(NULL, 1, &mover->refusal);
	/* What this CPU has just added to the page cache is not on a list. */
	if (mover->nid != NUMA_NO_NODE)
		lru_add_drain();
}

/* Get the folio at a PFN that may be anything by now. */
static struct folio *promote_get_folio(unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);
	struct folio *folio;

	if (!page)
		return NULL;

	folio = page_folio(page);
	if (!folio_try_get(folio))
		return NULL;
	if (page_folio(page) != folio || folio_pfn(folio) != pfn) {
		folio_put(folio);
		return NULL;
	}
	return folio;
}

/* Did the owner of a tmpfs file, or its mount, say where the memory goes? */
static bool promote_mapping_has_policy(const struct address_space *mapping)
{
	return shmem_mapping(mapping) &&
	       !RB_EMPTY_ROOT(&SHMEM_I(mapping->host)->policy.root);
}

/**
 * promote_mapping_eligible - may folios of a mapping be promoted?
 * @mapping: the page cache of an inode
 *
 * Regular files only, and no tmpfs file with a memory policy of its own. An
 * inode that a filesystem keeps its metadata in can have the mode of its last
 * use, but cannot be read as a file. With buffer_migrate_folio_norefs()
 * migration of a folio with busy buffers sends an IPI to every CPU, several
 * times: journalled data is not worth that.
 *
 * Context: The caller keeps the inode, RCU suffices.
 * Return: true if so.
 */
bool promote_mapping_eligible(const struct address_space *mapping)
{
	const struct inode *host = READ_ONCE(mapping->host);

	if (!host || !S_ISREG(host->i_mode) || mapping_inaccessible(mapping))
		return false;
	if (!READ_ONCE(host->i_fop)->read_iter)
		return false;
	if (promote_mapping_has_policy(mapping))
		return false;
	return !IS_ENABLED(CONFIG_BUFFER_HEAD) ||
	       mapping->a_ops->migrate_folio != buffer_migrate_folio_norefs;
}

static enum promote_refusal promote_check_mapping(struct folio *folio)
{
	struct address_space *mapping;

	/* Keeps the inode; the folio can be truncated at any time. */
	guard(rcu)();

	mapping = READ_ONCE(folio->mapping);
	if (!mapping || folio_test_anon(folio))
		return PROMOTE_FAIL_STALE;
	if (!promote_mapping_eligible(mapping))
		return PROMOTE_FAIL_OTHER;
	if (folio_test_dirty(folio) && mapping_can_writeback(mapping))
		return PROMOTE_FAIL_DIRTY;
	return PROMOTE_ACCEPTED;
}

/*
 * Is it still a folio of a lower tier with a time? A clock that is unset says
 * that the page was freed, or moved, since it was recorded.
 */
static bool promote_folio_is_current(struct folio *folio)
{
	return folio_use_access_time(folio) &&
	       folio_last_cpupid(folio) != (-1 & LAST_CPUPID_MASK);
}

/*
 * Is this still an unmapped folio of a lower tier, and can migration succeed?
 * Ask first: it allocates the destination before it finds out.
 */
static enum promote_refusal promote_check_folio(struct folio *folio)
{
	enum promote_refusal refusal;

	if (!promote_folio_is_current(folio))
		return PROMOTE_FAIL_STALE;
	if (folio_mapped(folio))
		return PROMOTE_FAIL_MAPPED;
	refusal = promote_check_mapping(folio);
	if (refusal != PROMOTE_ACCEPTED)
		return refusal;
	if (!folio_test_lru(folio))
		return PROMOTE_FAIL_BUSY;
	if (folio_test_unevictable(folio) || folio_contain_hwpoisoned_page(folio))
		return PROMOTE_FAIL_OTHER;
	if (folio_test_writeback(folio))
		return PROMOTE_FAIL_WRITEBACK;
	if (folio_test_locked(folio))
		return PROMOTE_FAIL_LOCKED;
	if (folio_ref_count(folio) != folio_expected_ref_count(folio) + 1)
		return PROMOTE_FAIL_BUSY;
	return PROMOTE_ACCEPTED;
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

static void promote_note_scarcity(int nid, unsigned int order, int ret)
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
 * The batch is for one memory cgroup, since migration counts for one, and for
 * one order: if the node has no page of it, that ends the batch.
 */
static bool promote_batch_takes(struct promote_mover *mover,
				struct folio *folio)
{
	struct folio *first;

	if (!mover->nr_folios)
		return false;
	first = list_first_entry(&mover->folios, struct folio, lru);
	if (folio_order(first) != folio_order(folio) ||
	    folio_nr_pages(folio) > mover->room)
		return false;
	guard(rcu)();
	return folio_memcg(folio) == mover->memcg;
}

/*
 * The nodes that the memory cgroup may use are those of its cpuset. If it may
 * not go where the reader may, or there is no room for this folio, another node
 * may suit all.
 */
static enum promote_refusal promote_batch_open(struct promote_mover *mover,
					       struct folio *folio)
{
	unsigned long nr_pages = folio_nr_pages(folio);
	enum promote_refusal refusal = PROMOTE_ACCEPTED;
	nodemask_t allowed = node_states[N_MEMORY];
	int nid = mover->nid;

	mover->memcg = get_mem_cgroup_from_folio(folio);
	mem_cgroup_node_filter_allowed(mover->memcg, &allowed);
	/* Others use the same room: ask anew. */
	if (!node_isset(nid, allowed) || promote_node_room(nid) < nr_pages)
		nid = promote_choose_target(&allowed, nr_pages, &refusal);
	if (refusal != PROMOTE_ACCEPTED)
		return refusal;

	/* What one node has no memory for, another may have. */
	if (nid != mover->batch_nid)
		mover->nomem_order = UINT_MAX;
	mover->batch_nid = nid;
	mover->room = promote_node_room(nid);
	return PROMOTE_ACCEPTED;
}

static enum promote_refusal promote_batch_add(struct promote_mover *mover,
					      struct folio *folio)
{
	enum promote_refusal refusal;

	if (!promote_batch_takes(mover, folio)) {
		promote_mover_flush(mover);
		refusal = promote_batch_open(mover, folio);
		if (refusal != PROMOTE_ACCEPTED)
			return refusal;
	}
	if (folio_order(folio) >= mover->nomem_order ||
	    promote_node_scarce(mover->batch_nid, folio_order(folio)))
		return PROMOTE_FAIL_NOMEM;
	if (folio_nr_pages(folio) > mover->room)
		return PROMOTE_FAIL_BUDGET;
	if (migrate_misplaced_folio_isolate(folio))
		return PROMOTE_FAIL_BUSY;

	/*
	 * Arrive among the young: MGLRU would put a folio that is not active
	 * into the oldest generations, where demotion looks first. If it was
	 * mapped and mlocked since the check, it must not be both.
	 */
	if (!folio_test_unevictable(folio))
		folio_set_active(folio);
	list_add_tail(&folio->lru, &mover->folios);
	mover->nr_folios++;
	mover->nr_pages += folio_nr_pages(folio);
	mover->nr_local += folio_nid(folio) == numa_node_id();
	mover->room -= folio_nr_pages(folio);
	return PROMOTE_ACCEPTED;
}

/**
 * promote_mover_add - offer a candidate
 * @mover: the mover, with a target
 * @entry: what was a hot folio
 *
 * An accepted folio is isolated until the next promote_mover_flush().
 *
 * Context: Process context, may sleep.
 * Return: %PROMOTE_ACCEPTED, or why not.
 */
enum promote_refusal promote_mover_add(struct promote_mover *mover,
				       const struct promo_entry *entry)
{
	struct folio *folio = promote_get_folio(entry->pfn);
	enum promote_refusal refusal = PROMOTE_FAIL_STALE;

	if (!folio)
		return PROMOTE_FAIL_STALE;

	/* Of another size now, it is not what was found hot and accounted. */
	if (folio_order(folio) == entry->order)
		refusal = promote_check_folio(folio);
	if (refusal == PROMOTE_ACCEPTED)
		refusal = promote_batch_add(mover, folio);
	folio_put(folio);
	return refusal;
}

/* Count while the folios are still there and belong to the cgroup. */
static void promote_count_candidates(struct promote_mover *mover)
{
	count_vm_events(NUMA_HINT_PAGE_CACHE, mover->nr_folios);
	count_memcg_events(mover->memcg, NUMA_HINT_PAGE_CACHE,
			   mover->nr_folios);
	if (mover->nr_local) {
		count_vm_events(NUMA_HINT_PAGE_CACHE_LOCAL, mover->nr_local);
		count_memcg_events(mover->memcg, NUMA_HINT_PAGE_CACHE_LOCAL,
				   mover->nr_local);
	}
	/* Into headroom, so not limited by the rate. */
	mod_node_page_state(NODE_DATA(mover->batch_nid), PGPROMOTE_CANDIDATE_NRL,
			    mover->nr_pages);
}

/**
 * promote_mover_flush - move what was accepted
 * @mover: the mover
 *
 * Context: Process context, may sleep.
 */
void promote_mover_flush(struct promote_mover *mover)
{
	enum promote_refusal refusal = PROMOTE_ACCEPTED;
	unsigned int nr_moved, order, nr_failed;
	struct folio *first;
	int ret, src_nid;

	if (!mover->nr_folios)
		goto put;

	first = list_first_entry(&mover->folios, struct folio, lru);
	src_nid = folio_nid(first);
	order = folio_order(first);
	promote_count_candidates(mover);
	ret = migrate_misplaced_folio_batch(&mover->folios, mover->batch_nid,
					    &nr_moved);
	promote_note_scarcity(mover->batch_nid, order, ret);
	if (ret == -ENOMEM)
		mover->nomem_order = order;
	if (ret) {
		refusal = ret == -ENOMEM ? PROMOTE_FAIL_NOMEM :
					   PROMOTE_FAIL_BUSY;
		nr_failed = (mover->nr_pages - nr_moved) >> order;
		promote_count_refused(refusal, nr_failed);
	}
	trace_promote_migrate(src_nid, mover->batch_nid, order, mover->nr_pages,
			      nr_moved, refusal);
	mover->nr_moved += nr_moved;
	mover->nr_folios = 0;
	mover->nr_pages = 0;
	mover->nr_local = 0;
put:
	mem_cgroup_put(mover->memcg);
	mover->memcg = NULL;
}
