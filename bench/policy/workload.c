// SPDX-License-Identifier: GPL-2.0
/*
 * A reader whose file starts in the lower tier, with as much of DRAM free as
 * there is after boot, and what becomes of it. Prints for bench/policy/figures:
 *
 *   start HEADROOM PAGES          of the DRAM node and of the file
 *   round PHASE NUMBER READS SELF OTHERS WALL PROMOTED DEMOTED
 *                                 ns, pages; phase 0 fills DRAM, as fast as it
 *                                 goes; phase 2 is after a reshuffle
 *   where PHASE NUMBER PAGES SHARE BEST
 *                                 of the file in DRAM, after that round; what
 *                                 share of the reads they get, and what as many
 *                                 of the best pages would
 *   budget LINE                   of debugfs promote/nodes, for people
 *
 * What a round reads is drawn before it begins. A reader that does not read back
 * to back sleeps every STEP reads, until a time that does not depend on how
 * long the reads took. What else there is to see is in scenes.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

#define ROUND_READS 262144
#define STEP 128
/* Of the phase after a reshuffle, where the pages are looked for */
#define SOON 3

struct workload {
	struct reader reader;
	int top;
	int rounds[3];		/* of each phase */
	bool on;
};

static void show_where(struct workload *work, int phase, int round)
{
	struct pattern *pattern = &work->reader.pattern;
	long nr = reader_pages_on(&work->reader, work->top);

	printf("where %d %d %ld %.4f %.4f\n", phase, round, nr,
	       pattern_share(pattern, work->reader.on_node),
	       pattern_best_share(pattern, nr));
}

static void one_round(struct workload *work, int phase, int round)
{
	struct meter meter, before;
	struct budget budget;

	reader_draw(&work->reader);
	meter_read(&before);
	reader_read(&work->reader);
	meter_since(&meter, &before);
	printf("round %d %d %u %lld %lld %lld %ld %ld\n", phase, round,
	       work->reader.reads, meter.self, meter.others, meter.wall,
	       meter.promoted, meter.demoted);
	if (!work->on)
		return;
	budget_read(&budget, work->top);
	printf("budget %s\n", budget.line);
	if (phase && (round == work->rounds[phase] || (phase == 2 && round == SOON)))
		show_where(work, phase, round);
}

/* A size in MiB, or "1.2x": times the memory that can be promoted to. */
static size_t file_size(const char *text, long headroom)
{
	char *end;
	double number = strtod(text, &end);

	if (*end == 'x')
		return (size_t)(number * headroom) * PAGE;
	return (size_t)number << 20;
}

/* Of a linear reader, whole passes. */
static uint32_t round_reads(const struct reader *reader)
{
	uint32_t nr = reader->file.nr;

	if (!reader->pattern.linear)
		return ROUND_READS;
	return (ROUND_READS + nr - 1) / nr * nr;
}

static void set_up(struct workload *work, char *argv[])
{
	char enabled[16] = "";
	struct budget budget;
	size_t size;

	promote_read(PROMOTE_SWITCH, enabled, sizeof(enabled));
	work->on = !strcmp(enabled, "true");
	work->top = promote_top_node();
	work->rounds[0] = atoi(argv[2]);
	if (!work->on && strchr(argv[3], '/'))
		work->rounds[1] = atoi(strchr(argv[3], '/') + 1);
	else
		work->rounds[1] = atoi(argv[3]);
	work->rounds[2] = atoi(argv[4]);
	budget_read(&budget, work->top);
	size = file_size(argv[1], budget.headroom);
	reader_init(&work->reader, argv[0], size, atof(argv[5]));
	reader_takes(&work->reader, round_reads(&work->reader), STEP);
	budget_read(&budget, work->top);
	printf("start %ld %ld\n", budget.headroom, work->reader.file.nr);
}

/*
 * PATTERN MIB|FACTORx ROUNDS-TO-FILL ROUNDS[/ROUNDS-OFF] ROUNDS-AFTER-RESHUFFLE
 * SECONDS
 */
static int rounds(char *argv[])
{
	struct workload work = { 0 };
	long long pace_ns;
	int phase, round;

	set_up(&work, argv);
	pace_ns = work.reader.pace_ns;
	for (phase = 0; phase <= 2; phase++) {
		work.reader.pace_ns = phase ? pace_ns : 0;
		if (phase == 2 && work.rounds[2])
			pattern_shuffle(&work.reader.pattern);
		for (round = 1; round <= work.rounds[phase]; round++)
			one_round(&work, phase, round);
	}
	promote_file_remove(&work.reader.file);
	return 0;
}

int main(int argc, char *argv[])
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "rounds") && argc == 8)
		return rounds(argv + 2);
	if (!strcmp(what, "scan") && argc == 4)
		return scan(argv[2]);
	if (!strcmp(what, "hot") && argc == 4)
		return hot(atol(argv[2]) << 20, atof(argv[3]));
	if (!strcmp(what, "beside") && argc == 3)
		return beside(atof(argv[2]));
	fprintf(stderr, "usage: policy-workload rounds PATTERN MIB|FACTORx FILL "
		"ROUNDS[/ROUNDS-OFF] AFTER SECONDS | scan free|full SECONDS | "
		"hot MIB SECONDS | beside SECONDS\n");
	return 1;
}
