// SPDX-License-Identifier: GPL-2.0
/* Patterns of access, see pattern.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

#define ZIPF_EXPONENT 0.99
/* Pages of the file to a standard deviation */
#define NORMAL_SIGMAS 10

static uint64_t next_random(struct pattern *pattern)
{
	pattern->state ^= pattern->state >> 12;
	pattern->state ^= pattern->state << 25;
	pattern->state ^= pattern->state >> 27;
	return pattern->state * 0x2545f4914f6cdd1dULL;
}

/* Below a bound, which is far below 2^32. */
static uint32_t below(uint64_t random, uint32_t bound)
{
	return (random >> 32) * bound >> 32;
}

static double weight_of(const char *name, uint32_t rank, uint32_t nr)
{
	double sigmas;

	if (!strcmp(name, "zipf"))
		return 1 / pow(rank + 1, ZIPF_EXPONENT);
	sigmas = (rank - nr / 2.0) * NORMAL_SIGMAS / nr;
	return exp(-sigmas * sigmas / 2);
}

static void weigh(struct pattern *pattern, const char *name)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < pattern->nr; i++) {
		pattern->weight[i] = weight_of(name, i, pattern->nr);
		sum += pattern->weight[i];
	}
	for (i = 0; i < pattern->nr; i++)
		pattern->weight[i] /= sum;
}

/*
 * Vose's alias method: so that drawing costs next to nothing. Ranks that have
 * less than the mean are on a list from below, those that have more on one from
 * above; each of the first is filled up from one of the second.
 */
static int make_alias_table(struct pattern *pattern)
{
	uint32_t nr = pattern->nr, low = 0, high = nr, i, *list;
	double *left;

	list = malloc(nr * sizeof(*list));
	left = malloc(nr * sizeof(*left));
	if (!list || !left)
		return -ENOMEM;
	for (i = 0; i < nr; i++) {
		left[i] = pattern->weight[i] * nr;
		pattern->keep[i] = UINT32_MAX;
		pattern->other[i] = i;
		list[left[i] < 1 ? low++ : --high] = i;
	}
	while (low && high < nr) {
		uint32_t poor = list[--low], rich = list[high];

		pattern->keep[poor] = left[poor] * UINT32_MAX;
		pattern->other[poor] = rich;
		left[rich] -= 1 - left[poor];
		if (left[rich] < 1) {
			high++;
			list[low++] = rich;
		}
	}
	free(left);
	free(list);
	return 0;
}

static int allocate(struct pattern *pattern)
{
	uint32_t nr = pattern->nr;

	pattern->weight = malloc(nr * sizeof(*pattern->weight));
	pattern->page = malloc(nr * sizeof(*pattern->page));
	pattern->keep = malloc(nr * sizeof(*pattern->keep));
	pattern->other = malloc(nr * sizeof(*pattern->other));
	if (!pattern->weight || !pattern->page || !pattern->keep || !pattern->other)
		return -ENOMEM;
	return 0;
}

int pattern_init(struct pattern *pattern, const char *name, uint32_t nr)
{
	uint32_t i;
	int err;

	memset(pattern, 0, sizeof(*pattern));
	pattern->nr = nr;
	pattern->state = 0x9e3779b97f4a7c15ULL;
	pattern->linear = !strcmp(name, "linear");
	if (pattern->linear || !strcmp(name, "uniform"))
		return 0;
	if (strcmp(name, "zipf") && strcmp(name, "normal"))
		return -EINVAL;
	err = allocate(pattern);
	if (err)
		return err;
	weigh(pattern, name);
	for (i = 0; i < nr; i++)
		pattern->page[i] = i;
	if (!strcmp(name, "zipf"))
		pattern_shuffle(pattern);
	return make_alias_table(pattern);
}

void pattern_shuffle(struct pattern *pattern)
{
	uint32_t i, j, page;

	for (i = pattern->nr - 1; i > 0; i--) {
		j = below(next_random(pattern), i + 1);
		page = pattern->page[i];
		pattern->page[i] = pattern->page[j];
		pattern->page[j] = page;
	}
}

void pattern_draw(struct pattern *pattern, uint32_t *pages, uint32_t nr)
{
	uint32_t i, rank;
	uint64_t random;

	for (i = 0; i < nr; i++) {
		if (pattern->linear) {
			pages[i] = pattern->next;
			pattern->next = (pattern->next + 1) % pattern->nr;
			continue;
		}
		random = next_random(pattern);
		rank = below(random, pattern->nr);
		if (!pattern->weight) {
			pages[i] = rank;
			continue;
		}
		if ((uint32_t)next_random(pattern) > pattern->keep[rank])
			rank = pattern->other[rank];
		pages[i] = pattern->page[rank];
	}
}

double pattern_share(const struct pattern *pattern, const bool *pages)
{
	double share = 0;
	uint32_t i;

	for (i = 0; i < pattern->nr; i++) {
		if (!pattern->weight)
			share += pages[i] / (double)pattern->nr;
		else if (pages[pattern->page[i]])
			share += pattern->weight[i];
	}
	return share;
}

static int heavier(const void *one, const void *other)
{
	double a = *(const double *)one, b = *(const double *)other;

	return (a < b) - (a > b);
}

double pattern_best_share(const struct pattern *pattern, uint32_t nr)
{
	double share = 0, *weight;
	uint32_t i;

	if (!pattern->weight)
		return nr / (double)pattern->nr;
	weight = malloc(pattern->nr * sizeof(*weight));
	if (!weight)
		return -1;
	memcpy(weight, pattern->weight, pattern->nr * sizeof(*weight));
	qsort(weight, pattern->nr, sizeof(*weight), heavier);
	for (i = 0; i < nr; i++)
		share += weight[i];
	free(weight);
	return share;
}
