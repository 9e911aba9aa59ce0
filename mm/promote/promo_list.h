/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_PROMOTE_PROMO_LIST_H
#define _MM_PROMOTE_PROMO_LIST_H

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/types.h>

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
 * @draining: the owner is in a drain; what it accesses there is not recorded
 * @retry_ns: time before which no drain is started, after one that left some
 * @credit_ns: time that the owner may spend on promotion
 * @runtime_ns: run time of the owner at the end of the last drain
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
	bool closed;
	bool draining;
	u64 retry_ns;
	s64 credit_ns;
	u64 runtime_ns;
};

/* A page more would cost every reader the next size of allocation. */
static_assert(sizeof(struct promo_list) <= SZ_8K);

bool promo_list_takes(struct promo_list *list, unsigned int order);
void promo_list_add(struct promo_list *list, unsigned long pfn,
		    unsigned int order, u32 now_ms);
bool promo_list_pop(struct promo_list *list, struct promo_entry *entry);
bool promo_list_due(const struct promo_list *list, u32 now_ms);
void promo_list_clear(struct promo_list *list);

#endif /* _MM_PROMOTE_PROMO_LIST_H */
