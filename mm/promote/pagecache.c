// SPDX-License-Identifier: GPL-2.0
/*
 * The source of candidates: accesses to unmapped page cache. Records them
 * when they happen and drains them when the task returns to user space.
 */
#include <kunit/visibility.h>
#include <linux/pagemap.h>
#include <linux/preempt.h>
#include <linux/sched/clock.h>
#include <linux/sched/cputime.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/rt.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/vmstat.h>

#include <trace/events/promote.h>

#include "internal.h"
#include "policy.h"
#include "promo_list.h"

u32 promote_min_gap_ms __read_mostly = 16;

/*
 * While a list is full of more folios than this, one access to a hot folio in so
 * many has a look.
 */
#define PROMOTE_ASK_EVERY	16U

/* Where there is no headroom candidates wait for each other, up to so many pages */
#define PROMOTE_PAID_PAGES	32U
/* and for credit, up to so many folios. */
#define PROMOTE_PAID_WAITING	64U
/* How long to wait for credit, and for a page to be demoted */
#define PROMOTE_CREDIT_WAIT_NS	(PROMOTE_WINDOW_MS * NSEC_PER_MSEC)
#define PROMOTE_ROOM_WAIT_NS	(10 * NSEC_PER_MSEC)

/* What reclaim touches is not the access of a reader. */
static bool promote_task_reads(const struct task_struct *tsk)
{
	return !(tsk->flags & (PF_EXITING | PF_MEMALLOC | PF_KTHREAD));
}

/* Tasks that come by on the way back to user space and may be delayed there. */
VISIBLE_IF_KUNIT bool promote_task_may_record(struct task_struct *tsk)
{
	return in_task() && promote_task_reads(tsk) && !rt_or_dl_task(tsk);
}

/*
 * Page cache of a regular file. The caller's reference keeps the
 * folio but not the mapping, RCU keeps the inode.
 */
static bool promote_folio_may_record(struct folio *folio)
{
	struct address_space *mapping;

	guard(rcu)();
	mapping = READ_ONCE(folio->mapping);
	return mapping && !folio_test_anon(folio) &&
	       promote_mapping_eligible(mapping);
}

/* The same, asked once for a run of folios of one file. */
static bool promote_list_may_record(struct promo_list *list,
				    struct folio *folio)
{
	const struct address_space *mapping = READ_ONCE(folio->mapping);

	/* Compared only: if it is another by now, the drain finds out. */
	if (mapping && mapping == list->mapping)
		return true;
	if (!promote_folio_may_record(folio))
		return false;
	list->mapping = mapping;
	return true;
}

VISIBLE_IF_KUNIT void promote_queue_work(struct task_struct *tsk)
{
	struct callback_head *work = &tsk->promo_work;

	if (work->next != work)
		return;
	/* An exiting task takes no work: its list is of no more use. */
	if (task_work_add(tsk, work, TWA_RESUME))
		work->next = work;
}

/*
 * Of several tasks that find a folio hot one gets it: the one that replaces the
 * time which all have seen. With a time in the future nobody takes it up again
 * until the drain has had its turn, nor for a while after it was refused.
 */
static void promote_record(struct promo_list *list, struct folio *folio,
			   u32 now, u32 last)
{
	unsigned int order = folio_order(folio);

	if (folio_xchg_access_time(folio, promote_claim_time(now)) != last)
		return;

	promo_list_add(list, folio_pfn(folio), order, now);
	list->reader.account.demand += 1U << order;
	count_vm_event(PAGECACHE_PROMOTE_QUEUED);
	trace_promote_record(folio_nid(folio), order, list->nr);
}

/* A reader that samples comes by in every window anyway. */
static bool promote_list_is_due(const struct promo_list *list, u32 now)
{
	return list->reader.sampling ? list->nr_pages >= PROMOTE_PAID_PAGES :
				       promo_list_due(list, now);
}

static void promote_drain_when_due(struct task_struct *tsk,
				   struct promo_list *list, u32 now)
{
	if (promote_list_is_due(list, now) && local_clock() >= list->retry_ns)
		promote_queue_work(tsk);
}

/* Hint faults take care of what is mapped, with times of their own. */
static bool promote_folio_may_have_time(struct folio *folio)
{
	return !folio_mapped(folio) && !folio_test_anon(folio);
}

static __always_inline void promote_note_time(struct task_struct *tsk,
					      struct folio *folio, u32 now)
{
	if (promote_task_reads(tsk) && promote_folio_may_have_time(folio))
		folio_xchg_access_time(folio, now);
}

/* For its drain, or for time to spend on that. Does not insist all the time. */
static bool promote_list_waits(struct promo_list *list)
{
	return list && promo_list_full(list) && list->nr > PROMOTE_ASK_EVERY &&
	       ++list->nr_waiting % PROMOTE_ASK_EVERY;
}

/* Not inlined, for the sake of the many that are not hot. */
VISIBLE_IF_KUNIT noinline void promote_found_hot(struct task_struct *tsk,
						 struct folio *folio, u32 now,
						 u32 last, u32 threshold)
{
	struct promote_clock clock = promote_clock();
	struct promo_list *list = tsk->promo_list;
	enum promote_heat heat;

	clock.threshold = threshold;
	heat = promote_heat(&clock, now, last, folio_order(folio));
	if (heat == PROMOTE_COLD) {
		promote_note_time(tsk, folio, now);
		return;
	}
	if (!promote_task_may_record(tsk) ||
	    !promote_folio_may_have_time(folio) || (list && list->draining))
		return;
	/* The task_work allocates it. The time stays, to be hot again. */
	if (!list) {
		if (promote_folio_may_record(folio))
			promote_queue_work(tsk);
		return;
	}
	if (heat == PROMOTE_HOT && promo_list_takes(list, folio_order(folio)) &&
	    promote_list_may_record(list, folio))
		promote_record(list, folio, now, last);
	/* When all that is hot has been recorded, who drains it? */
	promote_drain_when_due(tsk, list, now);
}

/* Look at one access for many, and see that they are accounted for. */
static noinline void promote_sample(struct task_struct *tsk,
				    struct promo_list *list,
				    struct folio *folio, u32 now)
{
	promote_reader_sampled(&list->reader, folio_order(folio));
	if (now - list->reader.settled_ms >= PROMOTE_WINDOW_MS &&
	    promote_task_may_record(tsk) && !list->draining)
		promote_queue_work(tsk);
}

/**
 * __promote_folio_accessed - out of line part of promote_folio_accessed()
 * @folio: a folio of a lower tier that the LRU calls hot
 *
 * Context: Any, see promote_folio_accessed().
 */
void __promote_folio_accessed(struct folio *folio)
{
	struct promote_clock clock = promote_clock();
	u32 last = (u32)folio_last_cpupid(folio) << PAGE_ACCESS_TIME_BUCKETS;
	struct task_struct *tsk = current;
	unsigned long now_jiffies = jiffies;
	u32 now = jiffies_to_msecs(now_jiffies);

	/* A task that pauses may have a look now and then. */
	if (time_before(now_jiffies, tsk->promo_paused)) {
		struct promo_list *list = tsk->promo_list;

		if (!list || !list->reader.sampling ||
		    !promote_reader_looks(&list->reader))
			return;
		promote_sample(tsk, list, folio, now);
		clock.threshold = list->reader.account.threshold_ms;
	}
	/* Most calls end here, before they have touched another cache line. */
	switch (promote_glance(&clock, now, last)) {
	case PROMOTE_RECENT:
		break;
	case PROMOTE_COLD:
		promote_note_time(tsk, folio, now);
		break;
	default:
		if (!promote_list_waits(tsk->promo_list))
			promote_found_hot(tsk, folio, now, last,
					  clock.threshold);
	}
}

static void promote_one(struct promote_mover *mover,
			const struct promo_entry *entry, u32 stale_ms)
{
	enum promote_refusal refusal = PROMOTE_FAIL_STALE;

	if (promote_now_ms() - entry->queued_ms <= stale_ms)
		refusal = promote_mover_add(mover, entry);
	if (refusal == PROMOTE_ACCEPTED)
		return;
	promote_count_refused(refusal, 1);
	trace_promote_refused(mover->nid, entry->order, refusal);
}

/* Move what is on the list until it is empty or the time is used up. */
static unsigned int promote_drain_entries(struct promote_mover *mover,
					  struct promo_list *list)
{
	/* What is read again within the threshold is still hot by then. */
	u32 stale_ms = max3(PROMO_LIST_STALE_MS,
			    READ_ONCE(sysctl_numa_balancing_hot_threshold),
			    list->reader.account.threshold_ms);
	u64 deadline = local_clock() + list->credit_ns;
	unsigned int nr_drained = 0;
	unsigned int checked = 0;
	struct promo_entry entry;

	while (mover->nid != NUMA_NO_NODE &&
	       promote_mover_pays(mover, list->orders[list->head]) &&
	       promo_list_pop(list, &entry)) {
		nr_drained++;
		promote_one(mover, &entry, stale_ms);
		checked += 1U << entry.order;
		if (checked < PROMOTE_BATCH_PAGES)
			continue;
		checked = 0;
		promote_mover_flush(mover);
		if (fatal_signal_pending(current) ||
		    (s64)(local_clock() - deadline) >= 0)
			break;
	}
	promote_mover_flush(mover);
	return nr_drained;
}

static void promote_sampling_start(struct promo_list *list)
{
	struct promote_reader *reader = &list->reader;

	if (reader->sampling)
		return;
	/* What is on the list was read, at least. */
	reader->nr_accesses = list->nr_pages;
	reader->account.demand = 0;
	reader->account.supply_ns = 0;
	reader->sampling = true;
}

/* The oldest go, if there is more than can be paid for soon. */
static unsigned int promote_drop_waiting(struct promo_list *list, int nid)
{
	unsigned int nr_dropped = 0;
	struct promo_entry entry;

	while (list->nr > PROMOTE_PAID_WAITING && promo_list_pop(list, &entry)) {
		nr_dropped++;
		trace_promote_refused(nid, entry.order, PROMOTE_FAIL_BUDGET);
	}
	promote_count_refused(PROMOTE_FAIL_BUDGET, nr_dropped);
	return nr_dropped;
}

/* Move what can be paid for and has room; what has none waits for it. */
static unsigned int promote_drain_paid(struct promote_mover *mover,
				       struct promo_list *list)
{
	struct promote_reader *reader = &list->reader;
	u64 start = task_sched_runtime(current);
	unsigned int nr_pays, nr_drained;

	promote_sampling_start(list);
	promote_reader_settle(reader, mover->nid, list->nr_pages);
	mover->cost_ns = promote_reader_cost(reader);
	mover->credit_ns = reader->account.credit_ns;
	mover->paid_room = mover->room;
	nr_pays = min(list->nr_pages,
		      promote_credit_pages(mover->credit_ns, mover->cost_ns));
	if (list->nr && promote_mover_credit(mover, list->orders[list->head]))
		nr_pays = max(nr_pays, 1U << list->orders[list->head]);
	if (nr_pays > mover->room)
		promote_exchange_ask(mover->nid, nr_pays - mover->room);
	nr_drained = promote_drain_entries(mover, list);
	nr_drained += promote_drop_waiting(list, mover->nid);
	promote_reader_spend(reader, task_sched_runtime(current) - start,
			     mover->nr_moved);
	list->retry_ns = local_clock() + (nr_pays ? PROMOTE_ROOM_WAIT_NS :
						    PROMOTE_CREDIT_WAIT_NS);
	/* Until the next one it samples. */
	current->promo_paused = jiffies + PROMOTE_PAUSE;
	return nr_drained;
}

static void promote_drain(struct promo_list *list)
{
	struct promote_reader *reader = &list->reader;
	unsigned int nr_drained = 0;
	struct promote_mover mover;

	list->mapping = NULL;
	promote_mover_start(&mover, reader->pays);
	if (mover.nid == NUMA_NO_NODE) {
		reader->sampling = false;
	} else if (mover.paid) {
		nr_drained = promote_drain_paid(&mover, list);
	} else {
		reader->sampling = false;
		nr_drained = promote_drain_entries(&mover, list);
	}
	reader->pays = mover.memcg_full || (reader->pays && !mover.nr_moved);
	if (mover.nid == NUMA_NO_NODE) {
		/* One check for all: no folio is touched in vain. */
		nr_drained += list->nr;
		promote_count_refused(mover.refusal, list->nr);
		promo_list_clear(list);
		current->promo_paused = jiffies + PROMOTE_PAUSE;
	} else if (!mover.paid) {
		current->promo_paused = jiffies;
	}
	count_vm_events(PAGECACHE_PROMOTE_DRAINED, nr_drained);
	trace_promote_drain(mover.nid, nr_drained, list->nr, mover.nr_moved,
			    mover.refusal);
}

/*
 * A drain takes three quarters of the time that the task ran for itself since
 * the last one. What is left waits until some of that is earned, or each system
 * call would come by in vain.
 */
static void promote_drain_paced(struct promo_list *list)
{
	u64 start = task_sched_runtime(current);
	u64 ran = start - list->runtime_ns;

	list->reader.ran_ns += ran;
	list->credit_ns = promote_pace_earn(list->credit_ns, ran);
	if (list->credit_ns > 0)
		promote_drain(list);
	list->runtime_ns = task_sched_runtime(current);
	list->credit_ns = promote_pace_spend(list->credit_ns,
					     list->runtime_ns - start);
	if (list->nr)
		list->retry_ns = max(list->retry_ns,
				     promote_pace_retry(local_clock(),
							list->credit_ns));
}

static struct promo_list *promo_list_alloc(void)
{
	struct promo_list *list;

	/* Promotion is not worth an OOM kill, nor much reclaim. */
	list = kzalloc_obj(*list, GFP_KERNEL_ACCOUNT | __GFP_NORETRY |
			   __GFP_NOMEMALLOC | __GFP_NOWARN);
	if (list)
		list->runtime_ns = task_sched_runtime(current);
	return list;
}

/**
 * promote_task_work - drain the list of the current task, or allocate it
 * @work: its promo_work
 *
 * Context: Return to user space, may sleep; also the exit of the task.
 */
void promote_task_work(struct callback_head *work)
{
	struct promo_list *list = current->promo_list;

	work->next = work;
	if (current->flags & PF_EXITING)
		return;
	if (!list) {
		current->promo_list = promo_list_alloc();
		if (!current->promo_list)
			current->promo_paused = jiffies + PROMOTE_PAUSE;
		return;
	}
	if (!static_branch_likely(&promote_pagecache_key)) {
		promo_list_clear(list);
		return;
	}
	list->draining = true;
	promote_drain_paced(list);
	list->draining = false;
}
