// SPDX-License-Identifier: GPL-2.0
/*
 * The switch in /sys/kernel/mm/numa/ and what is in debugfs under promote/.
 */
#include <linux/debugfs.h>
#include <linux/init.h>
#include <linux/memory-tiers.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/string_choices.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "budget.h"
#include "internal.h"

/* Long enough for any reader, short enough for the clock to tell. */
#define PROMOTE_MIN_GAP_MAX_MS	30000

/*
 * kstrtobool() looks at the first letter or two and takes "nonsense" for no.
 * The words here are compared whole; odd indices mean on.
 */
static const char * const promote_switch_words[] = {
	"0", "1", "n", "y", "N", "Y", "false", "true", "off", "on",
};

static ssize_t pagecache_promotion_enabled_show(struct kobject *kobj,
						struct kobj_attribute *attr,
						char *buf)
{
	return sysfs_emit(buf, "%s\n", str_true_false(promote_is_enabled()));
}

static ssize_t pagecache_promotion_enabled_store(struct kobject *kobj,
						 struct kobj_attribute *attr,
						 const char *buf, size_t count)
{
	int word = sysfs_match_string(promote_switch_words, buf);

	if (word < 0)
		return word;
	promote_set_enabled(word & 1);
	return count;
}

static struct kobj_attribute pagecache_promotion_enabled_attr =
	__ATTR_RW(pagecache_promotion_enabled);

static int promote_state_show(struct seq_file *m, void *unused)
{
	const char *reason = promote_inactive_reason();

	if (reason)
		seq_printf(m, "inactive: %s\n", reason);
	else
		seq_puts(m, "active\n");
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(promote_state);

static int promote_nodes_show(struct seq_file *m, void *unused)
{
	promote_budget_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(promote_nodes);

static int promote_min_gap_get(void *data, u64 *val)
{
	*val = READ_ONCE(promote_min_gap_ms);
	return 0;
}

static int promote_min_gap_set(void *data, u64 val)
{
	if (val > PROMOTE_MIN_GAP_MAX_MS)
		return -EINVAL;
	WRITE_ONCE(promote_min_gap_ms, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(promote_min_gap_fops, promote_min_gap_get,
			 promote_min_gap_set, "%llu\n");

static int promote_penalty_get(void *data, u64 *val)
{
	*val = READ_ONCE(promote_penalty_ns);
	return 0;
}

static int promote_penalty_set(void *data, u64 val)
{
	if (val > NSEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(promote_penalty_ns, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(promote_penalty_fops, promote_penalty_get,
			 promote_penalty_set, "%llu\n");

static int __init promote_sysfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("promote", NULL);

	debugfs_create_file("state", 0400, dir, NULL, &promote_state_fops);
	debugfs_create_file("nodes", 0400, dir, NULL, &promote_nodes_fops);
	debugfs_create_file("min_gap_ms", 0600, dir, NULL,
			    &promote_min_gap_fops);
	debugfs_create_file("penalty_ns", 0600, dir, NULL,
			    &promote_penalty_fops);

	if (!numa_kobj)
		return -ENOENT;
	return sysfs_create_file(numa_kobj,
				 &pagecache_promotion_enabled_attr.attr);
}
late_initcall(promote_sysfs_init);
