/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Decisions of page cache promotion: numbers in, verdict out. No folio, no
 * lock, no time source, so that policy.c compiles and is tested in userspace
 * (tools/testing/promote).
 */
#ifndef _MM_PROMOTE_POLICY_H
#define _MM_PROMOTE_POLICY_H

#include <linux/types.h>

/**
 * enum promote_heat - what the time of the last access says
 * @PROMOTE_COLD: unknown or too long ago; note the present access
 * @PROMOTE_RECENT: the same burst of accesses; leave the noted time alone, or a
 * reader that comes back within every gap would never be found hot
 * @PROMOTE_CLAIMED: recorded not long ago
 * @PROMOTE_HOT: accessed again within the hot threshold
 */
enum promote_heat {
	PROMOTE_COLD,
	PROMOTE_RECENT,
	PROMOTE_CLAIMED,
	PROMOTE_HOT,
};

/**
 * struct promote_clock - how access times are kept, all in milliseconds
 * @mask: bits of a time that are kept; a time with all of them set is unset
 * @resolution: times are rounded down to a multiple of this power of two
 * @slack: by how much two times may be closer than they look
 * @min_gap: accesses closer together than this count as one
 * @threshold: a folio accessed again after less than this is hot
 */
struct promote_clock {
	u32 mask;
	u32 resolution;
	u32 slack;
	u32 min_gap;
	u32 threshold;
};

/**
 * struct promote_scarcity - large folios that a node has no memory for
 * @until_ms: time until which it is not asked again
 * @order: the smallest order that failed, 0 if none did
 * @failures: how often in a row
 */
struct promote_scarcity {
	u32 until_ms;
	u8 order;
	u8 failures;
};

enum promote_heat promote_heat(const struct promote_clock *clock, u32 now,
			       u32 last, unsigned int order);
u32 promote_access_time(const struct promote_clock *clock, u32 now);
u32 promote_claim_time(const struct promote_clock *clock, u32 now);
bool promote_scarce(struct promote_scarcity scarcity, unsigned int order,
		    u32 now_ms);
struct promote_scarcity
promote_scarcity_failed(struct promote_scarcity scarcity, unsigned int order,
			u32 now_ms);
struct promote_scarcity
promote_scarcity_moved(struct promote_scarcity scarcity, unsigned int order);
unsigned long promote_zone_room(unsigned long free, unsigned long wmark,
				unsigned long reserve, unsigned long managed);
s64 promote_pace_earn(s64 credit, u64 ran);
s64 promote_pace_spend(s64 credit, u64 took);
u64 promote_pace_retry(u64 now, s64 credit);

#endif /* _MM_PROMOTE_POLICY_H */
