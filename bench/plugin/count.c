// SPDX-License-Identifier: GPL-2.0
/*
 * A TCG plugin that counts how often each block of kernel code is executed
 * between two markers of the workload.
 *
 * Each region is written to the file of the argument "out=": a line "region",
 * a line "user INSTRUCTIONS", and for each block of the kernel
 * "ADDRESS INSTRUCTIONS EXECUTIONS", with " rep" behind where the block begins
 * with a repeated string instruction. Under -icount such an instruction ends
 * its block, and each further step is one execution of a block of its own.
 *
 * The machine must have one CPU. With all CPUs in one thread, as -icount wants
 * it, QEMU 10.0 tells a callback which CPU has translated a block, not which
 * executes it; inline operations for each CPU have corrupted the guest.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marker.h"
#include "qemu.h"

/* More blocks than a guest of this size translates. */
#define BUCKETS (1 << 16)
#define KERNEL_HALF (1ULL << 63)

struct block {
	struct block *next;		/* of the same bucket */
	struct block *next_counted;	/* executed in this region */
	uint64_t address;
	uint32_t insns;
	uint32_t marker;
	bool rep;
	uint64_t executions;
};

__attribute__((visibility("default"))) int qemu_plugin_version = QEMU_PLUGIN;

static struct block *buckets[BUCKETS];
static struct block *counted;
static uint64_t user_insns;
static bool counting;
static FILE *out;

static size_t insn_bytes(const struct qemu_plugin_insn *insn, uint8_t *bytes,
			 size_t size)
{
	size_t len = qemu_plugin_insn_size(insn);

	if (len > size)
		len = size;
#if QEMU_PLUGIN == 1
	memcpy(bytes, qemu_plugin_insn_data(insn), len);
	return len;
#else
	return qemu_plugin_insn_data(insn, bytes, len);
#endif
}

/* The displacement if this is a marker, 0 if not. */
static uint32_t marker_of(const struct qemu_plugin_insn *insn)
{
	static const uint8_t opcode[] = MARKER_OPCODE;
	uint8_t bytes[16];
	uint32_t value;

	if (insn_bytes(insn, bytes, sizeof(bytes)) != sizeof(opcode) + sizeof(value) ||
	    memcmp(bytes, opcode, sizeof(opcode)))
		return 0;
	memcpy(&value, bytes + sizeof(opcode), sizeof(value));
	return value == MARKER_START || value == MARKER_STOP ? value : 0;
}

/* Is it MOVS, CMPS, STOS, LODS or SCAS with a REP prefix? */
static bool is_rep(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[16];
	size_t at = 1, len = insn_bytes(insn, bytes, sizeof(bytes));

	if (len < 2 || (bytes[0] != 0xf3 && bytes[0] != 0xf2))
		return false;
	if ((bytes[at] & 0xf0) == 0x40)	/* REX */
		at++;
	return at < len && bytes[at] >= 0xa4 && bytes[at] <= 0xaf &&
	       bytes[at] != 0xa8 && bytes[at] != 0xa9;
}

static void start(void)
{
	for (; counted; counted = counted->next_counted)
		counted->executions = 0;
	user_insns = 0;
	counting = true;
}

static void stop(void)
{
	struct block *block;

	if (!counting)
		return;
	counting = false;
	fprintf(out, "region\nuser %llu\n", (unsigned long long)user_insns);
	for (block = counted; block; block = block->next_counted)
		fprintf(out, "%llx %u %llu%s\n",
			(unsigned long long)block->address, block->insns,
			(unsigned long long)block->executions,
			block->rep ? " rep" : "");
	fflush(out);
}

static void executed(unsigned int cpu, void *data)
{
	struct block *block = data;

	(void)cpu;
	if (block->marker == MARKER_START)
		start();
	else if (block->marker == MARKER_STOP)
		stop();
	if (!counting)
		return;
	if (block->address < KERNEL_HALF) {
		user_insns += block->insns;
		return;
	}
	if (!block->executions++) {
		block->next_counted = counted;
		counted = block;
	}
}

/* The same code can be translated again; the part that is executed varies. */
static struct block *find_block(uint64_t address, uint32_t insns,
				uint32_t marker, bool rep)
{
	struct block **bucket = &buckets[(address ^ address >> 16) % BUCKETS];
	struct block *block;

	for (block = *bucket; block; block = block->next) {
		if (block->address == address && block->insns == insns &&
		    block->marker == marker && block->rep == rep)
			return block;
	}
	block = calloc(1, sizeof(*block));
	if (!block)
		abort();
	block->address = address;
	block->insns = insns;
	block->marker = marker;
	block->rep = rep;
	block->next = *bucket;
	*bucket = block;
	return block;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	uint64_t address = qemu_plugin_tb_vaddr(tb);
	size_t i, insns = qemu_plugin_tb_n_insns(tb);
	uint32_t marker = 0;

	(void)id;
	if (address < KERNEL_HALF) {
		for (i = 0; i < insns && !marker; i++)
			marker = marker_of(qemu_plugin_tb_get_insn(tb, i));
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, QEMU_PLUGIN_CB_NO_REGS,
		find_block(address, insns, marker,
			   is_rep(qemu_plugin_tb_get_insn(tb, 0))));
}

static void finished(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	fclose(out);
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "usage: -plugin count.so,out=FILE\n");
		return 1;
	}
	out = fopen(argv[0] + 4, "w");
	if (!out) {
		perror(argv[0] + 4);
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, finished, NULL);
	return 0;
}
