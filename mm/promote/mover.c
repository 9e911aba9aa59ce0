// SPDX-License-Identifier: GPL-2.0
/*
 * The mover: takes PFNs of candidates, checks that each is still a folio
 * worth moving, and hands them to migration in batches. Sources of
 * candidates differ, the mover does not.
 */
#include <linux/backing-dev.h>
#include <linux/buffer_head.h>
#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/migrate.h>
#include <linux/mmzone.h>
#include <linux/page_counter.h>
#include <linux/pagemap.h>
#include <linux/sched/numa_balancing.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include <trace/events/promote.h>

#include "../internal.h"
#include "internal.h"
#include "policy.h"
#include "promo_list.h"
#include "target.h"

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

/* Choose the first target, or note why there is none. */
static void promote_mover_aim(struct promote_mover *mover,
			      unsigned long nr_pages)
{
	struct promote_ask ask = { .nr_pages = nr_pages, .paid = mover->paid };

	mover->nid = NUMA_NO_NODE;
	mover->refusal = promote_choose_target(&ask, &mover->nid, &mover->room);
}

/**
 * promote_mover_start - prepare to move candidates for the current task
 * @mover: the mover, on the stack of the caller
 * @pays: the task has to pay even if there is headroom
 *
 * Sets the target node, or the reason why there is none. Without headroom it is
 * one where the task may pay; it must not add anything before it has
 * credit, see promote_mover_pays().
 *
 * Context: Process context.
 */
void promote_mover_start(struct promote_mover *mover, bool pays)
{
	*mover = (struct promote_mover) {
		.folios = LIST_HEAD_INIT(mover->folios),
		.nid = NUMA_NO_NODE,
		.paid = pays,
	};
	folio_batch_init(&mover->accepted);
	/* Less is not worth a look at every folio. */
	if (!pays)
		promote_mover_aim(mover, PROMOTE_BATCH_PAGES);
	if (pays || mover->refusal == PROMOTE_FAIL_BUDGET) {
		mover->paid = true;
		promote_mover_aim(mover, 0);
	}
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

/* Did the owner of this tmpfs file, or its mount, say where the memory goes? */
static bool promote_mapping_has_policy(const struct address_space *mapping)
{
	return READ_ONCE(SHMEM_I(mapping->host)->policy.root.rb_node);
}

/**
 * promote_mapping_eligible - may folios of a mapping be promoted?
 * @mapping: the page cache of an inode
 *
 * Regular files only, and no tmpfs file with a memory policy of its own. An
 * inode that a filesystem keeps its metadata in can have the mode of its last
 * use, but its folios are not read as those of a file. With
 * buffer_migrate_folio_norefs() migration of a folio with busy buffers sends an
 * IPI to every CPU, several times: journalled data is not worth that.
 *
 * Context: RCU suffices: it keeps what is read here of an inode, a_ops and not
 * i_fop, which free_inode may have replaced.
 * Return: true if so.
 */
bool promote_mapping_eligible(const struct address_space *mapping)
{
	const struct address_space_operations *ops = READ_ONCE(mapping->a_ops);
	const struct inode *host = READ_ONCE(mapping->host);

	if (!host || !S_ISREG(host->i_mode) || mapping_inaccessible(mapping))
		return false;
	if (shmem_mapping(mapping))
		return !promote_mapping_has_policy(mapping);
	if (!ops->read_folio)
		return false;
	return !IS_ENABLED(CONFIG_BUFFER_HEAD) ||
	       ops->migrate_folio != buffer_migrate_folio_norefs;
}

static enum promote_refusal promote_check_mapping(struct promote_mover *mover,
						  struct folio *folio)
{
	struct address_space *mapping = READ_ONCE(folio->mapping);

	/* Asked already. Compared only: it may be gone, or another by now. */
	if (mapping && mapping == mover->mapping && !folio_test_dirty(folio))
		return PROMOTE_ACCEPTED;

	/* Keeps the inode; the folio can be truncated at any time. */
	guard(rcu)();

	mapping = READ_ONCE(folio->mapping);
	if (!mapping || folio_test_anon(folio))
		return PROMOTE_FAIL_STALE;
	if (!promote_mapping_eligible(mapping))
		return PROMOTE_FAIL_OTHER;
	if (folio_test_dirty(folio) && mapping_can_writeback(mapping))
		return PROMOTE_FAIL_DIRTY;
	mover->mapping = mapping;
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
static enum promote_refusal promote_check_folio(struct promote_mover *mover,
						struct folio *folio)
{
	enum promote_refusal refusal;

	if (!promote_folio_is_current(folio))
		return PROMOTE_FAIL_STALE;
	/* What is not on the LRU may have no mapping where we look for it. */
	if (!folio_test_lru(folio))
		return PROMOTE_FAIL_BUSY;
	if (folio_mapped(folio))
		return PROMOTE_FAIL_MAPPED;
	refusal = promote_check_mapping(mover, folio);
	if (refusal != PROMOTE_ACCEPTED)
		return refusal;
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
 * The batch is for one memory cgroup, source node and kind of LRU list, since
 * migration counts for one, and for one order: if the node has no page of it,
 * that ends the batch.
 */
static bool promote_batch_takes(struct promote_mover *mover,
				struct folio *folio)
{
	if (!mover->open || mover->order != folio_order(folio) ||
	    mover->room < folio_nr_pages(folio) ||
	    mover->src_nid != folio_nid(folio) ||
	    mover->file_lru != folio_is_file_lru(folio))
		return false;
	guard(rcu)();
	return folio_memcg(folio) == mover->memcg;
}

/*
 * Is the memory cgroup, or one above it, about to reclaim for its own limit?
 * That demotes while the node has headroom: who promotes its folios pays.
 */
static bool promote_memcg_is_full(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	for (; memcg && !mem_cgroup_is_root(memcg);
	     memcg = parent_mem_cgroup(memcg)) {
		unsigned long limit = min(READ_ONCE(memcg->memory.max),
					  READ_ONCE(memcg->memory.high));

		if (page_counter_read(&memcg->memory) + PROMOTE_BATCH_PAGES >
		    limit)
			return true;
	}
#endif
	return false;
}

/*
 * The nodes that the memory cgroup may use are those of its cpuset. If it may
 * not go where the reader may, or there is no room for this folio, another node
 * may suit all. Others use the same room: ask anew for each batch.
 */
static enum promote_refusal promote_batch_open(struct promote_mover *mover,
					       struct folio *folio)
{
	nodemask_t allowed = node_states[N_MEMORY];
	struct promote_ask ask = {
		.owner = &allowed,
		.order = folio_order(folio),
		.paid = mover->paid,
		.nr_pages = folio_nr_pages(folio),
	};
	enum promote_refusal refusal;

	mover->memcg = get_mem_cgroup_from_folio(folio);
	mover->memcg_full |= promote_memcg_is_full(mover->memcg);
	if (mover->memcg_full && !mover->paid)
		return PROMOTE_FAIL_BUDGET;
	mem_cgroup_node_filter_allowed(mover->memcg, &allowed);
	mover->batch_nid = mover->nid;
	refusal = promote_check_target(&ask, mover->nid, &mover->room);
	if (refusal != PROMOTE_ACCEPTED)
		refusal = promote_choose_target(&ask, &mover->batch_nid,
						&mover->room);
	/* If no node has room for a page, all that follows is in vain. */
	if (refusal == PROMOTE_FAIL_BUDGET && !ask.order) {
		promote_mover_aim(mover, mover->paid ? 0 : 1);
		/* Who pays waits for room, unless there can be none. */
		mover->paid_room = 0;
	}
	mover->open = refusal == PROMOTE_ACCEPTED;
	mover->order = ask.order;
	mover->src_nid = folio_nid(folio);
	mover->file_lru = folio_is_file_lru(folio);
	return refusal;
}

/* Turn references into isolation. What has left the LRU meanwhile is busy. */
static void promote_isolate(struct promote_mover *mover)
{
	unsigned int nr = folio_batch_count(&mover->accepted);
	unsigned int nr_isolated;

	if (!nr)
		return;
	nr_isolated = migrate_misplaced_folios_isolate(&mover->accepted,
						       &mover->folios);
	mover->nr_folios += nr_isolated;
	promote_count_refused(PROMOTE_FAIL_BUSY, nr - nr_isolated);
	for (; nr > nr_isolated; nr--)
		trace_promote_refused(mover->nid, mover->order,
				      PROMOTE_FAIL_BUSY);
}

/**
 * promote_mover_credit - is there credit for a folio?
 * @mover: the mover, of one who pays
 * @order: order of the folio
 *
 * Context: Process context.
 * Return: true if so.
 */
bool promote_mover_credit(const struct promote_mover *mover, unsigned int order)
{
	return promote_credit_pays(mover->credit_ns, mover->cost_ns, BIT(order));
}

/**
 * promote_mover_pays - is there credit and room for a folio?
 * @mover: the mover, with a target
 * @order: order of the folio
 *
 * Context: Process context.
 * Return: true if so, or if nothing has to be paid.
 */
bool promote_mover_pays(const struct promote_mover *mover, unsigned int order)
{
	return !mover->paid || (mover->paid_room >= BIT(order) &&
				promote_mover_credit(mover, order));
}

/* Take it off the rate, and off what can be paid for. */
static bool promote_mover_charge(struct promote_mover *mover,
				 unsigned long nr_pages)
{
	if (numa_promotion_rate_limit(NODE_DATA(mover->batch_nid),
				      NUMA_PROMOTE_PAGE_CACHE, nr_pages)) {
		/* Nor for what follows. */
		mover->paid_room = 0;
		return false;
	}
	mover->paid_room -= min(mover->paid_room, nr_pages);
	mover->credit_ns -= (u64)mover->cost_ns * nr_pages;
	return true;
}

static enum promote_refusal promote_batch_add(struct promote_mover *mover,
					      struct folio *folio)
{
	enum promote_refusal refusal;

	if (!promote_batch_takes(mover, folio)) {
		promote_mover_flush(mover);
		if (mover->nid == NUMA_NO_NODE)
			return mover->refusal;
		refusal = promote_batch_open(mover, folio);
		if (refusal != PROMOTE_ACCEPTED)
			return refusal;
	}
	if (mover->paid && !promote_mover_charge(mover, folio_nr_pages(folio)))
		return PROMOTE_FAIL_RATE;
	mover->room -= folio_nr_pages(folio);
	if (!folio_batch_add(&mover->accepted, folio))
		promote_isolate(mover);
	return PROMOTE_ACCEPTED;
}

/**
 * promote_mover_add - offer a candidate
 * @mover: the mover, with a target
 * @entry: what was a hot folio
 *
 * An accepted folio is referenced, or isolated, until the next
 * promote_mover_flush().
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
		refusal = promote_check_folio(mover, folio);
	if (refusal == PROMOTE_ACCEPTED)
		refusal = promote_batch_add(mover, folio);
	/* Otherwise the reference is the batch's. */
	if (refusal != PROMOTE_ACCEPTED)
		folio_put(folio);
	return refusal;
}

/*
 * Arrive among the young: MGLRU would put a folio that is not active into the
 * oldest generations, where demotion looks first. If it cannot be moved it is
 * still hot. If it was mapped and mlocked since the check, it must not be both.
 */
static void promote_set_active(struct promote_mover *mover)
{
	struct folio *folio;

	list_for_each_entry(folio, &mover->folios, lru) {
		if (!folio_test_unevictable(folio))
			folio_set_active(folio);
	}
}

/* Count while the folios are still there and belong to the cgroup. */
static void promote_count_candidates(struct promote_mover *mover)
{
	count_vm_events(NUMA_HINT_PAGE_CACHE, mover->nr_folios);
	count_memcg_events(mover->memcg, NUMA_HINT_PAGE_CACHE,
			   mover->nr_folios);
	if (mover->src_nid == numa_node_id()) {
		count_vm_events(NUMA_HINT_PAGE_CACHE_LOCAL, mover->nr_folios);
		count_memcg_events(mover->memcg, NUMA_HINT_PAGE_CACHE_LOCAL,
				   mover->nr_folios);
	}
	/* Into headroom it is not limited by the rate. */
	mod_node_page_state(NODE_DATA(mover->batch_nid),
			    mover->paid ? PGPROMOTE_CANDIDATE :
					  PGPROMOTE_CANDIDATE_NRL,
			    (long)mover->nr_folios << mover->order);
}

/* Move what is isolated; there is something. */
static void promote_migrate(struct promote_mover *mover)
{
	unsigned long nr_pages = (unsigned long)mover->nr_folios << mover->order;
	enum promote_refusal refusal = PROMOTE_ACCEPTED;
	unsigned int nr_moved;
	int ret;

	promote_set_active(mover);
	promote_count_candidates(mover);
	ret = migrate_misplaced_folio_batch(&mover->folios, mover->batch_nid,
					    &nr_moved);
	promote_note_scarcity(mover->batch_nid, mover->order, ret);
	/* It said that it had room for a page: do not ask it again now. */
	if (ret == -ENOMEM && !mover->order && mover->batch_nid == mover->nid) {
		mover->nid = NUMA_NO_NODE;
		mover->refusal = PROMOTE_FAIL_NOMEM;
	}
	if (ret) {
		refusal = ret == -ENOMEM ? PROMOTE_FAIL_NOMEM :
					   PROMOTE_FAIL_BUSY;
		promote_count_refused(refusal,
				      (nr_pages - nr_moved) >> mover->order);
	}
	trace_promote_migrate(mover->src_nid, mover->batch_nid, mover->order,
			      nr_pages, nr_moved, refusal);
	mover->nr_moved += nr_moved;
	mover->nr_folios = 0;
}

/**
 * promote_mover_flush - move what was accepted
 * @mover: the mover
 *
 * Context: Process context, may sleep.
 */
void promote_mover_flush(struct promote_mover *mover)
{
	promote_isolate(mover);
	if (mover->nr_folios)
		promote_migrate(mover);
	mover->open = false;
	mover->mapping = NULL;
	mem_cgroup_put(mover->memcg);
	mover->memcg = NULL;
}
