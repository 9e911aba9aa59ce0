/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_PROMOTE_TARGET_H
#define _MM_PROMOTE_TARGET_H

#include <linux/nodemask.h>
#include <linux/types.h>

#include "internal.h"

/**
 * struct promote_ask - what is asked of a target node
 * @owner: nodes that the owner of the folio may use, NULL for any
 * @order: order of the folio
 * @paid: the reader pays for what is demoted in exchange
 * @nr_pages: room that is needed
 */
struct promote_ask {
	const nodemask_t *owner;
	unsigned int order;
	bool paid;
	unsigned long nr_pages;
};

unsigned long promote_node_room(int nid, bool paid);
unsigned long promote_node_mark(int nid);
void promote_note_scarcity(int nid, unsigned int order, int ret);
enum promote_refusal promote_check_target(const struct promote_ask *ask,
					  int nid, unsigned long *room);
enum promote_refusal promote_choose_target(const struct promote_ask *ask,
					   int *target, unsigned long *room);

#endif /* _MM_PROMOTE_TARGET_H */
