// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of who records: contexts that a test in user space cannot create,
 * and a task that takes no work any more.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "../internal.h"
#include "../promo_list.h"

static struct task_struct *reader(struct kunit *test)
{
	struct task_struct *tsk = kunit_kzalloc(test, sizeof(*tsk), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, tsk);
	tsk->prio = DEFAULT_PRIO;
	return tsk;
}

static void record_only_for_readers(struct kunit *test)
{
	static const unsigned int flags[] = {
		PF_EXITING, PF_MEMALLOC, PF_KTHREAD,
	};
	struct task_struct *tsk = reader(test);
	int i;

	KUNIT_EXPECT_TRUE(test, promote_task_may_record(tsk));
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		tsk->flags = flags[i];
		KUNIT_EXPECT_FALSE(test, promote_task_may_record(tsk));
	}
	/* They run task_work like any other task. */
	tsk->flags = PF_IO_WORKER | PF_USER_WORKER;
	KUNIT_EXPECT_TRUE(test, promote_task_may_record(tsk));
}

struct record_from_irq {
	struct irq_work work;
	struct task_struct *tsk;
	bool may_record;
};

static void record_irq_work(struct irq_work *work)
{
	struct record_from_irq *irq = container_of(work, struct record_from_irq,
						   work);

	irq->may_record = promote_task_may_record(irq->tsk);
}

static void record_not_in_interrupts(struct kunit *test)
{
	struct record_from_irq irq = {
		.work = IRQ_WORK_INIT_HARD(record_irq_work),
		.tsk = reader(test),
		.may_record = true,
	};

	irq_work_queue(&irq.work);
	irq_work_sync(&irq.work);
	KUNIT_EXPECT_FALSE(test, irq.may_record);
}

static int record_wait(void *unused)
{
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* Refused work is not taken for queued: nothing is left that waits for it. */
static void record_survives_refused_work(struct kunit *test)
{
	struct task_struct *tsk = kthread_run(record_wait, NULL, "promote_test");
	struct callback_head work;
	int tries;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tsk);
	get_task_struct(tsk);
	kthread_stop(tsk);
	for (tries = 0; !READ_ONCE(tsk->exit_state) && tries < 100; tries++)
		msleep(20);

	init_task_work(&work, NULL);
	KUNIT_EXPECT_EQ(test, task_work_add(tsk, &work, TWA_NONE), -ESRCH);
	KUNIT_EXPECT_PTR_EQ(test, tsk->promo_work.next, &tsk->promo_work);
	promote_queue_work(tsk);
	KUNIT_EXPECT_PTR_EQ(test, tsk->promo_work.next, &tsk->promo_work);
	put_task_struct(tsk);
}

static int record_read_folio(struct file *file, struct folio *folio)
{
	return -EIO;
}

static const struct address_space_operations record_file_aops = {
	.read_folio = record_read_folio,
};

/* What file systems have for their metadata. */
static const struct address_space_operations record_other_aops = {
};

/* A folio of a file, hot for a task that has a list. */
struct hot_folio {
	struct task_struct *tsk;
	struct folio *folio;
	u32 last;
	struct address_space mapping;
	struct inode inode;
};

static struct hot_folio *hot_folio(struct kunit *test)
{
	struct hot_folio *hot = kunit_kzalloc(test, sizeof(*hot), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, hot);
	hot->tsk = reader(test);
	hot->tsk->promo_list = kunit_kzalloc(test, sizeof(*hot->tsk->promo_list),
					     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, hot->tsk->promo_list);
	hot->inode.i_mode = S_IFREG;
	hot->mapping.host = &hot->inode;
	hot->mapping.a_ops = &record_file_aops;
	hot->folio = folio_alloc(GFP_KERNEL, 0);
	KUNIT_ASSERT_NOT_NULL(test, hot->folio);
	hot->folio->mapping = &hot->mapping;
	hot->last = promote_now_ms() - 2 * promote_min_gap_ms;
	folio_xchg_access_time(hot->folio, hot->last);
	return hot;
}

static void free_hot_folio(struct hot_folio *hot)
{
	hot->folio->mapping = NULL;
	folio_put(hot->folio);
}

static u32 noted_time(struct folio *folio)
{
	return (u32)folio_last_cpupid(folio) << PAGE_ACCESS_TIME_BUCKETS;
}

/* As __promote_folio_accessed() does it. */
static void access_again(struct hot_folio *hot)
{
	promote_found_hot(hot->tsk, hot->folio,
			  hot->last + 2 * promote_min_gap_ms,
			  noted_time(hot->folio));
}

/* What is not recorded keeps its time, to be found hot again. */
static void expect_not_recorded(struct kunit *test, struct hot_folio *hot)
{
	u32 noted = noted_time(hot->folio);

	access_again(hot);
	KUNIT_EXPECT_EQ(test, hot->tsk->promo_list->nr, 0);
	KUNIT_EXPECT_EQ(test, noted_time(hot->folio), noted);
}

static void expect_recorded(struct kunit *test, struct hot_folio *hot)
{
	u32 noted = noted_time(hot->folio);

	access_again(hot);
	KUNIT_EXPECT_EQ(test, hot->tsk->promo_list->nr, 1);
	KUNIT_EXPECT_NE(test, noted_time(hot->folio), noted);
}

/* A real-time task may not be delayed by a drain. */
static void record_not_for_real_time(struct kunit *test)
{
	struct hot_folio *hot = hot_folio(test);

	hot->tsk->prio = MAX_RT_PRIO - 1;
	expect_not_recorded(test, hot);
	hot->tsk->prio = DEFAULT_PRIO;
	expect_recorded(test, hot);
	free_hot_folio(hot);
}

/* What a drain itself accesses, in reclaim for example. */
static void record_not_while_draining(struct kunit *test)
{
	struct hot_folio *hot = hot_folio(test);

	hot->tsk->promo_list->draining = true;
	expect_not_recorded(test, hot);
	hot->tsk->promo_list->draining = false;
	expect_recorded(test, hot);
	free_hot_folio(hot);
}

static void record_not_what_is_no_file(struct kunit *test)
{
	struct hot_folio *hot = hot_folio(test);

	hot->inode.i_mode = S_IFBLK;
	expect_not_recorded(test, hot);
	hot->inode.i_mode = S_IFREG;
	hot->mapping.a_ops = &record_other_aops;
	expect_not_recorded(test, hot);
	hot->mapping.a_ops = &record_file_aops;
	expect_recorded(test, hot);
	free_hot_folio(hot);
}

static struct kunit_case record_test_cases[] = {
	KUNIT_CASE(record_only_for_readers),
	KUNIT_CASE(record_not_in_interrupts),
	KUNIT_CASE(record_survives_refused_work),
	KUNIT_CASE(record_not_for_real_time),
	KUNIT_CASE(record_not_while_draining),
	KUNIT_CASE(record_not_what_is_no_file),
	{}
};

static struct kunit_suite record_test_suite = {
	.name = "promote_record",
	.test_cases = record_test_cases,
};

kunit_test_suite(record_test_suite);
