/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM promote

#if !defined(_TRACE_PROMOTE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_PROMOTE_H

#include <linux/tracepoint.h>

#define PROMOTE_REFUSALS				\
	EM(PROMOTE_FAIL_STALE,		"stale")	\
	EM(PROMOTE_FAIL_MAPPED,		"mapped")	\
	EM(PROMOTE_FAIL_DIRTY,		"dirty")	\
	EM(PROMOTE_FAIL_WRITEBACK,	"writeback")	\
	EM(PROMOTE_FAIL_LOCKED,		"locked")	\
	EM(PROMOTE_FAIL_BUSY,		"busy")		\
	EM(PROMOTE_FAIL_NODE,		"node")		\
	EM(PROMOTE_FAIL_CPUSET,		"cpuset")	\
	EM(PROMOTE_FAIL_POLICY,		"policy")	\
	EM(PROMOTE_FAIL_RATE,		"rate")		\
	EM(PROMOTE_FAIL_BUDGET,		"budget")	\
	EM(PROMOTE_FAIL_NOMEM,		"nomem")	\
	EM(PROMOTE_FAIL_OTHER,		"other")	\
	EMe(PROMOTE_ACCEPTED,		"none")

#undef EM
#undef EMe
#define EM(a, b)	TRACE_DEFINE_ENUM(a);
#define EMe(a, b)	TRACE_DEFINE_ENUM(a);

PROMOTE_REFUSALS

#undef EM
#undef EMe
#define EM(a, b)	{ a, b },
#define EMe(a, b)	{ a, b }

TRACE_EVENT(promote_record,

	TP_PROTO(int nid, unsigned int order, unsigned int nr_queued),

	TP_ARGS(nid, order, nr_queued),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned int, order)
		__field(unsigned int, nr_queued)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->order = order;
		__entry->nr_queued = nr_queued;
	),

	TP_printk("nid=%d order=%u nr_queued=%u",
		  __entry->nid, __entry->order, __entry->nr_queued)
);

TRACE_EVENT(promote_drain,

	TP_PROTO(int nid, unsigned int nr_drained, unsigned int nr_left,
		 unsigned long nr_moved, int refusal),

	TP_ARGS(nid, nr_drained, nr_left, nr_moved, refusal),

	TP_STRUCT__entry(
		__field(int, nid)
		__field(unsigned int, nr_drained)
		__field(unsigned int, nr_left)
		__field(unsigned long, nr_moved)
		__field(int, refusal)
	),

	TP_fast_assign(
		__entry->nid = nid;
		__entry->nr_drained = nr_drained;
		__entry->nr_left = nr_left;
		__entry->nr_moved = nr_moved;
		__entry->refusal = refusal;
	),

	TP_printk("nid=%d nr_drained=%u nr_left=%u nr_moved=%lu refusal=%s",
		  __entry->nid, __entry->nr_drained, __entry->nr_left,
		  __entry->nr_moved,
		  __print_symbolic(__entry->refusal, PROMOTE_REFUSALS))
);

TRACE_EVENT(promote_migrate,

	TP_PROTO(int src_nid, int dst_nid, unsigned int order,
		 unsigned int nr_pages, unsigned int nr_moved, int refusal),

	TP_ARGS(src_nid, dst_nid, order, nr_pages, nr_moved, refusal),

	TP_STRUCT__entry(
		__field(int, src_nid)
		__field(int, dst_nid)
		__field(unsigned int, order)
		__field(unsigned int, nr_pages)
		__field(unsigned int, nr_moved)
		__field(int, refusal)
	),

	TP_fast_assign(
		__entry->src_nid = src_nid;
		__entry->dst_nid = dst_nid;
		__entry->order = order;
		__entry->nr_pages = nr_pages;
		__entry->nr_moved = nr_moved;
		__entry->refusal = refusal;
	),

	TP_printk("src_nid=%d dst_nid=%d order=%u nr_pages=%u nr_moved=%u refusal=%s",
		  __entry->src_nid, __entry->dst_nid, __entry->order,
		  __entry->nr_pages, __entry->nr_moved,
		  __print_symbolic(__entry->refusal, PROMOTE_REFUSALS))
);

#undef EM
#undef EMe

#endif /* _TRACE_PROMOTE_H */

#include <trace/define_trace.h>
