/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_PROMOTE_BUDGET_H
#define _MM_PROMOTE_BUDGET_H

#include <linux/numa.h>
#include <linux/types.h>

#include "policy.h"

struct seq_file;

/**
 * struct promote_reader - what a task has and does where there is no headroom
 * @account: what it may spend, and its hot threshold
 * @ran_ns: for how long it ran since its account was settled
 * @nr_accesses: pages of lower tiers that it has read since then
 * @settled_ms: when that was
 * @window: the window in which it last drew from a pool
 * @nid: the node whose pool gets what is left
 * @skip: accesses to skip until the next that is looked at
 * @skipped: what that one stands for
 * @random: state of the choice of @skip
 * @hot_ms: when it last found a folio hot, or began to look
 * @sampling: not each access is looked at
 * @paying: it had to pay at the last drain
 * @must_pay: it has to even where there is headroom
 */
struct promote_reader {
	struct promote_account account;
	u64 ran_ns;
	u64 nr_accesses;
	u32 settled_ms;
	u32 window;
	int nid;
	int skip;
	u32 skipped;
	u32 random;
	u32 hot_ms;
	bool sampling;
	bool paying;
	bool must_pay;
};

/**
 * promote_reader_looks - is this access one of those that are looked at?
 * @reader: a reader that is sampling
 *
 * One in 16 on average, and not at regular distances: a reader goes through its
 * files regularly.
 *
 * Context: Any; an interrupt that comes between costs a sample.
 * Return: true if so.
 */
static inline bool promote_reader_looks(struct promote_reader *reader)
{
	return --reader->skip <= 0;
}

void promote_reader_sampled(struct promote_reader *reader, unsigned int order);
u32 promote_reader_cost(const struct promote_reader *reader);
void promote_reader_settle(struct promote_reader *reader, int nid);
void promote_reader_spend(struct promote_reader *reader, u64 took_ns,
			  unsigned int nr_moved);
void promote_reader_exit(struct promote_reader *reader);

void promote_exchange_ask(int nid, unsigned int nr_pages);
void promote_budget_show(struct seq_file *m);

extern u32 promote_penalty_ns;

#endif /* _MM_PROMOTE_BUDGET_H */
