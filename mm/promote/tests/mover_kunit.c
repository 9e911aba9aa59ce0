// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of the mover with folios in states that last too short, or are
 * too rare, to be caught from user space.
 */
#include <kunit/test.h>
#include <linux/file.h>
#include <linux/memory-tiers.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/sysctl.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../../internal.h"
#include "../internal.h"
#include "../promo_list.h"

/* A file of one page in a lower tier, and what is restored at the end. */
struct mover_test {
	struct file *file;
	unsigned long pfn;
	int numa_balancing_mode;
};

static int lower_node(void)
{
	int nid;

	for_each_node_state(nid, N_MEMORY) {
		if (!node_is_toptier(nid))
			return nid;
	}
	return NUMA_NO_NODE;
}

/* The folio with a reference. */
static struct folio *get_folio(struct mover_test *ctx)
{
	return filemap_get_folio(ctx->file->f_mapping, 0);
}

/* Allocate the folio, and bring it to a node as demotion would. */
static bool place_folio(struct file *file, int nid)
{
	struct folio *folio = shmem_read_folio(file->f_mapping, 0);
	unsigned int nr_moved = 0;
	struct folio_batch fbatch;
	LIST_HEAD(folios);

	if (IS_ERR(folio))
		return false;
	lru_add_drain_all();
	folio_batch_init(&fbatch);
	folio_batch_add(&fbatch, folio);
	if (migrate_misplaced_folios_isolate(&fbatch, &folios))
		migrate_misplaced_folio_batch(&folios, nid, &nr_moved);
	return nr_moved;
}

static void note_access(struct folio *folio)
{
	u32 now = promote_now_ms();

	/* Not the time that reads as unset. */
	if ((now & PAGE_ACCESS_TIME_MASK) == PAGE_ACCESS_TIME_MASK)
		now = 0;
	folio_xchg_access_time(folio, now);
}

static int mover_test_init(struct kunit *test)
{
	struct mover_test *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	struct folio *folio;

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	ctx->numa_balancing_mode = sysctl_numa_balancing_mode;
	test->priv = ctx;
	if (lower_node() == NUMA_NO_NODE)
		kunit_skip(test, "no memory below the top tier");

	sysctl_numa_balancing_mode = NUMA_BALANCING_MEMORY_TIERING;
	ctx->file = shmem_kernel_file_setup("promote_kunit", PAGE_SIZE,
					    EMPTY_VMA_FLAGS);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ctx->file);
	KUNIT_ASSERT_TRUE(test, place_folio(ctx->file, lower_node()));
	folio = get_folio(ctx);
	ctx->pfn = folio_pfn(folio);
	KUNIT_EXPECT_FALSE(test, node_is_toptier(folio_nid(folio)));
	note_access(folio);
	folio_put(folio);
	lru_add_drain_all();
	return 0;
}

static void mover_test_exit(struct kunit *test)
{
	struct mover_test *ctx = test->priv;

	if (!ctx)
		return;
	if (!IS_ERR_OR_NULL(ctx->file))
		fput(ctx->file);
	sysctl_numa_balancing_mode = ctx->numa_balancing_mode;
}

static enum promote_refusal offer_as(struct mover_test *ctx, unsigned int order)
{
	struct promo_entry entry = { .pfn = ctx->pfn, .order = order };
	enum promote_refusal refusal;
	struct promote_mover mover;

	promote_mover_start(&mover, false);
	if (mover.nid == NUMA_NO_NODE)
		return mover.refusal;
	refusal = promote_mover_add(&mover, &entry);
	promote_mover_flush(&mover);
	return refusal;
}

static enum promote_refusal offer(struct mover_test *ctx)
{
	return offer_as(ctx, 0);
}

static bool in_top_tier(struct mover_test *ctx)
{
	struct folio *folio = get_folio(ctx);
	int nid = folio_nid(folio);

	folio_put(folio);
	return node_is_toptier(nid);
}

static void expect_stays(struct kunit *test, enum promote_refusal reason)
{
	KUNIT_EXPECT_EQ(test, offer(test->priv), reason);
	KUNIT_EXPECT_FALSE(test, in_top_tier(test->priv));
}

/* The control: nothing but the state that was tested kept it from moving. */
static void expect_moves(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, offer(test->priv), PROMOTE_ACCEPTED);
	KUNIT_EXPECT_TRUE(test, in_top_tier(test->priv));
}

static void mover_moves(struct kunit *test)
{
	expect_moves(test);
}

static void mover_refuses_locked(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	folio_lock(folio);
	folio_put(folio);
	expect_stays(test, PROMOTE_FAIL_LOCKED);
	folio_unlock(folio);
	expect_moves(test);
}

static void mover_refuses_referenced(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	expect_stays(test, PROMOTE_FAIL_BUSY);
	folio_put(folio);
	expect_moves(test);
}

static void mover_refuses_isolated(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	folio_put(folio);
	expect_stays(test, PROMOTE_FAIL_BUSY);
	folio_putback_lru(folio);
	lru_add_drain_all();
	expect_moves(test);
}

static void put_on_right_list(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	KUNIT_ASSERT_TRUE(test, folio_isolate_lru(folio));
	folio_put(folio);
	folio_putback_lru(folio);
	lru_add_drain_all();
}

static void mover_refuses_unevictable(struct kunit *test)
{
	struct mover_test *ctx = test->priv;

	mapping_set_unevictable(ctx->file->f_mapping);
	put_on_right_list(test);
	expect_stays(test, PROMOTE_FAIL_OTHER);
	mapping_clear_unevictable(ctx->file->f_mapping);
	put_on_right_list(test);
	expect_moves(test);
}

#ifdef CONFIG_MEMORY_FAILURE
static void mover_refuses_hwpoisoned(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	SetPageHWPoison(&folio->page);
	folio_put(folio);
	expect_stays(test, PROMOTE_FAIL_OTHER);
	ClearPageHWPoison(&folio->page);
	expect_moves(test);
}
#endif

/* The folio that was recorded has been freed, and this one has its place. */
static void mover_refuses_another_order(struct kunit *test)
{
	struct mover_test *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, offer_as(ctx, 9), PROMOTE_FAIL_STALE);
	KUNIT_EXPECT_FALSE(test, in_top_tier(ctx));
	expect_moves(test);
}

/* A page that was freed, or moved between tiers, has no time. */
static void mover_refuses_without_time(struct kunit *test)
{
	struct folio *folio = get_folio(test->priv);

	folio_xchg_last_cpupid(folio, -1);
	folio_put(folio);
	expect_stays(test, PROMOTE_FAIL_STALE);
	folio = get_folio(test->priv);
	note_access(folio);
	folio_put(folio);
	expect_moves(test);
}

static void mover_refuses_truncated(struct kunit *test)
{
	struct mover_test *ctx = test->priv;

	shmem_truncate_range(file_inode(ctx->file), 0, -1);
	KUNIT_EXPECT_EQ(test, offer(ctx), PROMOTE_FAIL_STALE);
}

/* The page exists, but the mapping is gone: somebody holds it. */
static void mover_refuses_truncated_and_held(struct kunit *test)
{
	struct mover_test *ctx = test->priv;
	struct folio *folio = get_folio(ctx);

	shmem_truncate_range(file_inode(ctx->file), 0, -1);
	KUNIT_EXPECT_EQ(test, offer(ctx), PROMOTE_FAIL_STALE);
	folio_put(folio);
}

/* Any PFN may be on a list, whatever has become of it. */
static void mover_takes_no_harm(struct kunit *test)
{
	struct mover_test *ctx = test->priv;
	unsigned long start = node_start_pfn(lower_node());
	struct promo_entry entry = { };
	struct promote_mover mover;

	promote_mover_start(&mover, false);
	KUNIT_ASSERT_NE(test, mover.nid, NUMA_NO_NODE);
	for (entry.pfn = start; entry.pfn < start + 4096; entry.pfn++) {
		if (entry.pfn != ctx->pfn)
			KUNIT_EXPECT_NE(test, promote_mover_add(&mover, &entry),
					PROMOTE_ACCEPTED);
	}
	entry.pfn = ULONG_MAX >> PAGE_SHIFT;
	KUNIT_EXPECT_EQ(test, promote_mover_add(&mover, &entry),
			PROMOTE_FAIL_STALE);
	promote_mover_flush(&mover);
}

/* What a folio was refused for is what its counter is called after. */
static void mover_counts_refusals(struct kunit *test)
{
	static const char * const reasons[] = {
		[PROMOTE_FAIL_STALE] = "stale",
		[PROMOTE_FAIL_MAPPED] = "mapped",
		[PROMOTE_FAIL_DIRTY] = "dirty",
		[PROMOTE_FAIL_WRITEBACK] = "writeback",
		[PROMOTE_FAIL_LOCKED] = "locked",
		[PROMOTE_FAIL_BUSY] = "busy",
		[PROMOTE_FAIL_NODE] = "node",
		[PROMOTE_FAIL_CPUSET] = "cpuset",
		[PROMOTE_FAIL_POLICY] = "policy",
		[PROMOTE_FAIL_RATE] = "rate",
		[PROMOTE_FAIL_BUDGET] = "budget",
		[PROMOTE_FAIL_NOMEM] = "nomem",
		[PROMOTE_FAIL_OTHER] = "other",
	};
	enum vm_event_item first = PAGECACHE_PROMOTE_FAIL_STALE;
	const size_t size = NR_VM_EVENT_ITEMS * sizeof(unsigned long);
	unsigned long *before = kunit_kzalloc(test, size, GFP_KERNEL);
	unsigned long *after = kunit_kzalloc(test, size, GFP_KERNEL);
	char name[48];
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(reasons) != PROMOTE_ACCEPTED);
	KUNIT_ASSERT_NOT_NULL(test, before);
	KUNIT_ASSERT_NOT_NULL(test, after);
	all_vm_events(before);
	for (i = 0; i < ARRAY_SIZE(reasons); i++)
		promote_count_refused(i, 1 + i);
	all_vm_events(after);
	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		snprintf(name, sizeof(name), "pagecache_promote_fail_%s",
			 reasons[i]);
		KUNIT_EXPECT_STREQ(test, vm_event_name(first + i), name);
		KUNIT_EXPECT_EQ(test, after[first + i] - before[first + i],
				1 + i);
	}
}

static struct kunit_case mover_test_cases[] = {
	KUNIT_CASE(mover_moves),
	KUNIT_CASE(mover_refuses_locked),
	KUNIT_CASE(mover_refuses_referenced),
	KUNIT_CASE(mover_refuses_isolated),
	KUNIT_CASE(mover_refuses_unevictable),
#ifdef CONFIG_MEMORY_FAILURE
	KUNIT_CASE(mover_refuses_hwpoisoned),
#endif
	KUNIT_CASE(mover_refuses_another_order),
	KUNIT_CASE(mover_refuses_without_time),
	KUNIT_CASE(mover_refuses_truncated),
	KUNIT_CASE(mover_refuses_truncated_and_held),
	KUNIT_CASE(mover_takes_no_harm),
	KUNIT_CASE(mover_counts_refusals),
	{}
};

static struct kunit_suite mover_test_suite = {
	.name = "promote_mover",
	.init = mover_test_init,
	.exit = mover_test_exit,
	.test_cases = mover_test_cases,
};

/* At boot only: it sets what an administrator may set later. */
kunit_test_init_section_suites(&mover_test_suite);
