/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM promote

#if !defined(_TRACE_PROMOTE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PROMOTE_H

#include <linux/tracepoint.h>

TRACE_DEFINE_ENUM(PROMOTE_FAIL_STALE);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_MAPPED);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_DIRTY);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_WRITEBACK);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_LOCKED);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_BUSY);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_NODE);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_CPUSET);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_POLICY);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_RATE);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_BUDGET);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_NOMEM);
TRACE_DEFINE_ENUM(PROMOTE_FAIL_OTHER);
TRACE_DEFINE_ENUM(PROMOTE_ACCEPTED);

#define show_promote_refusal(val)			\
	__print_symbolic(val,				\
			 { PROMOTE_FAIL_STALE, "stale" },\
			 { PROMOTE_FAIL_MAPPED, "mapped" },\
			 { PROMOTE_FAIL_DIRTY, "dirty" },\
			 { PROMOTE_FAIL_WRITEBACK, "writeback" },\
			 { PROMOTE_FAIL_LOCKED, "locked" },\
			 { PROMOTE_FAIL_BUSY, "busy" },	\
			 { PROMOTE_FAIL_NODE, "node" },	\
			 { PROMOTE_FAIL_CPUSET, "cpuset" },\
			 { PROMOTE_FAIL_POLICY, "policy" },\
			 { PROMOTE_FAIL_RATE, "rate" },	\
			 { PROMOTE_FAIL_BUDGET, "budget" },\
			 { PROMOTE_FAIL_NOMEM, "nomem" },\
			 { PROMOTE_FAIL_OTHER, "other" },\
			 { PROMOTE_ACCEPTED, "none" })

TRACE_EVENT(promote_record,
	    TP_PROTO(int nid, unsigned int order, unsigned int nr_queued),

	    TP_ARGS(nid, order, nr_queued),

	    TP_STRUCT__entry(__field(int, nid)
			     __field(unsigned int, order)
			     __field(unsigned int, nr_queued)
	    ),

	    TP_fast_assign(__entry->nid = nid;
			   __entry->order = order;
			   __entry->nr_queued = nr_queued;
	    ),

	    TP_printk("nid=%d order=%u nr_queued=%u",
		      __entry->nid,
		      __entry->order,
		      __entry->nr_queued)
);

TRACE_EVENT(promote_refused,
	    TP_PROTO(int nid, unsigned int order, int refusal),

	    TP_ARGS(nid, order, refusal),

	    TP_STRUCT__entry(__field(int, nid)
			     __field(unsigned int, order)
			     __field(int, refusal)
	    ),

	    TP_fast_assign(__entry->nid = nid;
			   __entry->order = order;
			   __entry->refusal = refusal;
	    ),

	    TP_printk("nid=%d order=%u refusal=%s",
		      __entry->nid,
		      __entry->order,
		      show_promote_refusal(__entry->refusal))
);

TRACE_EVENT(promote_drain,
	    TP_PROTO(int nid, unsigned int nr_drained, unsigned int nr_left,
		     unsigned long nr_moved, int refusal),

	    TP_ARGS(nid, nr_drained, nr_left, nr_moved, refusal),

	    TP_STRUCT__entry(__field(int, nid)
			     __field(unsigned int, nr_drained)
			     __field(unsigned int, nr_left)
			     __field(unsigned long, nr_moved)
			     __field(int, refusal)
	    ),

	    TP_fast_assign(__entry->nid = nid;
			   __entry->nr_drained = nr_drained;
			   __entry->nr_left = nr_left;
			   __entry->nr_moved = nr_moved;
			   __entry->refusal = refusal;
	    ),

	    TP_printk("nid=%d nr_drained=%u nr_left=%u nr_moved=%lu refusal=%s",
		      __entry->nid,
		      __entry->nr_drained,
		      __entry->nr_left,
		      __entry->nr_moved,
		      show_promote_refusal(__entry->refusal))
);

TRACE_EVENT(promote_migrate,
	    TP_PROTO(int src_nid, int dst_nid, unsigned int order,
		     unsigned int nr_pages, unsigned int nr_moved, int refusal),

	    TP_ARGS(src_nid, dst_nid, order, nr_pages, nr_moved, refusal),

	    TP_STRUCT__entry(__field(int, src_nid)
			     __field(int, dst_nid)
			     __field(unsigned int, order)
			     __field(unsigned int, nr_pages)
			     __field(unsigned int, nr_moved)
			     __field(int, refusal)
	    ),

	    TP_fast_assign(__entry->src_nid = src_nid;
			   __entry->dst_nid = dst_nid;
			   __entry->order = order;
			   __entry->nr_pages = nr_pages;
			   __entry->nr_moved = nr_moved;
			   __entry->refusal = refusal;
	    ),

	    TP_printk("src_nid=%d dst_nid=%d order=%u nr_pages=%u nr_moved=%u refusal=%s",
		      __entry->src_nid,
		      __entry->dst_nid,
		      __entry->order,
		      __entry->nr_pages,
		      __entry->nr_moved,
		      show_promote_refusal(__entry->refusal))
);

TRACE_EVENT(promote_budget,
	    TP_PROTO(int nid, s64 income_ns, s64 credit_ns, s64 pool_ns,
		     u32 threshold_ms),

	    TP_ARGS(nid, income_ns, credit_ns, pool_ns, threshold_ms),

	    TP_STRUCT__entry(__field(int, nid)
			     __field(s64, income_ns)
			     __field(s64, credit_ns)
			     __field(s64, pool_ns)
			     __field(u32, threshold_ms)
	    ),

	    TP_fast_assign(__entry->nid = nid;
			   __entry->income_ns = income_ns;
			   __entry->credit_ns = credit_ns;
			   __entry->pool_ns = pool_ns;
			   __entry->threshold_ms = threshold_ms;
	    ),

	    TP_printk("nid=%d income_ns=%lld credit_ns=%lld pool_ns=%lld threshold_ms=%u",
		      __entry->nid,
		      __entry->income_ns,
		      __entry->credit_ns,
		      __entry->pool_ns,
		      __entry->threshold_ms)
);

#endif /* _TRACE_PROMOTE_H */

#include <trace/define_trace.h>
