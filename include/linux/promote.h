/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Promotion of unmapped page cache, see mm/promote/core.c.
 */
#ifndef _LINUX_PROMOTE_H
#define _LINUX_PROMOTE_H

struct folio;
struct task_struct;

#ifdef CONFIG_PAGECACHE_PROMOTION

#include <linux/jump_label.h>
#include <linux/memory-tiers.h>
#include <linux/mm.h>

DECLARE_STATIC_KEY_FALSE(promote_pagecache_key);

void __promote_folio_accessed(struct folio *folio);

/**
 * promote_folio_accessed - note an access to a folio that the LRU calls hot
 * @folio: the folio, referenced by the caller
 *
 * To be called where the LRU has no further state for an accessed folio: it
 * is referenced and active, or its MGLRU reference count is full.
 *
 * Context: Any; takes no lock and no reference, does not allocate or sleep.
 * A NOP unless promotion is active, one load and a branch for a folio in the
 * top tier.
 */
static __always_inline void promote_folio_accessed(struct folio *folio)
{
	if (static_branch_unlikely(&promote_pagecache_key) &&
	    !node_is_toptier(folio_nid(folio)))
		__promote_folio_accessed(folio);
}

void promote_fork(struct task_struct *tsk);
void promote_exit(struct task_struct *tsk);
void promote_mode_changed(void);
void promote_tiers_changed(void);

#else /* !CONFIG_PAGECACHE_PROMOTION */

static inline void promote_folio_accessed(struct folio *folio)
{
}

static inline void promote_fork(struct task_struct *tsk)
{
}

static inline void promote_exit(struct task_struct *tsk)
{
}

static inline void promote_mode_changed(void)
{
}

static inline void promote_tiers_changed(void)
{
}

#endif /* CONFIG_PAGECACHE_PROMOTION */
#endif /* _LINUX_PROMOTE_H */
