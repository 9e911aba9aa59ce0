/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_PROMOTE_PROMO_LIST_H
#define _MM_PROMOTE_PROMO_LIST_H

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "budget.h"

struct address_space;

/* A drain moves no more than what is on the list: 2 MiB. */
#define PROMO_LIST_PAGES	(SZ_2M >> PAGE_SHIFT)
#define PROMO_LIST_ENTRIES	PROMO_LIST_PAGES

/* A partial batch leaves when its oldest entry is this old. */
#define PROMO_LIST_DRAIN_MS	30
/* What has waited longer, and longer than the hot threshold, may be cold. */
#define PROMO_LIST_STALE_MS	5000U

/**
 * struct promo_entry - a folio that was found hot
 * @pfn: first page of the folio; no reference is held, so by now it may be
 * the page of anything
 * @queued_ms: when it was found
 * @order: order of the folio then
 */
struct promo_entry {
	unsigned long pfn;
	u32 queued_ms;
	unsigned int order;
};

/**
 * struct promo_list - the folios that a task has found hot, in order
 * @pfns: ring of entries, as one array for each field of struct promo_entry
 * @queued_ms: the second field
 * @orders: the third
 * @head: index of the oldest entry
 * @nr: number of entries
 * @nr_pages: sum of their pages, at most %PROMO_LIST_PAGES
 * @closed: the next folio has found no room; what comes after it must wait too,
 * or would be promoted before it
 * @nr_waiting: accesses to what may be hot while it was full
 * @mapping: the last one that was found eligible, to compare with
 * @draining: the owner is in a drain; what it accesses there is not recorded
 * @retry_ns: time before which no drain is started, after one that left some
 * @credit_ns: time that the owner may spend on promotion
 * @runtime_ns: run time of the owner at the end of the last drain
 * @reader: what the owner does where there is no headroom
 *
 * Private to the owning task, so without a lock.
 */
struct promo_list {
	unsigned long pfns[PROMO_LIST_ENTRIES];
	u32 queued_ms[PROMO_LIST_ENTRIES];
	u8 orders[PROMO_LIST_ENTRIES];
	unsigned int head;
	unsigned int nr;
	unsigned int nr_pages;
	unsigned int nr_waiting;
	const struct address_space *mapping;
	bool closed;
	bool draining;
	u64 retry_ns;
	s64 credit_ns;
	u64 runtime_ns;
	struct promote_reader reader;
};

/* A page more would cost every reader the next size of allocation. */
static_assert(sizeof(struct promo_list) <= SZ_8K);

static inline bool promo_list_full(const struct promo_list *list)
{
	return list->closed || list->nr_pages == PROMO_LIST_PAGES;
}

/**
 * promo_list_takes - would the list take a folio?
 * @list: the list of the current task
 * @order: order of the folio
 *
 * Return: false if there is no room, in which case the list is full from now
 * on, or if the folio has more than %PROMO_LIST_PAGES pages.
 */
static inline bool promo_list_takes(struct promo_list *list, unsigned int order)
{
	unsigned long nr_pages = 1UL << order;

	if (promo_list_full(list) || nr_pages > PROMO_LIST_PAGES)
		return false;
	list->closed = list->nr_pages + nr_pages > PROMO_LIST_PAGES;
	return !list->closed;
}

/**
 * promo_list_add - append a folio
 * @list: the list of the current task, which takes it
 * @pfn: first page of the folio
 * @order: its order
 * @now_ms: the time
 */
static inline void promo_list_add(struct promo_list *list, unsigned long pfn,
				  unsigned int order, u32 now_ms)
{
	unsigned int tail = (list->head + list->nr) % PROMO_LIST_ENTRIES;

	list->pfns[tail] = pfn;
	list->queued_ms[tail] = now_ms;
	list->orders[tail] = order;
	list->nr++;
	list->nr_pages += 1U << order;
}

/**
 * promo_list_due - is it time for a drain?
 * @list: the list of the current task
 * @now_ms: the time
 *
 * To be asked also when nothing was added, or a last partial batch that is
 * accessed again and again would never leave.
 *
 * Return: true if a batch is full or the oldest entry has waited enough.
 */
static inline bool promo_list_due(const struct promo_list *list, u32 now_ms)
{
	if (!list->nr)
		return false;
	return promo_list_full(list) ||
	       now_ms - list->queued_ms[list->head] >= PROMO_LIST_DRAIN_MS;
}

bool promo_list_pop(struct promo_list *list, struct promo_entry *entry);
void promo_list_clear(struct promo_list *list);

#endif /* _MM_PROMOTE_PROMO_LIST_H */
