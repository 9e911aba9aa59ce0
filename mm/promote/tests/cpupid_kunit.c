// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of NUMA balancing with what memory tiering leaves in the last
 * cpupid of a folio: a time is not a CPU number. The folio is in the top tier,
 * as one whose node has joined it.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/numa_balancing.h>
#include <linux/sched/sysctl.h>

struct cpupid_test {
	struct folio *folio;
	int cpu;
	int nid;
	int numa_balancing_mode;
};

/* Neither this task nor what stands for none. */
static int another_pid(void)
{
	int pid = (current->pid + 1) & LAST__PID_MASK;

	return pid == LAST__PID_MASK ? 0 : pid;
}

/* A time can be any number; this one names no CPU and not this task. */
static int time_as_cpupid(void)
{
	return cpu_pid_to_cpupid(nr_cpu_ids, another_pid());
}

static int cpupid_test_init(struct kunit *test)
{
	struct cpupid_test *ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ctx);
	test->priv = ctx;
	ctx->cpu = cpumask_first(cpu_online_mask);
	ctx->nid = cpu_to_node(ctx->cpu);
	if (cpupid_to_cpu(time_as_cpupid()) != nr_cpu_ids)
		kunit_skip(test, "a cpupid can only name CPUs that exist");

	ctx->folio = __folio_alloc_node(GFP_KERNEL, 0, ctx->nid);
	KUNIT_ASSERT_NOT_NULL(test, ctx->folio);
	ctx->numa_balancing_mode = sysctl_numa_balancing_mode;
	set_numabalancing_state(true);
	return 0;
}

static void cpupid_test_exit(struct kunit *test)
{
	struct cpupid_test *ctx = test->priv;

	if (!ctx || !ctx->folio)
		return;
	set_numabalancing_state(ctx->numa_balancing_mode);
	sysctl_numa_balancing_mode = ctx->numa_balancing_mode;
	folio_put(ctx->folio);
}

static bool migrates(struct cpupid_test *ctx, int last_cpupid)
{
	folio_xchg_last_cpupid(ctx->folio, last_cpupid);
	return should_numa_migrate_memory(current, ctx->folio, ctx->nid,
					  ctx->cpu);
}

static void cpupid_time_does_not_migrate(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, migrates(test->priv, time_as_cpupid()));
}

/* As ever: the first fault of a young task, and those that it has alone. */
static void cpupid_first_fault_migrates(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, current->numa_preferred_nid, NUMA_NO_NODE);
	KUNIT_EXPECT_TRUE(test, migrates(test->priv, -1));
}

static void cpupid_private_fault_migrates(struct kunit *test)
{
	struct cpupid_test *ctx = test->priv;

	KUNIT_EXPECT_TRUE(test, migrates(ctx, cpu_pid_to_cpupid(ctx->cpu,
								current->pid)));
}

/* A shared fault by a CPU of the node that asks, as before. */
static void cpupid_shared_fault_migrates(struct kunit *test)
{
	struct cpupid_test *ctx = test->priv;
	int cpupid = cpu_pid_to_cpupid(ctx->cpu, another_pid());

	KUNIT_EXPECT_TRUE(test, migrates(ctx, cpupid));
}

static void cpupid_time_joins_no_group(struct kunit *test)
{
	struct cpupid_test *ctx = test->priv;

	KUNIT_ASSERT_EQ(test, kunit_attach_mm(), 0);
	task_numa_fault(time_as_cpupid(), ctx->nid, 1, 0);
	KUNIT_ASSERT_NOT_NULL(test, current->numa_faults);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(current->numa_group), NULL);
}

static struct kunit_case cpupid_test_cases[] = {
	KUNIT_CASE(cpupid_time_does_not_migrate),
	KUNIT_CASE(cpupid_first_fault_migrates),
	KUNIT_CASE(cpupid_private_fault_migrates),
	KUNIT_CASE(cpupid_shared_fault_migrates),
	KUNIT_CASE(cpupid_time_joins_no_group),
	{}
};

static struct kunit_suite cpupid_test_suite = {
	.name = "promote_cpupid",
	.init = cpupid_test_init,
	.exit = cpupid_test_exit,
	.test_cases = cpupid_test_cases,
};

/* At boot only: it sets what an administrator may set later. */
kunit_test_init_section_suites(&cpupid_test_suite);
