/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the plugin uses of QEMU's interface for TCG plugins. Debian packages no
 * header for it. QEMU_PLUGIN is the version of the interface: 1 for QEMU 7.2,
 * 3 from QEMU 9.1 on. They differ here in one function.
 */
#ifndef BENCH_PLUGIN_QEMU_H
#define BENCH_PLUGIN_QEMU_H

#include <stddef.h>
#include <stdint.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info;	/* of the virtual machine, not looked at */
typedef uint64_t qemu_plugin_id_t;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

typedef void (*qemu_plugin_tb_trans_t)(qemu_plugin_id_t id,
				       struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_t)(unsigned int cpu, void *data);
typedef void (*qemu_plugin_exit_t)(qemu_plugin_id_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_plugin_tb_trans_t function);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  qemu_plugin_exec_t function,
					  enum qemu_plugin_cb_flags flags,
					  void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    qemu_plugin_exit_t function, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#if QEMU_PLUGIN == 1
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#else
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest,
			     size_t len);
#endif

#endif /* BENCH_PLUGIN_QEMU_H */
