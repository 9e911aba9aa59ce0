/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the workload tells the plugin: a long NOP whose displacement is one of
 * these. The plugin sees it when the block it is in is translated.
 */
#ifndef BENCH_PLUGIN_MARKER_H
#define BENCH_PLUGIN_MARKER_H

#define MARKER_START	0x70726f01	/* count from here, from zero */
#define MARKER_STOP	0x70726f02	/* to here, and write down a region */

/* nopl displacement(%rax) */
#define MARKER_OPCODE	{ 0x0f, 0x1f, 0x80 }

#define MARKER_TEXT(value)	#value
#define MARKER_NOP(value) \
	__asm__ volatile("nopl " MARKER_TEXT(value) "(%%rax)" : : : "memory")

#endif /* BENCH_PLUGIN_MARKER_H */
