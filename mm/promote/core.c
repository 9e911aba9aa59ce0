// SPDX-License-Identifier: GPL-2.0
/**
 * DOC: Promotion of unmapped page cache
 *
 * A machine with memory tiers has a top tier, the memory of the nodes with
 * CPUs, and lower tiers that are slower. Demotion and allocation fallback put
 * page cache into the lower tiers. What is mapped comes back: NUMA hint
 * faults find it hot and promote it. What is only read, through read(),
 * splice or io_uring, takes no faults and would stay for ever::
 *
 *      read()                                     return to user space
 *        |                                                 |
 *   folio_mark_accessed()                             task_work
 *        |                                                 |
 *   LRU: hot?  --> clock: hot? --> [ promo_list ] --> still hot, unmapped,
 *                                    of the task      clean, not in use?
 *                                                          |
 *    lower tier  ======= migrate_misplaced_folio_batch() ======>  top tier
 *
 * *Evidence.* The LRU speaks first: the hook sits where folio_mark_accessed()
 * has nothing left to note, since the folio is referenced and active, or its
 * MGLRU reference count is full. The clock speaks second. The cpupid bits of
 * a lower-tier folio hold the time of its last access, as for hint faults. A
 * folio is hot if it is accessed again after at least the gap g and less than
 * the hot threshold T::
 *
 *      g <= t - t_last < T
 *
 * What comes within g is the same burst and leaves t_last alone. Two passes
 * of a reader are needed after the LRU is convinced, so a backup promotes
 * nothing, also with memory to spare.
 *
 * *Record.* folio_mark_accessed() runs under spinlocks and in reclaim. The
 * hook takes no lock and no reference; it notes a PFN on a list of the task.
 * Waiting costs nobody anything: truncation, memory offlining and the exit of
 * the task see no trace. The price is that the drain must expect the PFN to
 * be anything by then.
 *
 * *Drain.* On return to user space the task gets a reference to each folio,
 * checks everything again and moves them, 2 MiB at most, in the order in which
 * they were read. It spends about three quarters of the time on this that it
 * spent on its own work since, so that no pass of a reader takes much more than
 * twice as long. What is left waits, and is forgotten after some seconds.
 *
 * *Room.* The target is the first node of the top tier, in zonelist order
 * from where the reader runs, that the cpuset and the memory policy of the
 * reader and the memory cgroup of the file allow and that has headroom: free
 * memory above the promotion watermark and a margin. kswapd reclaims up to
 * that watermark, and the margin is for what it frees beyond it, so headroom is
 * not memory that demotion has just freed.
 *
 * *Budget.* Without headroom a page can only be exchanged for a colder one. That
 * costs the time to promote p and to demote d, and is worth it only if the page
 * is read often after that, which nobody knows. So a reader may lose only
 * little by it: for a time R in which it ran and read n pages from a lower tier,
 * each of which took longer by the penalty c, its account is credited with::
 *
 *      min(R / 100, n * c / 4)
 *
 * and charged with p + d, as measured, for each page. c follows from the abstract
 * distances of the tiers. The hot threshold of the reader follows the account: it
 * falls while more is found hot than can be paid for, so that the hottest go
 * first, and rises while less is. When the rate of slow accesses rises above its
 * average the working set has shifted, and the reader gets income of later in
 * advance. Each reader has an account of its own, so that who thrashes spends
 * nobody else's credit; what it cannot save up goes to a pool of the node, of
 * which all get equal shares. A reader that pays looks at one access in 16, at
 * random, and counts it for 16: to look at all would cost more than 1 %.
 *
 * The victims are demoted by a worker of the node. It is not reclaim: what cannot
 * be demoted stays, and so does what a cgroup has below memory.low. Without
 * demotion, a target for it, room there, or a victim, there is no promotion
 * without headroom; what is hot stays where it is, no worse than without. The
 * rate limit of NUMA balancing holds for promotion without headroom, of mapped
 * and unmapped pages together. A cgroup at its own limit demotes while the node
 * has headroom: who promotes what is charged to it pays, too.
 *
 * *When the guess is wrong*, a page was moved for nothing: it costs the copy,
 * and memory that was free, or what the budget allows.
 *
 * *What cannot be moved* is tried again once a second at most while it stays
 * hot: a recorded folio is noted as accessed in the future. A node that had no
 * memory for a large folio is not asked for that order or a larger one for 1 to
 * 32 s.
 *
 * Implementation: promote_pagecache_key is on while the feature is enabled
 * *and* NUMA balancing is in memory tiering mode *and* there is memory below
 * the top tier; a machine with one tier pays nothing. pagecache.c records and
 * drains, promo_list.c is the list, target.c chooses the node, mover.c checks,
 * groups and moves, budget.c keeps the accounts and demotes, policy.c decides.
 * task_struct has the list, allocated by the first drain, the task_work, which is
 * apart because it is queued before that, and whether it pauses: for a second
 * after a drain that had no list or no target the task notes nothing, and leaves
 * what is hot to others. A reader that samples pauses between the samples.
 */
#include <linux/init.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/sched/sysctl.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

#include "budget.h"
#include "internal.h"
#include "promo_list.h"

#define CREATE_TRACE_POINTS
#include <trace/events/promote.h>

DEFINE_STATIC_KEY_FALSE(promote_pagecache_key);

/*
 * Serialises promote_enabled and the key. Outside of the hotplug locks, which
 * static_branch_*() takes, and outside of memory_tier_lock.
 */
static DEFINE_MUTEX(promote_key_lock);
static bool promote_enabled;

static bool promote_have_lower_tier(void)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		if (!node_is_toptier(nid))
			return true;
	}
	return false;
}

/**
 * promote_inactive_reason - why nothing is promoted
 *
 * Context: Any; the answer may be outdated at once.
 * Return: the reason for people, NULL if promotion is active.
 */
const char *promote_inactive_reason(void)
{
	if (!READ_ONCE(promote_enabled))
		return "switched off";
	if (!(sysctl_numa_balancing_mode & NUMA_BALANCING_MEMORY_TIERING))
		return "kernel.numa_balancing is not in memory tiering mode";
	if (!promote_have_lower_tier())
		return "no memory below the top tier";
	return NULL;
}

static void promote_update_key(void)
{
	lockdep_assert_held(&promote_key_lock);

	if (promote_inactive_reason())
		static_branch_disable(&promote_pagecache_key);
	else
		static_branch_enable(&promote_pagecache_key);
}

/**
 * promote_is_enabled - state of the switch, not of the key
 *
 * Return: whether promotion is switched on.
 */
bool promote_is_enabled(void)
{
	return READ_ONCE(promote_enabled);
}

/**
 * promote_set_enabled - set the switch
 * @enabled: the state to set
 *
 * Context: Process context, may sleep; takes cpus_read_lock().
 */
void promote_set_enabled(bool enabled)
{
	mutex_lock(&promote_key_lock);
	WRITE_ONCE(promote_enabled, enabled);
	promote_update_key();
	mutex_unlock(&promote_key_lock);
}

/**
 * promote_mode_changed - tell that sysctl_numa_balancing_mode was written
 *
 * Context: Process context, may sleep; takes cpus_read_lock().
 */
void promote_mode_changed(void)
{
	mutex_lock(&promote_key_lock);
	promote_update_key();
	mutex_unlock(&promote_key_lock);
}

static void promote_tiers_workfn(struct work_struct *work)
{
	promote_mode_changed();
}

static DECLARE_WORK(promote_tiers_work, promote_tiers_workfn);

/**
 * promote_tiers_changed - tell that nodes joined or left the top tier
 *
 * Context: Process context. Only schedules work: the callers hold
 * memory_tier_lock and, in either order, the hotplug locks.
 */
void promote_tiers_changed(void)
{
	schedule_work(&promote_tiers_work);
}

/**
 * promote_fork - initialise the fields of a new task
 * @tsk: copy of its parent, not yet running; what was copied is the parent's
 *
 * Nothing is allocated, so a fork that fails has nothing to undo.
 */
void promote_fork(struct task_struct *tsk)
{
	tsk->promo_list = NULL;
	tsk->promo_paused = 0;
	init_task_work(&tsk->promo_work, promote_task_work);
	/* Points to itself while not queued, see promote_queue_work(). */
	tsk->promo_work.next = &tsk->promo_work;
}

/**
 * promote_exit - free what a task holds
 * @tsk: the current task, after exit_task_work()
 *
 * PF_EXITING has stopped the recording.
 */
void promote_exit(struct task_struct *tsk)
{
	struct promo_list *list = tsk->promo_list;

	if (!list)
		return;
	/* Before it is gone: an interrupt may look at it. */
	WRITE_ONCE(tsk->promo_list, NULL);
	promote_reader_exit(&list->reader);
	kfree(list);
}
