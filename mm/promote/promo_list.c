// SPDX-License-Identifier: GPL-2.0
/*
 * The list on which a task remembers hot folios until it returns to user
 * space: a ring, first in, first out, so that folios arrive in the top tier
 * in the order in which they were read.
 */
#include "promo_list.h"

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
 * promo_list_clear - forget all entries
 * @list: the list of the current task
 */
void promo_list_clear(struct promo_list *list)
{
	list->nr = 0;
	list->nr_pages = 0;
	list->closed = false;
}
