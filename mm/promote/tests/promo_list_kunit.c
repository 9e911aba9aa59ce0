// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests for the list of hot folios of a task.
 */
#include <kunit/test.h>
#include <linux/hash.h>
#include <linux/log2.h>

#include "../promo_list.h"

#define NOW	1000u

static bool add(struct promo_list *list, unsigned long pfn, unsigned int order,
		u32 now_ms)
{
	if (!promo_list_takes(list, order))
		return false;
	promo_list_add(list, pfn, order, now_ms);
	return true;
}

static int promo_list_test_init(struct kunit *test)
{
	struct promo_list *list = kunit_kzalloc(test, sizeof(*list),
						GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, list);
	test->priv = list;
	return 0;
}

/* More than one round of the ring, in portions that do not divide it. */
#define PORTION	(PROMO_LIST_ENTRIES * 3 / 5)

static void promo_list_keeps_order(struct kunit *test)
{
	struct promo_list *list = test->priv;
	struct promo_entry entry;
	unsigned long in = 1, out = 1;
	int i, round;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < PORTION; i++, in++)
			KUNIT_ASSERT_TRUE(test, add(list, in, 0, NOW + in));
		for (i = 0; i < PORTION; i++, out++) {
			KUNIT_ASSERT_TRUE(test, promo_list_pop(list, &entry));
			KUNIT_EXPECT_EQ(test, entry.pfn, out);
			KUNIT_EXPECT_EQ(test, entry.queued_ms, NOW + out);
			KUNIT_EXPECT_EQ(test, entry.order, 0);
		}
	}
	KUNIT_EXPECT_FALSE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_EQ(test, list->nr, 0);
	KUNIT_EXPECT_EQ(test, list->nr_pages, 0);
}

static void promo_list_full_of_entries(struct kunit *test)
{
	struct promo_list *list = test->priv;
	struct promo_entry entry;
	unsigned long pfn;

	for (pfn = 1; pfn <= PROMO_LIST_ENTRIES; pfn++)
		KUNIT_ASSERT_TRUE(test, add(list, pfn, 0, NOW));
	KUNIT_EXPECT_FALSE(test, add(list, pfn, 0, NOW));
	KUNIT_EXPECT_EQ(test, list->nr, PROMO_LIST_ENTRIES);

	/* What was refused left no trace: it may come when there is room. */
	KUNIT_ASSERT_TRUE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_EQ(test, entry.pfn, 1ul);
	KUNIT_EXPECT_TRUE(test, add(list, pfn, 0, NOW));
}

static void promo_list_full_of_pages(struct kunit *test)
{
	struct promo_list *list = test->priv;
	unsigned int order = ilog2(PROMO_LIST_PAGES);
	struct promo_entry entry;

	KUNIT_EXPECT_TRUE(test, add(list, 1, order - 1, NOW));
	KUNIT_EXPECT_FALSE(test, promo_list_due(list, NOW));
	KUNIT_EXPECT_TRUE(test, add(list, PROMO_LIST_PAGES, order - 1, NOW));
	KUNIT_EXPECT_EQ(test, list->nr_pages, PROMO_LIST_PAGES);
	KUNIT_EXPECT_TRUE(test, promo_list_due(list, NOW));
	KUNIT_EXPECT_FALSE(test, add(list, 2, 0, NOW));

	KUNIT_ASSERT_TRUE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_EQ(test, entry.order, order - 1);
	KUNIT_ASSERT_TRUE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_EQ(test, list->nr_pages, 0);
	KUNIT_EXPECT_TRUE(test, add(list, 3, order, NOW));
}

/* What comes after a folio that finds no room must not be promoted before it */
static void promo_list_closes(struct kunit *test)
{
	struct promo_list *list = test->priv;
	unsigned int order = ilog2(PROMO_LIST_PAGES);
	struct promo_entry entry;

	KUNIT_EXPECT_TRUE(test, add(list, 1, 0, NOW));
	KUNIT_EXPECT_FALSE(test, add(list, PROMO_LIST_PAGES, order, NOW));
	KUNIT_EXPECT_FALSE(test, add(list, 2, 0, NOW));
	KUNIT_EXPECT_TRUE(test, promo_list_due(list, NOW));

	KUNIT_ASSERT_TRUE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_TRUE(test, add(list, PROMO_LIST_PAGES, order, NOW));
}

/* A folio that never fits must not keep others waiting. */
static void promo_list_refuses_huge(struct kunit *test)
{
	struct promo_list *list = test->priv;
	unsigned int order = ilog2(PROMO_LIST_PAGES);

	KUNIT_EXPECT_FALSE(test, add(list, 1, order + 1, NOW));
	KUNIT_EXPECT_TRUE(test, add(list, 1, 0, NOW));
	KUNIT_EXPECT_FALSE(test, add(list, 2, order + 1, NOW));
	KUNIT_EXPECT_FALSE(test, promo_list_due(list, NOW));
	KUNIT_EXPECT_TRUE(test, add(list, 2, 0, NOW));
}

static void promo_list_due_by_age(struct kunit *test)
{
	struct promo_list *list = test->priv;
	u32 due = NOW + PROMO_LIST_DRAIN_MS;

	KUNIT_EXPECT_FALSE(test, promo_list_due(list, due));
	KUNIT_EXPECT_TRUE(test, add(list, 1, 0, NOW));
	KUNIT_EXPECT_TRUE(test, add(list, 2, 0, due));
	KUNIT_EXPECT_FALSE(test, promo_list_due(list, due - 1));
	KUNIT_EXPECT_TRUE(test, promo_list_due(list, due));
}

static void promo_list_age_wraps(struct kunit *test)
{
	struct promo_list *list = test->priv;
	u32 before = U32_MAX - 1;

	KUNIT_EXPECT_TRUE(test, add(list, 1, 0, before));
	KUNIT_EXPECT_FALSE(test, promo_list_due(list, before + 5));
	KUNIT_EXPECT_TRUE(test, promo_list_due(list, before +
					       PROMO_LIST_DRAIN_MS));
}

static void promo_list_clear_forgets(struct kunit *test)
{
	struct promo_list *list = test->priv;
	struct promo_entry entry;

	KUNIT_EXPECT_TRUE(test, add(list, 7, 2, NOW));
	promo_list_clear(list);
	KUNIT_EXPECT_FALSE(test, promo_list_pop(list, &entry));
	KUNIT_EXPECT_EQ(test, list->nr_pages, 0);
	KUNIT_EXPECT_TRUE(test, add(list, 7, 2, NOW));
}

static struct kunit_case promo_list_test_cases[] = {
	KUNIT_CASE(promo_list_keeps_order),
	KUNIT_CASE(promo_list_full_of_entries),
	KUNIT_CASE(promo_list_full_of_pages),
	KUNIT_CASE(promo_list_closes),
	KUNIT_CASE(promo_list_refuses_huge),
	KUNIT_CASE(promo_list_due_by_age),
	KUNIT_CASE(promo_list_age_wraps),
	KUNIT_CASE(promo_list_clear_forgets),
	{}
};

static struct kunit_suite promo_list_test_suite = {
	.name = "promo_list",
	.init = promo_list_test_init,
	.test_cases = promo_list_test_cases,
};

kunit_test_suite(promo_list_test_suite);
