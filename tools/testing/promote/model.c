// SPDX-License-Identifier: GPL-2.0
/*
 * A small model of promotion without headroom, around the decisions of
 * mm/promote/policy.c, which is compiled as it is. It judges a change of them
 * in seconds.
 *
 * Readers draw pages of a file from a distribution. Some of the pages fit the
 * top tier, a classic LRU of two lists says which is demoted when another is
 * promoted. What the kernel does around the decisions is modelled, page by page
 * and ns by ns: the hook that looks at one access in 16, times of access and
 * claims, the list of candidates, drains, accounts. Costs are given. So is the
 * seed: the same arguments give the same table.
 *
 * Not modelled: large folios, several nodes, demotion that is late or fails,
 * and that a reader of slow memory takes longer; that is told apart.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"

#define NSEC_PER_MSEC	1000000ULL
#define NONE		UINT32_MAX
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* As the kernel's: mm/promote/pagecache.c, promo_list.h */
#define LIST_ENTRIES	512U
#define PAID_PAGES	32U
#define PAID_WAITING	64U
#define PAID_CREDIT_NS	(100 * 1000)
#define SETTLE_NS	(5 * NSEC_PER_MSEC)
#define DRAIN_MS	30
#define STALE_MS	5000U
#define ROOM_WAIT_NS	(10 * NSEC_PER_MSEC)
#define CREDIT_WAIT_NS	(PROMOTE_WINDOW_MS * NSEC_PER_MSEC)
#define COLD_EVERY	64
#define COLD_LOOKS	8U

#define TICK_MS		4

/* Rounds until the top tier is full at the latest, and before it counts */
#define FILL_ROUNDS	8
#define STEADY_ROUNDS	12
/* The last of these, for the mean */
#define MEAN_ROUNDS	4
/* Rounds after which a hot set that has moved has to be there again */
#define EARLY_ROUND	3
#define LATE_ROUND	10

/*
 * Pages of the file and of the top tier; what a read of a page takes, and more
 * of the lower tier; what promoting and demoting one takes, and a drain
 * besides; what the hook takes: in the top tier, and when an access to the
 * lower tier is skipped and looked at.
 */
static struct {
	u32 pages;
	u32 top;
	u32 read_ns;
	u32 penalty_ns;
	u32 promote_ns;
	u32 demote_ns;
	u32 drain_ns;
	u32 top_ns;
	u32 skip_ns;
	u32 look_ns;
	u32 seed;
	u32 verbose;
} cfg = {
	.pages = 131072,
	.top = 0,
	.read_ns = 1626,
	.penalty_ns = 350,
	.promote_ns = 4400,
	.demote_ns = 4400,
	.drain_ns = 1500,
	.top_ns = 6,
	.skip_ns = 14,
	.look_ns = 57,
	.seed = 1,
};

static const struct promote_clock base_clock = {
	.mask = (1 << 21) - 1,
	.slack = TICK_MS - 1,
	.min_gap = 16,
	.threshold = 1000,
};

static void *alloc(size_t nr, size_t size)
{
	void *p = calloc(nr, size);

	if (!p) {
		fprintf(stderr, "model: out of memory\n");
		exit(2);
	}
	return p;
}

/* --- Random numbers: splitmix64 --- */

static u64 random_state;

static u64 random64(void)
{
	u64 z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u32 random_below(u32 limit)
{
	return (random64() >> 32) * limit >> 32;
}

/* --- Which page is read next --- */

/**
 * struct load - a distribution over pages
 * @weight: probability of each rank
 * @cut: of the alias method: below it a rank stands for itself
 * @alias: above it, for this one
 * @page: page of each rank
 * @best: sum of the largest probabilities that fit the top tier
 * @nr: number of pages
 * @next: the next rank, when it is read from start to end
 * @linear: that it is
 */
struct load {
	double *weight;
	u32 *cut;
	u32 *alias;
	u32 *page;
	double best;
	u32 nr;
	u32 next;
	bool linear;
};

static double weight_uniform(u32 rank, u32 nr)
{
	(void)rank;
	(void)nr;
	return 1;
}

static double weight_zipf(u32 rank, u32 nr)
{
	(void)nr;
	return pow(rank + 1, -0.99);
}

/* The middle of the file is the hottest. */
static double weight_normal(u32 rank, u32 nr)
{
	double x = (rank - nr / 2.0) / (nr / 10.0);

	return exp(-x * x / 2);
}

static void load_shuffle(struct load *load)
{
	u32 i, j, page;

	for (i = load->nr - 1; i; i--) {
		j = random_below(i + 1);
		page = load->page[i];
		load->page[i] = load->page[j];
		load->page[j] = page;
	}
}

/* Vose's alias method: fill up what is below the mean from what is above. */
static void load_alias(struct load *load)
{
	double *share = alloc(load->nr, sizeof(*share));
	u32 *stack = alloc(load->nr, sizeof(*stack));
	u32 nr_small = 0, large = load->nr, i, s, l;

	for (i = 0; i < load->nr; i++) {
		share[i] = load->weight[i] * load->nr;
		load->cut[i] = UINT32_MAX;
		if (share[i] < 1)
			stack[nr_small++] = i;
		else
			stack[--large] = i;
	}
	while (nr_small && large < load->nr) {
		s = stack[--nr_small];
		l = stack[large];
		load->cut[s] = share[s] * UINT32_MAX;
		load->alias[s] = l;
		share[l] -= 1 - share[s];
		if (share[l] < 1) {
			large++;
			stack[nr_small++] = l;
		}
	}
	free(stack);
	free(share);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

static double load_best(const struct load *load)
{
	double *sorted = alloc(load->nr, sizeof(*sorted)), best = 0;
	u32 i;

	memcpy(sorted, load->weight, load->nr * sizeof(*sorted));
	qsort(sorted, load->nr, sizeof(*sorted), by_size);
	for (i = 0; i < cfg.top && i < load->nr; i++)
		best += sorted[i];
	free(sorted);
	return best;
}

static void load_start(struct load *load, u32 first, u32 nr,
		       double (*weight)(u32 rank, u32 nr))
{
	double sum = 0;
	u32 i;

	load->nr = nr;
	load->weight = alloc(nr, sizeof(*load->weight));
	load->cut = alloc(nr, sizeof(*load->cut));
	load->alias = alloc(nr, sizeof(*load->alias));
	load->page = alloc(nr, sizeof(*load->page));
	for (i = 0; i < nr; i++)
		sum += load->weight[i] = weight(i, nr);
	for (i = 0; i < nr; i++) {
		load->weight[i] /= sum;
		load->page[i] = first + i;
	}
	load_alias(load);
	load->best = load_best(load);
}

static void load_end(struct load *load)
{
	free(load->weight);
	free(load->cut);
	free(load->alias);
	free(load->page);
}

static u32 load_next(struct load *load)
{
	u64 random;
	u32 rank;

	if (load->linear) {
		rank = load->next++;
		if (load->next == load->nr)
			load->next = 0;
		return load->page[rank];
	}
	random = random64();
	rank = (random >> 32) * load->nr >> 32;
	if ((u32)random > load->cut[rank])
		rank = load->alias[rank];
	return load->page[rank];
}

/* --- The top tier and its LRU --- */

/**
 * struct page - a page of the file
 * @prev: its neighbour in a list of the LRU, when it is in the top tier
 * @next: the other one
 * @noted: time of the last access that was looked at, when it is not
 * @top: it is
 * @active: as PG_active
 * @referenced: as PG_referenced
 */
struct page {
	u32 prev;
	u32 next;
	u32 noted;
	bool top;
	bool active;
	bool referenced;
};

/**
 * struct lru_list - pages in the order in which they came
 * @head: the last that came
 * @tail: the first
 * @nr: number of pages
 */
struct lru_list {
	u32 head;
	u32 tail;
	u32 nr;
};

static struct page *pages;
static struct lru_list lru[2];
static u32 nr_free;

static void lru_add(u32 nr)
{
	struct lru_list *list = &lru[pages[nr].active];

	pages[nr].prev = NONE;
	pages[nr].next = list->head;
	if (list->head == NONE)
		list->tail = nr;
	else
		pages[list->head].prev = nr;
	list->head = nr;
	list->nr++;
}

static void lru_del(u32 nr)
{
	struct lru_list *list = &lru[pages[nr].active];
	struct page *page = &pages[nr];

	if (page->prev == NONE)
		list->head = page->next;
	else
		pages[page->prev].next = page->next;
	if (page->next == NONE)
		list->tail = page->prev;
	else
		pages[page->next].prev = page->prev;
	list->nr--;
}

/* As folio_mark_accessed(). Return: true if the LRU had seen enough. */
static bool lru_accessed(u32 nr)
{
	struct page *page = &pages[nr];

	if (!page->referenced) {
		page->referenced = true;
		return false;
	}
	if (page->active)
		return true;
	if (page->top)
		lru_del(nr);
	page->active = true;
	page->referenced = false;
	if (page->top)
		lru_add(nr);
	return false;
}

static void lru_demote(void)
{
	u32 nr;

	while (lru[false].nr < lru[true].nr) {
		nr = lru[true].tail;
		lru_del(nr);
		pages[nr].active = false;
		lru_add(nr);
	}
	nr = lru[false].tail;
	lru_del(nr);
	pages[nr].top = false;
	pages[nr].noted = base_clock.mask;
	nr_free++;
}

static void lru_promote(u32 nr)
{
	pages[nr].top = true;
	lru_add(nr);
	nr_free--;
}

static void lru_start(void)
{
	u32 i;

	for (i = 0; i < cfg.pages; i++)
		pages[i] = (struct page) { .noted = base_clock.mask };
	for (i = 0; i < 2; i++)
		lru[i] = (struct lru_list) { .head = NONE, .tail = NONE };
	nr_free = cfg.top;
}

/* --- The node and its readers: as mm/promote/budget.c --- */

static struct {
	struct promote_pool pool;
	u32 threshold_ms;
	u32 promote_ns;
	u32 demote_ns;
} node;

struct candidate {
	u32 nr;
	u32 queued_ms;
};

/**
 * struct reader - a task, on a CPU of its own
 * @load: what it reads
 * @idle_ns: time that it waits before each read
 * @now_ns: its time
 * @ran_ns: how long it ran since its account was settled
 * @earned_ns: how long since the last drain, into headroom
 * @retry_ns: no drain before
 * @pace_ns: what it may spend on a drain into headroom
 * @account: what it may spend without
 * @nr_accesses: accesses to the lower tier since it was settled
 * @window: of its last draw
 * @settled_ms: when it was settled
 * @skip: accesses to skip
 * @skipped: what the one then stands for
 * @nr_cold: looks at cold pages since the last hot one, of some of them
 * @sampling: it looks at some accesses only
 * @paying: it had to pay at the last drain
 * @list: candidates, a ring
 * @head: the oldest
 * @nr: how many
 * @hook_ns: what the hook took in this round
 * @move_ns: what drains and demotion took
 * @nr_slow: reads from the lower tier
 * @nr_promoted: promotions
 */
struct reader {
	struct load *load;
	u64 idle_ns;
	u64 now_ns;
	u64 ran_ns;
	u64 earned_ns;
	u64 retry_ns;
	s64 pace_ns;
	struct promote_account account;
	u64 nr_accesses;
	u32 window;
	u32 settled_ms;
	s32 skip;
	u32 skipped;
	u32 nr_cold;
	bool sampling;
	bool paying;
	struct candidate list[LIST_ENTRIES];
	u32 head;
	u32 nr;
	u64 hook_ns;
	u64 move_ns;
	u64 nr_slow;
	u64 nr_promoted;
};

static u32 reader_ms(const struct reader *reader)
{
	return (u32)(reader->now_ns / NSEC_PER_MSEC) & ~(TICK_MS - 1);
}

static void reader_runs(struct reader *reader, u32 ns)
{
	reader->now_ns += ns;
	reader->ran_ns += ns;
	reader->earned_ns += ns;
}

static void reader_hooks(struct reader *reader, u32 ns)
{
	reader_runs(reader, ns);
	reader->hook_ns += ns;
}

/* A drain is no time of the reader's own. */
static void reader_drains(struct reader *reader, u32 ns)
{
	reader->now_ns += ns;
	reader->move_ns += ns;
}

static bool reader_pop(struct reader *reader, struct candidate *candidate)
{
	if (!reader->nr)
		return false;
	*candidate = reader->list[reader->head];
	reader->head = (reader->head + 1) % LIST_ENTRIES;
	reader->nr--;
	return true;
}

static void reader_follow(struct reader *reader)
{
	struct promote_range range = promote_threshold_range(&base_clock);
	struct promote_account *account = &reader->account;

	if (!account->threshold_ms)
		account->threshold_ms = node.threshold_ms ?
					node.threshold_ms :
					base_clock.threshold;
	promote_account_follow(account, node.promote_ns + node.demote_ns,
			       &range);
	node.threshold_ms = node.threshold_ms ?
		(node.threshold_ms * 3 + account->threshold_ms) / 4 :
		account->threshold_ms;
}

static void reader_settle(struct reader *reader, u32 now_ms)
{
	s64 income = promote_income(reader->ran_ns, reader->nr_accesses,
				    cfg.penalty_ns);

	income = promote_account_advance(&reader->account, income,
					 reader->ran_ns, reader->nr_accesses);
	reader->ran_ns = 0;
	reader->nr_accesses = 0;
	promote_pool_add(&node.pool,
			 promote_account_earn(&reader->account, income));
	promote_account_draw(&reader->account, &node.pool, now_ms,
			     &reader->window);
	reader_follow(reader);
}

static bool reader_promotes(struct reader *reader,
			    const struct candidate *candidate, u32 now_ms)
{
	u32 stale_ms = STALE_MS;

	if (stale_ms < reader->account.threshold_ms)
		stale_ms = reader->account.threshold_ms;
	if (pages[candidate->nr].top ||
	    now_ms - candidate->queued_ms > stale_ms)
		return false;
	lru_promote(candidate->nr);
	reader_drains(reader, cfg.promote_ns);
	reader->nr_promoted++;
	return true;
}

static void reader_paying_start(struct reader *reader)
{
	if (reader->paying)
		return;
	reader->ran_ns = 0;
	reader->nr_accesses = 0;
	reader->account.demand = 0;
	reader->account.supply_ns = 0;
	reader->paying = true;
}

static void reader_sampling(struct reader *reader)
{
	reader->sampling = reader->paying || reader->nr_cold >= COLD_LOOKS;
}

/* With a page demoted for each, by somebody else. */
static void reader_drain_paid(struct reader *reader, u32 now_ms)
{
	u32 cost_ns = node.promote_ns + node.demote_ns, nr_pays, nr_moved = 0;
	u64 start_ns = reader->now_ns;
	struct candidate candidate;
	s64 credit_ns, took_ns;

	reader_paying_start(reader);
	reader_settle(reader, now_ms);
	reader_drains(reader, cfg.drain_ns);
	credit_ns = reader->account.credit_ns;
	nr_pays = promote_credit_pages(credit_ns, cost_ns);
	while (promote_credit_pays(credit_ns, cost_ns, 1) &&
	       reader_pop(reader, &candidate)) {
		if (!nr_free) {
			lru_demote();
			reader->move_ns += cfg.demote_ns;
		}
		if (!reader_promotes(reader, &candidate, now_ms))
			continue;
		nr_moved++;
		credit_ns -= cost_ns;
	}
	while (reader->nr > PAID_WAITING)
		reader_pop(reader, &candidate);
	took_ns = reader->now_ns - start_ns;
	node.promote_ns = promote_cost_learn(node.promote_ns, took_ns,
					     nr_moved);
	promote_account_spend(&reader->account,
			      took_ns + (u64)nr_moved * node.demote_ns);
	reader->retry_ns = reader->now_ns +
			   (nr_pays ? ROOM_WAIT_NS : CREDIT_WAIT_NS);
}

static void reader_drain_free(struct reader *reader, u32 now_ms)
{
	u64 start_ns = reader->now_ns;
	struct candidate candidate;

	reader->pace_ns = promote_pace_earn(reader->pace_ns,
					    reader->earned_ns);
	if (reader->pace_ns > 0) {
		reader_drains(reader, cfg.drain_ns);
		while (nr_free && (s64)(reader->now_ns - start_ns) <
				  reader->pace_ns &&
		       reader_pop(reader, &candidate))
			reader_promotes(reader, &candidate, now_ms);
	}
	reader->pace_ns = promote_pace_spend(reader->pace_ns,
					     reader->now_ns - start_ns);
	if (reader->nr)
		reader->retry_ns = promote_pace_retry(reader->now_ns,
						      reader->pace_ns);
}

static void reader_drain(struct reader *reader, u32 now_ms)
{
	reader->settled_ms = now_ms;
	if (nr_free) {
		reader->paying = false;
		reader_drain_free(reader, now_ms);
	} else {
		reader_drain_paid(reader, now_ms);
	}
	reader_sampling(reader);
	reader->earned_ns = 0;
}

static bool reader_is_due(const struct reader *reader, u32 now_ms)
{
	u32 age_ms;

	if (reader->paying)
		return reader->nr >= PAID_PAGES &&
		       reader->account.credit_ns >= PAID_CREDIT_NS;
	age_ms = now_ms - reader->list[reader->head].queued_ms;
	return reader->nr == LIST_ENTRIES ||
	       (reader->nr && age_ms >= DRAIN_MS);
}

static void reader_records(struct reader *reader, u32 nr, u32 now_ms)
{
	u32 tail = (reader->head + reader->nr) % LIST_ENTRIES;

	if (reader->nr == LIST_ENTRIES)
		return;
	pages[nr].noted = promote_claim_time(now_ms) & base_clock.mask;
	reader->list[tail] = (struct candidate) { nr, now_ms };
	reader->nr++;
	reader->account.demand++;
}

static void reader_finds_cold(struct reader *reader, u32 nr, u32 now_ms)
{
	pages[nr].noted = now_ms & base_clock.mask;
	if (nr % COLD_EVERY == 0 && ++reader->nr_cold == COLD_LOOKS)
		reader_sampling(reader);
}

static void reader_finds_hot(struct reader *reader, u32 nr, u32 now_ms)
{
	if (reader->nr_cold) {
		reader->nr_cold = 0;
		reader_sampling(reader);
	}
	reader_records(reader, nr, now_ms);
}

static void reader_looks(struct reader *reader, u32 nr, u32 now_ms)
{
	struct promote_clock clock = base_clock;

	if (reader->paying)
		clock.threshold = reader->account.threshold_ms;
	switch (promote_heat(&clock, now_ms, pages[nr].noted, 0)) {
	case PROMOTE_COLD:
		reader_finds_cold(reader, nr, now_ms);
		break;
	case PROMOTE_HOT:
		reader_finds_hot(reader, nr, now_ms);
		break;
	default:
		break;
	}
}

/* Return: true if this access is one of those that are looked at. */
static bool reader_samples(struct reader *reader)
{
	if (--reader->skip > 0)
		return false;
	reader->nr_accesses += reader->skipped;
	reader->skipped = random_below(32) + 1;
	reader->skip = reader->skipped;
	return true;
}

static void reader_hook(struct reader *reader, u32 nr)
{
	u32 now_ms = reader_ms(reader);
	bool due;

	if (reader->sampling && !reader_samples(reader)) {
		reader_hooks(reader, cfg.skip_ns);
		return;
	}
	reader_hooks(reader, cfg.look_ns);
	reader_looks(reader, nr, now_ms);
	due = reader_is_due(reader, now_ms) &&
	      reader->now_ns >= reader->retry_ns;
	if (due || (reader->sampling && now_ms - reader->settled_ms >=
					PROMOTE_WINDOW_MS &&
		    reader->ran_ns >= SETTLE_NS))
		reader_drain(reader, now_ms);
}

static void reader_read(struct reader *reader)
{
	u32 nr = load_next(reader->load);

	reader->now_ns += reader->idle_ns;
	reader_runs(reader, cfg.read_ns);
	reader->nr_slow += !pages[nr].top;
	if (!lru_accessed(nr))
		return;
	if (pages[nr].top)
		reader_hooks(reader, cfg.top_ns);
	else
		reader_hook(reader, nr);
}

/* --- Rounds --- */

/**
 * struct result - of a round, or the mean of some
 * @overhead: what the kernel took, in % of the time of reading
 * @slow: what slow memory took, in % of that
 * @share: of the best possible, of accesses that meet the top tier
 * @promoted: pages promoted
 * @threshold_ms: the hot threshold
 */
struct result {
	double overhead;
	double slow;
	double share;
	double promoted;
	double threshold_ms;
};

static double load_share(const struct load *load)
{
	double share = 0;
	u32 i;

	for (i = 0; i < load->nr; i++) {
		if (pages[load->page[i]].top)
			share += load->weight[i];
	}
	return share / load->best;
}

static void reader_start(struct reader *reader, struct load *load,
			 u64 idle_ns)
{
	*reader = (struct reader) {
		.load = load,
		.idle_ns = idle_ns,
		.now_ns = 100000 * NSEC_PER_MSEC,
		.settled_ms = 100000,
	};
}

static void node_start(void)
{
	lru_start();
	memset(&node, 0, sizeof(node));
	node.promote_ns = 5000;
	node.demote_ns = cfg.demote_ns;
	random_state = cfg.seed;
}

static u32 round_reads(void)
{
	return cfg.pages * 2;
}

static struct result read_round(struct reader *reader)
{
	double read_ns = (double)round_reads() * cfg.read_ns;
	struct result result;
	u32 i;

	reader->hook_ns = 0;
	reader->move_ns = 0;
	reader->nr_slow = 0;
	reader->nr_promoted = 0;
	for (i = 0; i < round_reads(); i++)
		reader_read(reader);
	result = (struct result) {
		.overhead = (reader->hook_ns + reader->move_ns) * 100 / read_ns,
		.slow = reader->nr_slow * cfg.penalty_ns * 100 / read_ns,
		.share = load_share(reader->load),
		.promoted = reader->nr_promoted,
		.threshold_ms = reader->account.threshold_ms,
	};
	if (cfg.verbose)
		printf("  cost %+6.2f %% (hook %.2f)  share %.4f  slow %5.2f %%"
		       "  promoted %5.0f  threshold %5.0f ms\n",
		       result.overhead, reader->hook_ns * 100 / read_ns,
		       result.share, result.slow, result.promoted,
		       result.threshold_ms);
	return result;
}

static void result_add(struct result *sum, const struct result *one)
{
	sum->overhead += one->overhead / MEAN_ROUNDS;
	sum->slow += one->slow / MEAN_ROUNDS;
	sum->share += one->share / MEAN_ROUNDS;
	sum->promoted += one->promoted / MEAN_ROUNDS;
	sum->threshold_ms += one->threshold_ms / MEAN_ROUNDS;
}

/* What is left was in use, and is free now for whatever page. */
static void fill_the_rest(void)
{
	u32 nr;

	while (nr_free) {
		nr = random_below(cfg.pages);
		if (!pages[nr].top)
			lru_promote(nr);
	}
}

/* With headroom until that is used up, or for some rounds. */
static void read_until_full(struct reader *reader)
{
	int i;

	for (i = 0; i < FILL_ROUNDS && nr_free; i++)
		read_round(reader);
	fill_the_rest();
}

static struct result read_steadily(struct reader *reader)
{
	struct result mean = { }, one;
	int i;

	for (i = 0; i < STEADY_ROUNDS; i++) {
		one = read_round(reader);
		if (i >= STEADY_ROUNDS - MEAN_ROUNDS)
			result_add(&mean, &one);
	}
	return mean;
}

/* --- What is wanted, and the table --- */

/**
 * struct rate - how fast a file is read
 * @name: of the rate
 * @again_ms: how long until a page is read again, on average; 0 if there is no
 * time between reads
 * @less: what is asked less of the share: what is looked at again late is found
 * hot late, and there was more room than the hot threshold fills
 */
struct rate {
	const char *name;
	u32 again_ms;
	double less;
};

static const struct rate rates[] = {
	{ "busy", 0, 0 },
	{ "4s", 4000, 0.02 },
	{ "16s", 16000, 0.05 },
};

/**
 * struct workload - what is read, and what is wanted
 * @name: of the workload
 * @weight: how often each page is read
 * @max_overhead: in % of the time of reading
 * @min_share: of the best possible
 * @linear: from start to end, again and again
 * @shuffled: then the pages change places
 */
struct workload {
	const char *name;
	double (*weight)(u32 rank, u32 nr);
	double max_overhead;
	double min_share;
	bool linear;
	bool shuffled;
};

static const struct workload workloads[] = {
	{ "uniform", weight_uniform, 2, 0, .linear = false },
	{ "linear", weight_uniform, 2, 0, .linear = true },
	{ "zipf", weight_zipf, 2, 0.98, .shuffled = true },
	{ "normal", weight_normal, 2, 0.97, .shuffled = false },
};

/* After the hot set has moved */
#define SHUFFLED_OVERHEAD	3
#define SHUFFLED_EARLY		0.80
#define SHUFFLED_LATE		0.90

static unsigned int nr_missed;

static void print_row(const char *name, const struct rate *rate,
		      const struct result *result, double max_overhead,
		      double min_share)
{
	bool met;

	min_share = min_share > rate->less ? min_share - rate->less : 0;
	met = result->overhead <= max_overhead && result->share >= min_share;
	nr_missed += !met;
	printf("%-10s %-5s %+6.2f %5.1f  %6.3f %5.2f %7.2f %8.0f %9.0f  %s\n",
	       name, rate->name, result->overhead, max_overhead, result->share,
	       min_share, result->slow, result->promoted,
	       result->threshold_ms, met ? "met" : "MISSED");
}

/* The share at the end of some round; the overhead is that of the worst. */
static void read_shuffled(struct reader *reader, const struct rate *rate)
{
	struct result one;
	double worst = 0;
	int i;

	load_shuffle(reader->load);
	for (i = 1; i <= LATE_ROUND; i++) {
		one = read_round(reader);
		if (worst < one.overhead)
			worst = one.overhead;
		one.overhead = worst;
		if (i == EARLY_ROUND)
			print_row("shuffled3", rate, &one, SHUFFLED_OVERHEAD,
				  SHUFFLED_EARLY);
	}
	print_row("shuffled10", rate, &one, SHUFFLED_OVERHEAD, SHUFFLED_LATE);
}

static u64 rate_idle_ns(const struct rate *rate)
{
	u64 each_ns = rate->again_ms * NSEC_PER_MSEC / cfg.pages;

	return each_ns > cfg.read_ns ? each_ns - cfg.read_ns : 0;
}

static void run_workload(const struct workload *workload,
			 const struct rate *rate)
{
	struct load load = { .linear = workload->linear };
	struct result steady;
	struct reader reader;

	if (cfg.verbose)
		printf("%s %s\n", workload->name, rate->name);
	node_start();
	load_start(&load, 0, cfg.pages, workload->weight);
	if (!load.linear)
		load_shuffle(&load);
	reader_start(&reader, &load, rate_idle_ns(rate));
	read_until_full(&reader);
	steady = read_steadily(&reader);
	print_row(workload->name, rate, &steady, workload->max_overhead,
		  workload->min_share);
	if (workload->shuffled)
		read_shuffled(&reader, rate);
	load_end(&load);
}

/* --- Two readers: one thrashes, the other is hot --- */

#define HOT_PAGES	64U

static void read_both(struct reader *a, struct reader *b)
{
	reader_read(a->now_ns <= b->now_ns ? a : b);
}

static u32 nr_hot_in_top(const struct load *load)
{
	u32 i, nr = 0;

	for (i = 0; i < load->nr; i++)
		nr += pages[load->page[i]].top;
	return nr;
}

/*
 * The hot pages are in the lower tier at first. They can be paid for when 1 %
 * of the time is what they cost; they are to be in the top tier a window later.
 */
static void run_two(void)
{
	u64 cost_ns = (u64)HOT_PAGES * (cfg.promote_ns + cfg.demote_ns);
	u64 limit_ms = cost_ns * 1024 / 10 / NSEC_PER_MSEC + PROMOTE_WINDOW_MS;
	struct reader thrasher, hot;
	struct load wide = { }, narrow = { };
	u64 start_ns, took_ms;
	bool met;
	u32 nr, i;

	node_start();
	load_start(&wide, 0, cfg.pages - HOT_PAGES, weight_uniform);
	load_start(&narrow, cfg.pages - HOT_PAGES, HOT_PAGES, weight_uniform);
	reader_start(&thrasher, &wide, 0);
	reader_start(&hot, &narrow, 0);
	while (nr_free)
		read_round(&thrasher);
	for (i = 0; i < 4; i++)
		read_round(&thrasher);
	start_ns = thrasher.now_ns;
	hot.now_ns = start_ns;
	hot.settled_ms = reader_ms(&hot);
	while (nr_hot_in_top(&narrow) < HOT_PAGES &&
	       hot.now_ns - start_ns < 100 * limit_ms * NSEC_PER_MSEC)
		read_both(&thrasher, &hot);
	took_ms = (hot.now_ns - start_ns) / NSEC_PER_MSEC;
	for (nr = HOT_PAGES, i = 0; i < round_reads(); i++) {
		read_both(&thrasher, &hot);
		if (i % 1024 == 0 && nr > nr_hot_in_top(&narrow))
			nr = nr_hot_in_top(&narrow);
	}
	met = took_ms <= limit_ms && nr == HOT_PAGES;
	nr_missed += !met;
	printf("two readers: %u hot pages in the top tier after %llu ms of %llu,"
	       " at least %u after that: %s\n", HOT_PAGES,
	       (unsigned long long)took_ms, (unsigned long long)limit_ms, nr,
	       met ? "met" : "MISSED");
	load_end(&wide);
	load_end(&narrow);
}

/* --- Arguments --- */

static const struct {
	const char *name;
	u32 *value;
	u32 min;
	u32 max;
} options[] = {
	{ "--pages", &cfg.pages, 1024, 1 << 24 },
	{ "--top", &cfg.top, 64, 1 << 24 },
	{ "--read-ns", &cfg.read_ns, 1, 1000000 },
	{ "--penalty-ns", &cfg.penalty_ns, 0, 1000000 },
	{ "--promote-ns", &cfg.promote_ns, 100, 100000 },
	{ "--demote-ns", &cfg.demote_ns, 100, 100000 },
	{ "--drain-ns", &cfg.drain_ns, 0, 100000 },
	{ "--top-ns", &cfg.top_ns, 0, 1000000 },
	{ "--skip-ns", &cfg.skip_ns, 0, 1000000 },
	{ "--look-ns", &cfg.look_ns, 0, 1000000 },
	{ "--seed", &cfg.seed, 0, UINT32_MAX },
	{ "--verbose", &cfg.verbose, 0, 1 },
};

static void set_option(const char *name, const char *value)
{
	unsigned long long number;
	unsigned int i;
	char *end;

	for (i = 0; i < ARRAY_SIZE(options) && strcmp(name, options[i].name); i++)
		;
	if (i == ARRAY_SIZE(options)) {
		fprintf(stderr, "model: no such option: %s\n", name);
		exit(2);
	}
	errno = 0;
	number = value ? strtoull(value, &end, 10) : 0;
	if (!value || errno || end == value || *end || value[0] == '-' ||
	    number < options[i].min || number > options[i].max) {
		fprintf(stderr, "model: %s takes a number from %u to %u\n",
			name, options[i].min, options[i].max);
		exit(2);
	}
	*options[i].value = number;
}

int main(int argc, char **argv)
{
	unsigned int i, j;
	int arg;

	for (arg = 1; arg < argc; arg += 2)
		set_option(argv[arg], argv[arg + 1]);
	if (!cfg.top)
		cfg.top = cfg.pages / 10 * 3;
	if (cfg.top >= cfg.pages - HOT_PAGES) {
		fprintf(stderr, "model: --top must be less than --pages\n");
		return 2;
	}
	pages = alloc(cfg.pages, sizeof(*pages));
	printf("%-10s %-5s %6s %5s  %6s %5s %7s %8s %9s\n", "load", "rate",
	       "cost%", "goal", "share", "goal", "slow%", "promoted",
	       "threshold");
	for (i = 0; i < ARRAY_SIZE(workloads); i++) {
		for (j = 0; j < ARRAY_SIZE(rates); j++)
			run_workload(&workloads[i], &rates[j]);
	}
	run_two();
	free(pages);
	printf("%u goals missed\n", nr_missed);
	return nr_missed != 0;
}
