/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_PROMOTE_INTERNAL_H
#define _MM_PROMOTE_INTERNAL_H

#include <linux/folio_batch.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/promote.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "policy.h"

struct address_space;
struct callback_head;
struct mem_cgroup;
struct promo_entry;
struct task_struct;

/* Why a candidate was not promoted, in the order of the vmstat counters. */
enum promote_refusal {
	PROMOTE_FAIL_STALE,
	PROMOTE_FAIL_MAPPED,
	PROMOTE_FAIL_DIRTY,
	PROMOTE_FAIL_WRITEBACK,
	PROMOTE_FAIL_LOCKED,
	PROMOTE_FAIL_BUSY,
	PROMOTE_FAIL_NODE,
	PROMOTE_FAIL_CPUSET,
	PROMOTE_FAIL_POLICY,
	PROMOTE_FAIL_RATE,
	PROMOTE_FAIL_BUDGET,
	PROMOTE_FAIL_NOMEM,
	PROMOTE_FAIL_OTHER,
	PROMOTE_ACCEPTED,
};

/* Can a page of a full node be exchanged for one that is hotter? */
enum promote_exchange {
	PROMOTE_EXCHANGE_OPEN,
	PROMOTE_EXCHANGE_OFF,
	PROMOTE_EXCHANGE_NO_TARGET,
	PROMOTE_EXCHANGE_HOPELESS,
	PROMOTE_EXCHANGE_FULL,
	PROMOTE_EXCHANGE_NO_VICTIM,
};

enum promote_exchange promote_exchange_state(int nid);

/**
 * struct promote_mover - moves candidates to the top tier in batches
 * @nid: first choice of a target node, %NUMA_NO_NODE if there is none, or none
 * any more
 * @refusal: why there is no target
 * @paid: what is moved has to be paid for
 * @memcg_full: a memory cgroup was at its limit
 * @credit_ns: what is left to pay with
 * @cost_ns: what a page costs
 * @paid_room: pages that @nid had room for when it began, less those accepted
 * @batch_nid: target of the batch, @nid unless the memory cgroup forbids that
 * or it has no room
 * @room: pages that may still be moved to @batch_nid
 * @open: there is a batch, for folios that are like the first in what follows
 * @file_lru: they are on the LRU lists of files, not on those of tmpfs
 * @order: their order
 * @src_nid: their node
 * @accepted: folios with a reference, to be isolated
 * @folios: isolated folios
 * @mapping: the last one found eligible since the last flush, to compare with
 * @memcg: their memory cgroup, referenced until the next flush
 * @nr_folios: number of isolated folios
 * @nr_moved: pages moved so far
 */
struct promote_mover {
	int nid;
	enum promote_refusal refusal;
	bool paid;
	bool memcg_full;
	s64 credit_ns;
	u32 cost_ns;
	unsigned long paid_room;
	int batch_nid;
	unsigned long room;
	bool open;
	bool file_lru;
	unsigned int order;
	int src_nid;
	struct folio_batch accepted;
	struct list_head folios;
	const struct address_space *mapping;
	struct mem_cgroup *memcg;
	unsigned int nr_folios;
	unsigned long nr_moved;
};

/*
 * A batch of this many pages, or one large folio, is moved with one call of
 * migrate_pages() and between two looks at the time. With room for less no drain
 * is started.
 */
#define PROMOTE_BATCH_PAGES	(SZ_512K >> PAGE_SHIFT)

void promote_mover_start(struct promote_mover *mover, bool pays);
bool promote_mover_credit(const struct promote_mover *mover, unsigned int order);
bool promote_mover_pays(const struct promote_mover *mover, unsigned int order);
enum promote_refusal promote_mover_add(struct promote_mover *mover,
				       const struct promo_entry *entry);
void promote_mover_flush(struct promote_mover *mover);
bool promote_mapping_eligible(const struct address_space *mapping);
void promote_count_refused(enum promote_refusal refusal, unsigned long nr);

/* A task without a list, or a target, is left alone for this, in jiffies. */
#define PROMOTE_PAUSE		HZ

extern u32 promote_min_gap_ms;

/* Milliseconds in a tick and in a step of the noted time */
#define PROMOTE_TICK_MS		DIV_ROUND_UP(MSEC_PER_SEC, HZ)
#define PROMOTE_STEP_MS		BIT(PAGE_ACCESS_TIME_BUCKETS)

static inline struct promote_clock promote_clock(void)
{
	return (struct promote_clock) {
		.mask = PAGE_ACCESS_TIME_MASK,
		.slack = PROMOTE_STEP_MS - 1 + PROMOTE_TICK_MS - 1,
		.min_gap = READ_ONCE(promote_min_gap_ms),
		.threshold = READ_ONCE(sysctl_numa_balancing_hot_threshold),
	};
}

void promote_task_work(struct callback_head *work);

#if IS_ENABLED(CONFIG_KUNIT)
bool promote_task_may_record(struct task_struct *tsk);
void promote_found_hot(struct task_struct *tsk, struct folio *folio, u32 now,
		       u32 last);
void promote_queue_work(struct task_struct *tsk);
#endif

bool promote_is_enabled(void);
void promote_set_enabled(bool enabled);
const char *promote_inactive_reason(void);

static inline u32 promote_now_ms(void)
{
	return jiffies_to_msecs(jiffies);
}

#endif /* _MM_PROMOTE_INTERNAL_H */
