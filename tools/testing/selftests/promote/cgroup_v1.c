// SPDX-License-Identifier: GPL-2.0
/*
 * Page cache promotion where the memory and cpuset controllers are mounted as
 * cgroup v1, apart: the cpuset of the reader counts. What a file is charged to
 * has no cpuset then, but the charge moves with the pages all the same.
 *
 * Can run only as long as cgroup v2 does not use these controllers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "promote_test.h"

#define FILE_BYTES (1UL << 20)

enum { CPUSET, MEMORY, NR_CONTROLLERS };

static const char * const controllers[NR_CONTROLLERS] = { "cpuset", "memory" };

FIXTURE(v1)
{
	struct promote_test t;
	char root[32];
	char mount[NR_CONTROLLERS][64];
	char lower[128];
	char owner[128];
	char reader[128];
};

static const char *mount_controllers(char *root, char mounts[][64])
{
	int i;

	if (!mkdtemp(root))
		return "no directory to mount cgroups on";
	for (i = 0; i < NR_CONTROLLERS; i++) {
		sprintf(mounts[i], "%s/%s", root, controllers[i]);
		if (mkdir(mounts[i], 0755))
			return "no directory to mount cgroups on";
		if (mount("promote", mounts[i], "cgroup", 0, controllers[i]))
			return errno == EBUSY ?
			       "cgroup v2 uses the controllers" :
			       "no cgroup v1 controllers in this kernel";
	}
	return NULL;
}

static int make_group(const char *mount, const char *name, char *path)
{
	sprintf(path, "%s/%s", mount, name);
	return mkdir(path, 0755);
}

/* A v1 cpuset has nothing until it is told. */
static int set_cpuset(const char *mount, const char *path, int node)
{
	char cpus[1024], full[128], mems[16];

	snprintf(full, sizeof(full), "%s/cpuset.cpus", mount);
	if (promote_read(full, cpus, sizeof(cpus)) <= 0)
		return -1;
	snprintf(mems, sizeof(mems), "%d", node);
	return promote_cgroup_set(path, "cpuset.cpus", cpus) ||
	       promote_cgroup_set(path, "cpuset.mems", mems);
}

FIXTURE_SETUP(v1)
{
	const char *why;

	PROMOTE_TEST_START(NULL);
	ASSERT_EQ(0, promote_run_on_node(self->t.top));
	strcpy(self->root, "/tmp/promote.XXXXXX");
	why = mount_controllers(self->root, self->mount);
	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, make_group(self->mount[CPUSET], "lower", self->lower));
	ASSERT_EQ(0, make_group(self->mount[MEMORY], "owner", self->owner));
	ASSERT_EQ(0, make_group(self->mount[MEMORY], "reader", self->reader));
	ASSERT_EQ(0, set_cpuset(self->mount[CPUSET], self->lower,
				self->t.lower));
	ASSERT_EQ(0, promote_file_make(&self->t.file, FILE_BYTES,
				       self->t.lower, false));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_enable(&self->t.saved, true));
}

/* The number of the v1 hierarchy that a controller is in, 0 for none. */
static int hierarchy(const char *controller)
{
	size_t len = strlen(controller);
	char line[128];
	int number = 0;
	FILE *file;

	file = fopen("/proc/cgroups", "r");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, controller, len) && line[len] == '\t')
			number = atoi(line + len);
	}
	fclose(file);
	return number;
}

/*
 * A hierarchy ends when it is not mounted any more, unless there was a cgroup
 * then that was not gone for good. So give the controllers back to cgroup v2.
 */
static void unmount_controller(const char *mount_point, const char *controller)
{
	int tries;

	for (tries = 0; tries < 50; tries++) {
		umount(mount_point);
		usleep(100000);
		if (!hierarchy(controller))
			break;
		mount("promote", mount_point, "cgroup", 0, controller);
	}
	rmdir(mount_point);
}

FIXTURE_TEARDOWN(v1)
{
	int i;

	promote_test_end(&self->t);
	promote_cgroup_remove(self->lower);
	promote_cgroup_remove(self->owner);
	promote_cgroup_remove(self->reader);
	for (i = 0; i < NR_CONTROLLERS; i++)
		unmount_controller(self->mount[i], controllers[i]);
	rmdir(self->root);
}

struct member {
	struct promote_file *file;
	const char *group;
	int node;
	/* Until all has moved since, if it is expected to. */
	const struct promote_counts *before;
};

static int read_in_group(void *arg)
{
	struct member *member = arg;

	int err;

	if (promote_cgroup_enter(member->group))
		return 1;
	if (member->before)
		err = promote_file_read_until_moved(member->file,
						    member->before);
	else
		err = promote_file_passes(member->file, PROMOTE_PASSES);
	return err ? 2 : 0;
}

static int place_in_group(void *arg)
{
	struct member *member = arg;

	if (promote_cgroup_enter(member->group))
		return 1;
	return promote_file_place(member->file, member->node, false) ? 2 : 0;
}

TEST_F_TIMEOUT(v1, cpuset_of_the_reader, PROMOTE_TIMEOUT)
{
	struct member reader = {
		.file = &self->t.file,
		.group = self->lower,
	};

	ASSERT_EQ(0, promote_in_child(read_in_group, &reader));
	EXPECT_NOTHING_MOVED();
	EXPECT_REFUSED_ONLY_AS(CPUSET);
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.lower));
	EXPECT_MOVES_NOW();
}

/* Page cache does not remember the v1 cpuset of who has read it in. */
TEST_F_TIMEOUT(v1, cpuset_of_the_owner, PROMOTE_TIMEOUT)
{
	struct member owner = {
		.file = &self->t.file,
		.group = self->lower,
		.node = self->t.lower,
	};

	ASSERT_EQ(0, promote_in_child(place_in_group, &owner));
	promote_count(&self->t.before);
	EXPECT_MOVES_NOW();
	EXPECT_EQ(0, SINCE(FAIL_CPUSET));
}

/* Pages of files that a memory cgroup is charged for on a node. */
static long charged(const char *group, int node)
{
	char path[PATH_MAX], line[1024], name[16], *at;
	long pages = -1;
	FILE *stat;

	snprintf(path, sizeof(path), "%s/memory.numa_stat", group);
	snprintf(name, sizeof(name), " N%d=", node);
	stat = fopen(path, "r");
	if (!stat)
		return -1;
	while (fgets(line, sizeof(line), stat)) {
		at = strstr(line, name);
		if (at && !strncmp(line, "file=", 5))
			pages = strtol(at + strlen(name), NULL, 10);
	}
	fclose(stat);
	return pages;
}

/*
 * The counters lag behind by two seconds or so, and what a CPU has in a batch
 * counts for no node.
 */
static bool charge_becomes(const char *group, int node, long want)
{
	int tries;

	for (tries = 0; tries < 60; tries++) {
		promote_flush_lru();
		if (charged(group, node) == want)
			return true;
		usleep(200000);
	}
	printf("# %s: %ld pages on node %d, not %ld\n", group,
	       charged(group, node), node, want);
	return false;
}

TEST_F_TIMEOUT(v1, charge_moves_with_the_pages, PROMOTE_TIMEOUT)
{
	struct member owner = {
		.file = &self->t.file,
		.group = self->owner,
		.node = self->t.lower,
	};
	struct member reader = {
		.file = &self->t.file,
		.group = self->reader,
		.before = &self->t.before,
	};

	ASSERT_EQ(0, promote_in_child(place_in_group, &owner));
	EXPECT_TRUE(charge_becomes(self->owner, self->t.lower,
				   self->t.file.nr));
	promote_count(&self->t.before);
	ASSERT_EQ(0, promote_in_child(read_in_group, &reader));
	EXPECT_EQ(self->t.file.nr, SINCE(SUCCESS));
	EXPECT_TRUE(charge_becomes(self->owner, self->t.top, self->t.file.nr));
	EXPECT_TRUE(charge_becomes(self->owner, self->t.lower, 0));
	EXPECT_EQ(0, charged(self->reader, self->t.top));
	EXPECT_TRUE(promote_file_is_on(&self->t.file, self->t.top));
}

TEST_HARNESS_MAIN
