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

/*
 * After one cold folio in so many, by its PFN, a reader asks whether it has found
 * anything hot within so many hot thresholds. If not, it samples.
 */
#define PROMOTE_COLD_EVERY	64
#define PROMOTE_COLD_THRESHOLDS	2U

/* Where there is no headroom candidates wait for each other, up to so many pages */
#define PROMOTE_PAID_PAGES	32U
/* and for some credit, or a look costs more than it moves, */
#define PROMOTE_PAID_CREDIT_NS	(100 * NSEC_PER_USEC)
/* and for credit, up to so many folios. */
#define PROMOTE_PAID_WAITING	64U
/* Run time that earns enough to be worth settling; behind by a tick at most */
#define PROMOTE_SETTLE_NS	((s64)5 * NSEC_PER_MSEC)
/* How long to wait for credit, and for a page to be demoted */
#define PROMOTE_CREDIT_WAIT_NS	(PROMOTE_WINDOW_MS * NSEC_PER_MSEC)
#define PROMOTE_ROOM_WAIT_NS	(10 * NSEC_PER_MSEC)

/* Who pays has a threshold of its own. */
static struct promote_clock promote_reader_clock(const struct promo_list *list)
{
	struct promote_clock clock = promote_clock();

	if (list && list->reader.paying)
		clock.threshold = list->reader.account.threshold_ms;
	return clock;
}

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

/* A reader that has to pay comes by now and then anyway. */
static bool promote_list_is_due(const struct promo_list *list, u32 now)
{
	if (!list->reader.paying)
		return promo_list_due(list, now);
	return list->nr_pages >= PROMOTE_PAID_PAGES &&
	       list->reader.account.credit_ns >= PROMOTE_PAID_CREDIT_NS;
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

/* Where nothing is hot, or where hot is a matter of price, few looks are enough. */
static void promote_sampling(struct task_struct *tsk,
			     struct promote_reader *reader)
{
	u32 threshold = READ_ONCE(sysctl_numa_balancing_hot_threshold);

	reader->sampling = reader->paying ||
			   promote_now_ms() - reader->hot_ms >=
			   threshold * PROMOTE_COLD_THRESHOLDS;
	tsk->promo_paused = reader->sampling;
}

/* It takes a list to count on, also if nothing is hot. */
static noinline void promote_looked_cold(struct task_struct *tsk)
{
	struct promo_list *list = tsk->promo_list;

	if (!promote_task_may_record(tsk))
		return;
	if (!list)
		promote_queue_work(tsk);
	else if (!list->reader.sampling)
		promote_sampling(tsk, &list->reader);
}

static __always_inline void promote_found_cold(struct task_struct *tsk,
					       struct folio *folio, u32 now)
{
	promote_note_time(tsk, folio, now);
	if (!(folio_pfn(folio) % PROMOTE_COLD_EVERY))
		promote_looked_cold(tsk);
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
						 u32 last)
{
	struct promo_list *list = tsk->promo_list;
	struct promote_clock clock = promote_reader_clock(list);
	enum promote_heat heat;

	heat = promote_heat(&clock, now, last, folio_order(folio));
	if (heat == PROMOTE_COLD) {
		promote_found_cold(tsk, folio, now);
		return;
	}
	if (!promote_task_may_record(tsk) ||
	    !promote_folio_may_have_time(folio) || (list && list->draining))
		return;
	if (list) {
		list->reader.hot_ms = now;
		if (list->reader.sampling && !list->reader.paying)
			promote_sampling(tsk, &list->reader);
	}
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
				    struct folio *folio)
{
	u32 since_ms = promote_now_ms() - list->reader.settled_ms;
	s64 ran_ns = tsk->se.sum_exec_runtime - list->runtime_ns;

	promote_reader_sampled(&list->reader, folio_order(folio));
	if (since_ms >= PROMOTE_WINDOW_MS && ran_ns >= PROMOTE_SETTLE_NS &&
	    promote_task_may_record(tsk) && !list->draining)
		promote_queue_work(tsk);
}

/* Does a task that samples, or has no target, look at this access? */
static bool promote_looks(struct task_struct *tsk, struct folio *folio)
{
	struct promo_list *list = tsk->promo_list;

	if (list && list->reader.sampling) {
		if (!promote_reader_looks(&list->reader))
			return false;
		promote_sample(tsk, list, folio);
		return true;
	}
	if (time_before(jiffies, tsk->promo_paused))
		return false;
	tsk->promo_paused = 0;
	return true;
}

/**
 * __promote_folio_accessed - out of line part of promote_folio_accessed()
 * @folio: a folio of a lower tier that the LRU calls hot
 *
 * Context: Any, see promote_folio_accessed().
 */
void __promote_folio_accessed(struct folio *folio)
{
	struct task_struct *tsk = current;
	struct promote_clock clock;
	u32 now, last;

	if (tsk->promo_paused) {
		if (!promote_looks(tsk, folio))
			return;
		clock = promote_reader_clock(tsk->promo_list);
	} else {
		clock = promote_clock();
	}
	last = (u32)folio_last_cpupid(folio) << PAGE_ACCESS_TIME_BUCKETS;
	now = promote_now_ms();
	/* Most calls end here, before they have touched another cache line. */
	switch (promote_glance(&clock, now, last)) {
	case PROMOTE_RECENT:
		break;
	case PROMOTE_COLD:
		promote_found_cold(tsk, folio, now);
		break;
	default:
		if (!promote_list_waits(tsk->promo_list))
			promote_found_hot(tsk, folio, now, last);
	}
}

/* The time is not 0, which would mean that it does not. */
static void promote_pause(void)
{
	current->promo_paused = (jiffies + PROMOTE_PAUSE) | 1;
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

static void promote_paying_start(struct promo_list *list)
{
	struct promote_reader *reader = &list->reader;

	if (reader->paying)
		return;
	/* Nobody has counted what it has read until now. */
	reader->ran_ns = 0;
	reader->nr_accesses = 0;
	reader->account.demand = 0;
	reader->account.supply_ns = 0;
	reader->paying = true;
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

	promote_paying_start(list);
	promote_reader_settle(reader, mover->nid);
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
	return nr_drained;
}

/* One check for all: no folio is touched in vain. */
static unsigned int promote_drain_refused(struct promo_list *list,
					  enum promote_refusal refusal)
{
	unsigned int nr = list->nr;

	promote_count_refused(refusal, nr);
	promo_list_clear(list);
	list->reader.sampling = false;
	list->reader.paying = false;
	promote_pause();
	return nr;
}

static void promote_drain(struct promo_list *list)
{
	struct promote_reader *reader = &list->reader;
	unsigned int nr_drained = 0;
	struct promote_mover mover;

	list->mapping = NULL;
	promote_mover_start(&mover, reader->must_pay);
	if (mover.nid == NUMA_NO_NODE || !mover.paid)
		reader->paying = false;
	if (mover.nid != NUMA_NO_NODE)
		nr_drained = mover.paid ? promote_drain_paid(&mover, list) :
					  promote_drain_entries(&mover, list);
	/* Without a target, ask about headroom again the next time. */
	reader->must_pay = mover.memcg_full ||
			   (reader->must_pay && !mover.nr_moved &&
			    mover.nid != NUMA_NO_NODE);
	if (mover.nid == NUMA_NO_NODE)
		nr_drained += promote_drain_refused(list, mover.refusal);
	else
		promote_sampling(current, reader);
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

	list->reader.settled_ms = promote_now_ms();
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
	if (list) {
		list->runtime_ns = task_sched_runtime(current);
		list->reader.hot_ms = promote_now_ms();
	}
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
			promote_pause();
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
