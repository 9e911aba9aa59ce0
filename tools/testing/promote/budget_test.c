// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of mm/promote/policy.c, which is compiled as it is: what decides where
 * there is no headroom.
 */
#include "check.h"
#include "policy.h"

/* What an account and a pool hold, and what they may owe. */
#define ACCOUNT_MAX	(2 * MS)
#define OVERDRAFT	(10 * MS)
#define POOL_MAX	(10 * MS)
#define ADVANCE_MAX	(40 * MS)
#define COST		8800U

static void test_income(void)
{
	check(promote_income(1 << 20, 1000, 1000) == 8192 + 2048,
	      "income: 1 % of the time, and no more");
	check(promote_income(1 << 30, 1000, 1001) == 250250,
	      "income: a quarter of the penalty, if that is less");
	check(promote_income(1 << 30, 0, 1000) == 0,
	      "income: none who reads nothing from a lower tier");
	check(promote_income(1 << 30, 1000, 0) == 0,
	      "income: none where no tier is slower");
	check(promote_income(0, 1000, 1000) == 0,
	      "income: none who did not run");
	check(promote_income(1 << 20, 3, 1) == 0,
	      "income: what is less than a ns is nothing");
	check(promote_income(UINT64_MAX, UINT64_MAX, UINT32_MAX) == POOL_MAX,
	      "income: the largest is what a pool holds");
	check(promote_income(1ULL << 40, 1ULL << 62, 4) == POOL_MAX &&
	      promote_income(1ULL << 40, 1ULL << 32, 1) == POOL_MAX,
	      "income: more accesses than 32 bits are not few");
}

/* What a reader got in the last of some steps of 10 ms, each with an income. */
static s64 advance(struct promote_account *account, u32 nr_steps,
		   u32 nr_accesses)
{
	s64 got = 0;

	while (nr_steps--)
		got = promote_account_advance(account, 1000, 10 * MS,
					      nr_accesses);
	return got;
}

static void test_advance(void)
{
	struct promote_account account = { .credit_ns = 7 };

	check(advance(&account, 40, 100) == 1000 &&
	      advance(&account, 1, 1000) == 1000 && !account.advance_ns,
	      "advance: none as long as little is known");
	account = (struct promote_account) { };
	advance(&account, 49, 100);
	check(advance(&account, 1, 1000) == 1000 && !account.advance_ns,
	      "advance: none just before half a second");
	account = (struct promote_account) { };
	advance(&account, 50, 100);
	check(advance(&account, 1, 1000) == 2000,
	      "advance: from half a second on");
	account = (struct promote_account) { .credit_ns = 7 };
	check(advance(&account, 800, 100) == 1000 &&
	      advance(&account, 1, 123) == 1000 && !account.advance_ns,
	      "advance: none for less than a quarter more");
	check(advance(&account, 1, 128) == 2000 && account.advance_ns == 1000,
	      "advance: as much again for more");
	check(promote_account_advance(&account, 1600, 10 * MS, 50) == 1500 &&
	      account.advance_ns == 900,
	      "advance: is paid back with a sixteenth of the income");
	check(advance(&account, 15, 100) == 1000 - (900 - 14 * 62) &&
	      !account.advance_ns,
	      "advance: no more than it was");
	check(advance(&account, 1, 100) == 1000, "advance: and then no more");
	check(advance(&account, 200, 200) == 2000 &&
	      advance(&account, 1000, 200) < 2000,
	      "advance: for some seconds, not for ever");
	check(account.credit_ns == 7 && !account.supply_ns && !account.demand,
	      "advance: leaves the rest alone");
}

static void test_advance_limits(void)
{
	struct promote_account account = { };

	advance(&account, 100, 0);
	check(advance(&account, 1, 0) == 1000 &&
	      advance(&account, 1, 1) == 2000, "advance: more than nothing");
	check(promote_account_advance(&account, 0, 0, 0) == 0 &&
	      promote_account_advance(&account, 0, 10 * MS, 9999) == 0,
	      "advance: nothing on nothing");
	account.advance_ns = ADVANCE_MAX - 10;
	check(advance(&account, 1, 10000) == 1010 &&
	      account.advance_ns == ADVANCE_MAX &&
	      advance(&account, 1, 100000) == 1000,
	      "advance: no more than the most");
}

static void test_advance_overflow(void)
{
	struct promote_account account = { };
	bool sane = true;
	s64 got = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		got += promote_account_advance(&account, 1000, UINT64_MAX,
					       UINT64_MAX);
		sane &= account.past_ns <= 8000 * MS &&
			account.past_accesses < 1ULL << 33;
	}
	check(sane && !account.advance_ns,
	      "advance: the most at a time is steady too");
	check(advance(&account, 1, 0) == 1000 &&
	      promote_account_advance(&account, 1000, MS, UINT64_MAX) == 2000 &&
	      promote_account_advance(&account, 1000, MS, 1ULL << 32) == 2000,
	      "advance: the most in a short time is more");
}

/* However its rate changes, a reader gets its income, earlier at most. */
static void test_advance_conserves(void)
{
	struct promote_account account = { };
	s64 income, earned = 0, got = 0;
	bool sane = true;
	u32 i;

	for (i = 0; i < 100000; i++) {
		income = i * 2654435761U % 200000;
		earned += income;
		got += promote_account_advance(&account, income, 10 * MS,
					       i * 2654435761U % (i / 99 + 9));
		sane &= got == earned + account.advance_ns &&
			account.advance_ns >= 0 &&
			account.advance_ns <= ADVANCE_MAX;
	}
	check(sane, "advance: nobody gets more than the income, in the end");
}

static void test_earn(void)
{
	struct promote_account account = { .credit_ns = -MS };

	check(promote_account_earn(&account, MS / 2) == 0 &&
	      account.credit_ns == -MS / 2, "earn: pays back a debt first");
	check(promote_account_earn(&account, 2 * MS) == 0 &&
	      account.credit_ns == 3 * MS / 2, "earn: saves the rest");
	check(promote_account_earn(&account, MS / 2) == 0 &&
	      account.credit_ns == ACCOUNT_MAX, "earn: up to the most");
	check(promote_account_earn(&account, 3) == 3 &&
	      account.credit_ns == ACCOUNT_MAX, "earn: what is above is left");
	check(account.supply_ns == 3 * MS + 3 + 3,
	      "earn: all of it counts as supply, what is left twice");
	check(promote_account_earn(&account, 0) == 0,
	      "earn: nothing is left of nothing");
	check(account.demand == 0 && account.threshold_ms == 0,
	      "earn: leaves the rest alone");
}

static void test_credit_pages(void)
{
	check(promote_credit_pages(3 * COST - 1, COST) == 2 &&
	      promote_credit_pages(3 * COST, COST) == 3,
	      "pages: what is paid in full");
	check(promote_credit_pages(0, 1) == 0 &&
	      promote_credit_pages(-1, 1) == 0 &&
	      promote_credit_pages(INT64_MIN, 1) == 0,
	      "pages: none without credit, nor in debt");
	check(promote_credit_pages(INT64_MAX, COST) == ACCOUNT_MAX / COST,
	      "pages: no more than an account pays for");
	check(promote_credit_pages((1LL << 32) + 1, 1) == ACCOUNT_MAX,
	      "pages: more credit than 32 bits is not little");
	check(promote_credit_pages(MS, UINT32_MAX) == 0,
	      "pages: none of the dearest");
}

static void test_credit_pays(void)
{
	check(promote_credit_pays(COST, COST, 1) &&
	      !promote_credit_pays(COST - 1, COST, 1), "pays: for a page");
	check(promote_credit_pays(16 * COST, COST, 16) &&
	      !promote_credit_pays(16 * COST - 1, COST, 16),
	      "pays: for each page of a folio");
	check(!promote_credit_pays(0, COST, 1) &&
	      !promote_credit_pays(-MS, COST, 1) &&
	      !promote_credit_pays(INT64_MIN, COST, 512),
	      "pays: not without credit, nor in debt");
	check(promote_credit_pays(MS, COST, 512) &&
	      !promote_credit_pays(MS - 1, COST, 512),
	      "pays: for a large folio, with half of what can be saved");
	check(!promote_credit_pays(MS - 1, 1 << 23, 512) &&
	      !promote_credit_pays(MS - 1, UINT32_MAX, 1 << 18),
	      "pays: a price of more than 32 bits is not low");
}

static void test_spend(void)
{
	struct promote_account account = { .credit_ns = MS, .supply_ns = 7,
					   .demand = 5, .threshold_ms = 3 };

	promote_account_spend(&account, 0);
	check(account.credit_ns == MS, "spend: nothing");
	promote_account_spend(&account, MS / 4);
	check(account.credit_ns == 3 * MS / 4, "spend: what was spent");
	promote_account_spend(&account, 3 * MS);
	check(account.credit_ns == -9 * MS / 4, "spend: may leave a debt");
	promote_account_spend(&account, 8 * MS);
	check(account.credit_ns == -OVERDRAFT, "spend: that is bounded");
	promote_account_spend(&account, UINT64_MAX);
	check(account.credit_ns == -OVERDRAFT, "spend: does not overflow");
	account.credit_ns = ACCOUNT_MAX;
	promote_account_spend(&account, 1ULL << 63);
	check(account.credit_ns == -OVERDRAFT,
	      "spend: what is negative when signed is not earned");
	account.credit_ns = ACCOUNT_MAX;
	promote_account_spend(&account, UINT64_MAX);
	check(account.credit_ns == -OVERDRAFT,
	      "spend: the most takes all, however much there is");
	check(account.supply_ns == 7 && account.demand == 5 &&
	      account.threshold_ms == 3, "spend: leaves the rest alone");
}

static struct promote_range range_of(u32 mask, u32 min_gap, u32 slack,
				     u32 threshold)
{
	const struct promote_clock clock = {
		.mask = mask,
		.min_gap = min_gap,
		.slack = slack,
		.threshold = threshold,
	};

	return promote_threshold_range(&clock);
}

static bool is_range(struct promote_range range, u32 min, u32 max)
{
	return range.min == min && range.max == max;
}

static void test_range(void)
{
	const u32 fine = (1 << 21) - 1, coarse = 0xfff0;

	check(is_range(range_of(fine, 16, 3, 1000), 39, 256000),
	      "range: from twice the gap, to 256 times the one that is set");
	check(is_range(range_of(coarse, 16, 15, 1000), 63, coarse / 4),
	      "range: to a quarter of what the clock can tell");
	check(is_range(range_of(fine, 16, 0, UINT32_MAX), 33, fine / 4) &&
	      is_range(range_of(fine, 16, 0, (1 << 24) + 1), 33, fine / 4),
	      "range: one that is set too high does not wrap around");
	check(is_range(range_of(fine, 16, 0, 0), 33, 33) &&
	      is_range(range_of(fine, 0, 7, 0), 15, 15),
	      "range: one that is set too low leaves one");
	check(is_range(range_of(fine, 0, 0, 1000), 1, 256000),
	      "range: is never 0, which would not be known");
}

static const struct promote_range wide = { .min = 32, .max = 32000 };

/* The threshold that follows from one, for a supply in prices of a page. */
static u32 follow(u32 threshold_ms, u32 demand, u32 supply,
		  const struct promote_range *range)
{
	struct promote_account account = {
		.threshold_ms = threshold_ms,
		.demand = demand,
		.supply_ns = (u64)supply * COST,
	};

	promote_account_follow(&account, COST, range);
	return account.threshold_ms;
}

static void test_follow(void)
{
	check(follow(800, 20, 18, &wide) == 800 - 101,
	      "follow: down by an eighth if more is found");
	check(follow(800, 18, 20, &wide) == 800 + 101,
	      "follow: up by an eighth if less is found");
	check(follow(800, 20, 20, &wide) > 800,
	      "follow: up if it can be paid for");
	check(follow(800, 41, 20, &wide) == 800 - 202 &&
	      follow(800, 40, 20, &wide) == 800 - 101,
	      "follow: down by a quarter if more than twice as much is found");
	check(follow(800, 19, 40, &wide) == 800 + 202 &&
	      follow(800, 20, 40, &wide) == 800 + 101,
	      "follow: up by a quarter if less than half of it is found");
	check(follow(800, 16, 0, &wide) < 800 &&
	      follow(800, 0, 16, &wide) > 800,
	      "follow: judges by one of them");
	check(follow(800, 15, 0, &wide) == 800 &&
	      follow(800, 0, 15, &wide) == 800 &&
	      follow(800, 15, 15, &wide) == 800,
	      "follow: does not judge by a few pages");
	check(follow(800, UINT32_MAX, 20, &wide) == 800 - 202 &&
	      follow(800, 1U << 31, 20, &wide) == 800 - 202 &&
	      follow(800, 20, UINT32_MAX, &wide) == 800 + 202,
	      "follow: the largest do not overflow");
}

static void test_follow_range(void)
{
	const struct promote_range tiny = { .min = 1, .max = 32000 };

	check(follow(34, 100, 20, &wide) == 32 &&
	      follow(32, 100, 20, &wide) == 32, "follow: not below the lowest");
	check(follow(2, 100, 20, &tiny) == 1 && follow(1, 100, 20, &tiny) == 1,
	      "follow: the lowest is not passed by");
	check(follow(31000, 0, 20, &wide) == 32000 &&
	      follow(32000, 0, 20, &wide) == 32000,
	      "follow: not above the highest");
	check(follow(100000, 0, 20, &wide) == 32000 &&
	      follow(100000, 100, 20, &wide) == 32000 &&
	      follow(5, 0, 20, &wide) == 32,
	      "follow: into the range when that has changed");
}

/* What was judged by is used up; what is too little waits for more. */
static void test_follow_evidence(void)
{
	struct promote_account account = { .threshold_ms = 800, .demand = 15,
					   .credit_ns = 77 };

	account.supply_ns = 16 * COST - 1;
	promote_account_follow(&account, COST, &wide);
	check(account.demand == 15 && account.supply_ns == 16 * COST - 1,
	      "follow: keeps what is too little");
	account.supply_ns++;
	promote_account_follow(&account, COST, &wide);
	check(!account.demand && !account.supply_ns &&
	      account.threshold_ms > 800, "follow: uses up what is enough");
	check(account.credit_ns == 77, "follow: leaves the credit alone");
}

/* From either end to where supply meets demand, and it stays there. */
static void test_follow_settles(void)
{
	bool settles = true;
	u32 starts[] = { 32, 32000 };
	u32 threshold;
	int i, round;

	for (i = 0; i < 2; i++) {
		threshold = starts[i];
		for (round = 0; round < 80; round++) {
			threshold = follow(threshold, threshold / 20, 100,
					   &wide);
			if (round >= 40)
				settles &= threshold > 1600 && threshold < 2500;
		}
	}
	check(settles, "follow: settles where as much is found as is paid for");
}

static void test_cost(void)
{
	bool settles = true;
	u32 cost, start;
	int i;

	check(promote_cost_learn(4000, 1000000, 0) == 4000,
	      "cost: nothing is learnt from nothing");
	check(promote_cost_learn(4000, 4800 * 10, 10) == 4100,
	      "cost: an eighth of the way up");
	check(promote_cost_learn(4000, 3200 * 10, 10) == 3900,
	      "cost: an eighth of the way down");
	check(promote_cost_learn(4000, UINT64_MAX, 1) == 3500 + 12500 &&
	      promote_cost_learn(4000, 1ULL << 32, 1) == 3500 + 12500,
	      "cost: never found to be more than 0.1 ms");
	check(promote_cost_learn(4000, 0, 1) == 3500 + 12 &&
	      promote_cost_learn(4000, 1, UINT32_MAX) == 3500 + 12,
	      "cost: never found to be nothing");

	for (start = 1; start < 200000; start += 199) {
		for (cost = start, i = 0; i < 100; i++)
			cost = promote_cost_learn(cost, 44000, 10);
		settles &= cost >= 4400 && cost < 4408;
	}
	check(settles, "cost: settles at what is found");
	for (cost = 1, i = 0; i < 100; i++)
		cost = promote_cost_learn(cost, 0, 1);
	check(cost >= 90, "cost: settles above 0");
}

static void test_pool_add(void)
{
	struct promote_pool pool = { };

	promote_pool_add(&pool, 3 * MS);
	promote_pool_add(&pool, -5 * MS);
	check(pool.credit_ns == -2 * MS, "pool: takes and gives, to a debt");
	promote_pool_add(&pool, 12 * MS);
	check(pool.credit_ns == POOL_MAX, "pool: holds so much");
	promote_pool_add(&pool, MS);
	check(pool.credit_ns == POOL_MAX, "pool: and no more");
	promote_pool_add(&pool, -1000 * MS);
	check(pool.credit_ns == -POOL_MAX, "pool: owes no more than that");
}

static void test_pool_draw(void)
{
	struct promote_pool pool = { .credit_ns = 4 * MS };
	u32 last = 0;

	check(promote_pool_draw(&pool, MS, 50099, &last) == MS &&
	      pool.credit_ns == 3 * MS, "draw: what is wanted");
	check(promote_pool_draw(&pool, MS, 50099, &last) == 0 &&
	      pool.credit_ns == 3 * MS, "draw: once in a window");
	check(promote_pool_draw(&pool, 9 * MS, 50100, &last) == 3 * MS &&
	      pool.credit_ns == 0, "draw: what there is");
	check(promote_pool_draw(&pool, MS, 50200, &last) == 0 &&
	      pool.credit_ns == 0, "draw: nothing of nothing");
	promote_pool_add(&pool, -MS);
	check(promote_pool_draw(&pool, MS, 50300, &last) == 0 &&
	      pool.credit_ns == -MS, "draw: nothing of a debt");
	promote_pool_add(&pool, 9 * MS);
	check(promote_pool_draw(&pool, 0, 50400, &last) == 0 &&
	      promote_pool_draw(&pool, -MS, 50500, &last) == 0 &&
	      pool.credit_ns == 8 * MS, "draw: nothing if nothing is wanted");
}

/* The number of the window comes from a time that wraps. */
static void test_pool_wrap(void)
{
	struct promote_pool pool = { .credit_ns = 4 * MS };
	u32 a = 0, b = 0;

	check(promote_pool_draw(&pool, MS, UINT32_MAX, &a) == MS &&
	      promote_pool_draw(&pool, MS, UINT32_MAX, &b) == MS,
	      "draw: just before the time wraps");
	check(promote_pool_draw(&pool, 4 * MS, 0, &a) == MS &&
	      promote_pool_draw(&pool, MS, 99, &a) == 0 &&
	      promote_pool_draw(&pool, MS, 100, &a) == MS,
	      "draw: after it, a share of what is left");
}

static void test_pool_share(void)
{
	struct promote_pool pool = { .credit_ns = 6 * MS };
	u32 a = 0, b = 0, c = 0;
	s64 got;

	got = promote_pool_draw(&pool, 10 * MS, 1000, &a);
	check(got == 6 * MS, "share: all for the only one so far");
	check(promote_pool_draw(&pool, 10 * MS, 1001, &b) == 0 &&
	      promote_pool_draw(&pool, 10 * MS, 1002, &c) == 0,
	      "share: nothing for who comes later");
	promote_pool_add(&pool, 6 * MS);
	got = promote_pool_draw(&pool, 10 * MS, 1100, &c);
	got += promote_pool_draw(&pool, 10 * MS, 1101, &a);
	got += promote_pool_draw(&pool, 10 * MS, 1102, &b);
	check(got == 6 * MS && pool.credit_ns == 0,
	      "share: a third each in the next window");
	promote_pool_add(&pool, 6 * MS);
	check(promote_pool_draw(&pool, 10 * MS, 1200, &a) == 2 * MS &&
	      promote_pool_draw(&pool, 10 * MS, 1299, &a) == 0 &&
	      pool.credit_ns == 4 * MS, "share: no more than that");
	check(promote_pool_draw(&pool, 10 * MS, 1300, &a) == 4 * MS,
	      "share: all when the others are gone");
}

/* What comes in during a window is for the next one. */
static void test_pool_late(void)
{
	struct promote_pool pool = { .credit_ns = MS };
	u32 a = 0, b = 0;

	promote_pool_draw(&pool, MS / 2, 1000, &a);
	promote_pool_add(&pool, 6 * MS);
	check(promote_pool_draw(&pool, 10 * MS, 1050, &b) == MS,
	      "share: as large as when the window began");
	promote_pool_add(&pool, -7 * MS);
	a = 0;
	check(promote_pool_draw(&pool, 10 * MS, 1060, &a) == 0,
	      "share: not what somebody else has taken since");
	promote_pool_draw(&pool, MS, 1100, &a);
	promote_pool_add(&pool, 9 * MS);
	check(promote_pool_draw(&pool, MS, 1150, &b) == 0,
	      "share: nothing if there was a debt when the window began");
}

/* However they come, readers do not get more than there was. */
static void test_pool_conserves(void)
{
	struct promote_pool pool = { };
	s64 given = 0, drawn = 0;
	u32 last[7] = { };
	bool sane = true;
	u32 now;

	for (now = 1000; now < 60000; now += 3) {
		s64 part = now * 2654435761U % 20000;

		promote_pool_add(&pool, part);
		given += part;
		drawn += promote_pool_draw(&pool, now % 7 * MS / 4, now,
					   &last[now % 7]);
		sane &= pool.credit_ns >= 0 && pool.credit_ns < POOL_MAX &&
			given == drawn + pool.credit_ns;
	}
	check(sane && drawn > given / 2,
	      "share: what is given is drawn, and no more");
}

/* The pool fills an account, and that is income. */
static void test_account_draw(void)
{
	struct promote_account account = { };
	struct promote_pool pool = { };
	u32 window = 0;

	promote_pool_add(&pool, 5 * MS);
	promote_account_draw(&account, &pool, 1000, &window);
	check(account.credit_ns == 2 * MS && account.supply_ns == 2 * MS &&
	      pool.credit_ns == 3 * MS, "draw: up to what an account holds");
	promote_account_draw(&account, &pool, 2000, &window);
	check(account.credit_ns == 2 * MS && pool.credit_ns == 3 * MS,
	      "draw: nothing for who has enough");
	promote_account_spend(&account, 6 * MS);
	promote_account_draw(&account, &pool, 3000, &window);
	check(account.credit_ns == -MS && !pool.credit_ns,
	      "draw: also to pay a debt");
	check(account.supply_ns == 5 * MS, "draw: all of it counts as supply");
}

int main(void)
{
	test_income();
	test_advance();
	test_advance_limits();
	test_advance_overflow();
	test_advance_conserves();
	test_earn();
	test_credit_pages();
	test_credit_pays();
	test_spend();
	test_range();
	test_follow();
	test_follow_range();
	test_follow_evidence();
	test_follow_settles();
	test_cost();
	test_pool_add();
	test_pool_draw();
	test_pool_wrap();
	test_pool_share();
	test_pool_late();
	test_pool_conserves();
	test_account_draw();
	return check_end();
}
