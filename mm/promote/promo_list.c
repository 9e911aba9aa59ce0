// SPDX-License-Identifier: GPL-2.0
/*
 * The list on which a task remembers hot folios until it returns to user
 * space: a ring, first in, first out, so that folios arrive in the top tier
 * in the order in which they were read.
 */
#include "promo_list.h"

static bool promo_list_full(const struct promo_list *list)
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
bool promo_list_takes(struct promo_list *list, unsigned int order)
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
void promo_list_add(struct promo_list *list, unsigned long pfn,
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
 * promo_list_pop - take the oldest entry
 * @list: the list of the current task
 * @entry: where to put it
 *
 * Return: false if the list is empty.
 */
bool promo_list_pop(struct promo_list *list, struct promo_entry *entry)
{
	if (!list->nr)
		return false;

	entry->pfn = list->pfns[list->head];
	entry->queued_ms = list->queued_ms[list->head];
	entry->order = list->orders[list->head];
	list->head = (list->head + 1) % PROMO_LIST_ENTRIES;
	list->nr--;
	list->nr_pages -= 1U << entry->order;
	list->closed = false;
	return true;
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
bool promo_list_due(const struct promo_list *list, u32 now_ms)
{
	if (!list->nr)
		return false;
	return promo_list_full(list) ||
	       now_ms - list->queued_ms[list->head] >= PROMO_LIST_DRAIN_MS;
}

/**
 * promo_list_clear - forget all entries
 * @list: the list of the current task
 */
void promo_list_clear(struct promo_list *list)
{
	list->nr = 0;
	list->nr_pages = 0;
	list->closed = false;
}
