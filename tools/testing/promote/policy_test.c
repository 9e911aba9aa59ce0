// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of mm/promote/policy.c, which is compiled as it is. TAP on stdout.
 */
#include "check.h"
#include "policy.h"

/* As with 8192 CPUs: 21 bits of milliseconds. */
static const struct promote_clock fine = {
	.mask = (1 << 21) - 1,
	.slack = 0,
	.min_gap = 16,
	.threshold = 1000,
};

/* As with 16 CPUs: 12 bits in steps of 16 ms. */
#define COARSE_STEP 16
static const struct promote_clock coarse = {
	.mask = 0xfff0,
	.slack = 15,
	.min_gap = 16,
	.threshold = 1000,
};

/* The first with a clock that ticks 250 times a second. */
static const struct promote_clock ticking = {
	.mask = (1 << 21) - 1,
	.slack = 3,
	.min_gap = 16,
	.threshold = 1000,
};

static enum promote_heat after(const struct promote_clock *clock, u32 last,
			       u32 distance, unsigned int order)
{
	return promote_heat(clock, last + distance, last & clock->mask, order);
}

/* Where the time is set, a glance at a page says the same. */
static void test_glance(void)
{
	bool same = true;
	u32 distance;

	for (distance = 0; distance < ticking.mask; distance++)
		same &= promote_glance(&ticking, 5000 + distance, 5000) ==
			after(&ticking, 5000, distance, 0);
	check(same, "glance: as promote_heat() for a page");
}

static void test_heat(void)
{
	check(after(&fine, 5000, 0, 0) == PROMOTE_RECENT,
	      "heat: again at once is the same burst");
	check(after(&fine, 5000, 15, 0) == PROMOTE_RECENT,
	      "heat: again just within the gap is the same burst");
	check(after(&fine, 5000, 16, 0) == PROMOTE_HOT,
	      "heat: again after the gap is hot");
	check(after(&fine, 5000, 999, 0) == PROMOTE_HOT,
	      "heat: again just within the threshold is hot");
	check(after(&fine, 5000, 1000, 0) == PROMOTE_COLD,
	      "heat: again at the threshold is cold");
	check(after(&fine, 5000, 1000000, 0) == PROMOTE_COLD,
	      "heat: again after many minutes is cold");
}

static void test_heat_unset(void)
{
	bool fine_ok = true, coarse_ok = true;
	u32 now;

	for (now = 0; now < 5000000; now += 7) {
		fine_ok &= promote_heat(&fine, now, fine.mask, 0) ==
			   PROMOTE_COLD;
		coarse_ok &= promote_heat(&coarse, now, coarse.mask, 0) ==
			     PROMOTE_COLD;
	}
	check(fine_ok, "heat: an unset time is cold whatever the time is");
	check(coarse_ok, "heat: an unset coarse time is cold");
}

static void test_heat_wrap(void)
{
	check(after(&fine, fine.mask - 10, 100, 0) == PROMOTE_HOT,
	      "heat: hot across the wrap of the kept bits");
	check(after(&fine, fine.mask - 10, 12, 0) == PROMOTE_RECENT,
	      "heat: recent across the wrap of the kept bits");
	check(after(&fine, UINT32_MAX - 10, 100, 0) == PROMOTE_HOT,
	      "heat: hot across the wrap of 32 bits");
	check(after(&coarse, 20000, 30000, 0) == PROMOTE_COLD,
	      "heat: half a minute is cold on the coarse clock");
}

/* The same for times that are only known to the tick. */
static void test_heat_tick(void)
{
	bool never_early = true, in_time = true;
	u32 last, distance;

	for (last = 20000; last < 20064; last++) {
		for (distance = 0; distance < ticking.min_gap; distance++)
			never_early &= promote_heat(&ticking,
						    (last + distance) & ~3,
						    last & ~3, 0) ==
				       PROMOTE_RECENT;
		in_time &= promote_heat(&ticking,
					(last + ticking.min_gap + 8) & ~3,
					last & ~3, 0) == PROMOTE_HOT;
	}
	check(never_early, "heat: a ticking clock keeps the gap");
	check(in_time, "heat: a ticking clock delays by two ticks at most");
}

/* Two accesses closer than the gap must never be hot, wherever they fall. */
static void test_heat_resolution(void)
{
	bool never_early = true, in_time = true;
	u32 last, distance;

	for (last = 20000; last < 20064; last++) {
		for (distance = 0; distance < coarse.min_gap; distance++)
			never_early &= after(&coarse, last, distance, 0) ==
				       PROMOTE_RECENT;
		in_time &= after(&coarse, last, coarse.min_gap +
				 2 * COARSE_STEP, 0) == PROMOTE_HOT;
	}
	check(never_early, "heat: the coarse clock keeps the gap");
	check(in_time, "heat: the coarse clock delays by two steps at most");
}

static void test_heat_order(void)
{
	bool shrinks = true;
	u32 limit, last_limit = fine.threshold;
	unsigned int order;

	for (order = 0; order <= 12; order++) {
		for (limit = 16; after(&fine, 5000, limit, order) ==
		     PROMOTE_HOT; limit++)
			;
		shrinks &= limit <= last_limit && limit > fine.min_gap;
		last_limit = limit;
	}
	check(shrinks, "heat: the threshold shrinks with the order, not to 0");
	check(after(&fine, 5000, 499, 4) == PROMOTE_HOT &&
	      after(&fine, 5000, 500, 4) == PROMOTE_COLD,
	      "heat: 64 KiB is asked for half the threshold");
	check(after(&fine, 5000, 249, 9) == PROMOTE_HOT &&
	      after(&fine, 5000, 250, 9) == PROMOTE_COLD,
	      "heat: 2 MiB is asked for a quarter of the threshold");
}

/* Left alone until the noted time, then as hot as ever. */
static void test_heat_claimed(void)
{
	const struct promote_clock *clocks[] = { &fine, &coarse, &ticking };
	bool alone = true, again = true, unset = true;
	const struct promote_clock *clock;
	u32 now, then, wait;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		clock = clocks[i];
		for (now = clock->mask - 3000; now < clock->mask + 3000;
		     now += 7) {
			then = promote_claim_time(now);
			if ((then & clock->mask) == clock->mask) {
				unset &= promote_heat(clock, now, then, 0) ==
					 PROMOTE_COLD;
				continue;
			}
			for (wait = 0; wait < 950; wait += 50)
				alone &= promote_heat(clock, now + wait, then,
						      0) == PROMOTE_CLAIMED;
			again &= promote_heat(clock, now + 1100, then, 0) ==
				 PROMOTE_HOT;
		}
	}
	check(promote_heat(&fine, 40000, promote_claim_time(40040), 0) ==
	      PROMOTE_CLAIMED, "claim: also by a CPU whose clock is late");
	check(alone, "claim: left alone for a second");
	check(again, "claim: hot again soon after that");
	check(unset, "claim: what reads as unset by chance is none");
	check(promote_heat(&fine, 50000, promote_claim_time(40000), 0) ==
	      PROMOTE_COLD,
	      "claim: cold when not accessed for long");
	check(after(&coarse, 20000, 64000, 0) == PROMOTE_COLD,
	      "claim: an old time is not taken for one");
}

static void test_scarcity(void)
{
	struct promote_scarcity none = { }, some, more;
	u32 start = UINT32_MAX - 500, now, wait;
	bool doubles = true;
	int i;

	some = promote_scarcity_failed(none, 0, start);
	check(!promote_scarce(some, 0, start) && !promote_scarce(some, 9, start),
	      "scarcity: a failed page says nothing");
	some = promote_scarcity_failed(none, 4, start);
	check(promote_scarce(some, 4, start) && promote_scarce(some, 9, start),
	      "scarcity: this order and above");
	check(!promote_scarce(some, 3, start) && !promote_scarce(some, 0, start),
	      "scarcity: not below");
	check(promote_scarce(some, 4, start + 999) &&
	      !promote_scarce(some, 4, start + 1000),
	      "scarcity: for a second, across the wrap");
	more = promote_scarcity_failed(some, 9, start + 10);
	check(!promote_scarce(more, 4, start + 1005),
	      "scarcity: what fails at the same time adds nothing");
	more = promote_scarcity_failed(some, 2, start + 10);
	check(promote_scarce(more, 2, start + 1005) &&
	      !promote_scarce(more, 2, start + 1010),
	      "scarcity: a smaller order does, for a second of its own");
	check(!promote_scarce(some, 4, start + 0x90000000),
	      "scarcity: is over after weeks");

	for (some = none, now = start, wait = 1000, i = 0; i < 8; i++) {
		some = promote_scarcity_failed(some, 4, now);
		doubles &= promote_scarce(some, 4, now + wait - 1) &&
			   !promote_scarce(some, 4, now + wait);
		now += wait;
		if (wait < 32000)
			wait *= 2;
	}
	check(doubles, "scarcity: doubles up to 32 seconds");
	check(promote_scarce(promote_scarcity_moved(some, 3), 4, now - 1),
	      "scarcity: a smaller order that moves says nothing");
	some = promote_scarcity_moved(some, 4);
	check(!promote_scarce(some, 4, now - 1), "scarcity: ends with a success");
	some = promote_scarcity_failed(some, 4, now);
	check(!promote_scarce(some, 4, now + 1000),
	      "scarcity: starts again at a second");
}

static void test_mark(void)
{
	check(promote_zone_mark(0, 0, 0, 0, 0) == 64,
	      "mark: some pages even of nothing");
	check(promote_zone_mark(100, 10, 5, 20, 10000) == 100 + 20 + 64,
	      "mark: watermark, reserve and some pages");
	check(promote_zone_mark(100, 101, 50, 20, 10000) == 100 + 20 + 151,
	      "mark: what kswapd frees too much, with its boost");
	check(promote_zone_mark(100, 101, 50, 20, 1 << 20) == 100 + 20 + 4096,
	      "mark: a part of a large zone");
	check(promote_zone_mark(100, 2000, 3000, 20, 1 << 20) ==
	      100 + 20 + 5000, "mark: the larger of the two, not both");
}

static void test_pace(void)
{
	check(promote_pace_earn(0, MS) == 3 * MS / 4,
	      "pace: earns three quarters of the time it ran");
	check(promote_pace_earn(-2 * MS, 3 * MS) == MS / 4,
	      "pace: pays back what a drain took too much");
	check(promote_pace_earn(-9 * MS, 4 * MS) == -6 * MS,
	      "pace: stays in debt");
	check(promote_pace_earn(MS / 2, 9 * MS) == MS,
	      "pace: does not save up");
	check(promote_pace_earn(-10 * MS, UINT64_MAX) == MS,
	      "pace: the longest run pays every debt and does not overflow");
	check(promote_pace_spend(MS, MS / 4) == 3 * MS / 4,
	      "pace: spends what the drain took");
	check(promote_pace_spend(MS, 3 * MS) == -2 * MS,
	      "pace: a drain that took too long leaves a debt");
	check(promote_pace_spend(MS, UINT64_MAX) == -10 * MS &&
	      promote_pace_spend(-9 * MS, 8 * MS) == -10 * MS,
	      "pace: the debt is bounded, the longest drain no overflow");
	check(promote_pace_retry(100 * MS, 5 * MS) == 100 * MS,
	      "pace: with credit left, at once");
	check(promote_pace_retry(100 * MS, 0) == 100 * MS + 3 * MS / 10,
	      "pace: with none left, when a batch is earned");
	check(promote_pace_retry(100 * MS, -3 * MS) == 104 * MS + 8 * MS / 10,
	      "pace: in debt, when that is paid back too");
}

int main(void)
{
	test_glance();
	test_heat();
	test_heat_unset();
	test_heat_wrap();
	test_heat_resolution();
	test_heat_tick();
	test_heat_order();
	test_heat_claimed();
	test_scarcity();
	test_mark();
	test_pace();
	return check_end();
}
