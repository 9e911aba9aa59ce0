// SPDX-License-Identifier: GPL-2.0
/*
 * The switch of page cache promotion: what it takes, what it shows, who may
 * write it, and that it and numa_balancing can be set in either order.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "promote_util.h"

#define NOBODY 65534

FIXTURE(knob)
{
	struct promote_saved saved;
};

FIXTURE_SETUP(knob)
{
	const char *why = promote_no_feature();

	if (why)
		SKIP(return, "%s", why);
	ASSERT_EQ(0, promote_enable(&self->saved, false));
}

FIXTURE_TEARDOWN(knob)
{
	promote_restore(&self->saved);
}

static bool switch_is(const char *want)
{
	char text[64];

	promote_read(PROMOTE_SWITCH, text, sizeof(text));
	if (!strcmp(text, want))
		return true;
	ksft_print_msg("the switch is '%s' instead of '%s'\n", text, want);
	return false;
}

static bool state_starts_with(const char *want)
{
	char text[256] = "";

	promote_read(PROMOTE_STATE, text, sizeof(text));
	if (!strncmp(text, want, strlen(want)))
		return true;
	ksft_print_msg("state is '%s' instead of '%s'\n", text, want);
	return false;
}

TEST_F(knob, takes_words)
{
	static const char * const on[] = {
		"1", "y", "Y", "true", "on", "1\n", "y\n", "true\n", "on\n",
	};
	static const char * const off[] = {
		"0", "n", "N", "false", "off", "0\n", "n\n", "false\n", "off\n",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(on); i++) {
		ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "0"));
		EXPECT_EQ(0, promote_write(PROMOTE_SWITCH, on[i]))
			TH_LOG("writing '%s'", on[i]);
		EXPECT_TRUE(switch_is("true"));
	}
	for (i = 0; i < ARRAY_SIZE(off); i++) {
		ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
		EXPECT_EQ(0, promote_write(PROMOTE_SWITCH, off[i]))
			TH_LOG("writing '%s'", off[i]);
		EXPECT_TRUE(switch_is("false"));
	}
}

TEST_F(knob, writing_twice_is_harmless)
{
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
	EXPECT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
	EXPECT_TRUE(switch_is("true"));
	EXPECT_EQ(0, promote_write(PROMOTE_SWITCH, "0"));
	EXPECT_EQ(0, promote_write(PROMOTE_SWITCH, "0"));
	EXPECT_TRUE(switch_is("false"));
}

TEST_F(knob, refuses_the_rest)
{
	static const char * const bad[] = {
		"2", "x", "\n", " ", "nonsense", "yes please", "yellow",
		"enabled", "disabled", "-1", "10", "01", "00", "1 0", "1\n0",
		"tru", "truee", "onn", "o", "of", "0x1",
	};
	static const char * const was[] = { "0", "1" };
	size_t i, j;

	for (j = 0; j < ARRAY_SIZE(was); j++) {
		ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, was[j]));
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			EXPECT_EQ(-EINVAL,
				  promote_write(PROMOTE_SWITCH, bad[i]))
				TH_LOG("writing '%s'", bad[i]);
			EXPECT_TRUE(switch_is(j ? "true" : "false"));
		}
	}
}

TEST_F(knob, is_roots)
{
	struct stat st;

	ASSERT_EQ(0, stat(PROMOTE_SWITCH, &st));
	EXPECT_EQ(0644, st.st_mode & 07777);
	EXPECT_EQ(0, st.st_uid);
}

static int write_as_nobody(void *arg)
{
	char text[16];

	if (setgid(NOBODY) || setuid(NOBODY))
		return 1;
	if (promote_read(PROMOTE_SWITCH, text, sizeof(text)) <= 0)
		return 2;
	return promote_write(PROMOTE_SWITCH, "1") == -EACCES ? 0 : 3;
}

TEST_F(knob, refuses_an_ordinary_user)
{
	EXPECT_EQ(0, promote_in_child(write_as_nobody, NULL));
	EXPECT_TRUE(switch_is("false"));
}

/* Settings of the two knobs, and what they come to if there are two tiers. */
static const struct {
	const char *balancing;
	const char *on;
	const char *state;
} states[] = {
	{ "0", "0", "inactive" },
	{ "0", "1", "inactive" },
	{ "1", "0", "inactive" },
	{ "1", "1", "inactive" },
	{ "2", "0", "inactive" },
	{ "2", "1", "active" },
	{ "3", "1", "active" },
};

TEST_F(knob, either_order)
{
	bool tiers = promote_lower_node() >= 0;
	const char *state;
	size_t i, from;

	for (from = 0; from < ARRAY_SIZE(states); from++) {
		for (i = 0; i < ARRAY_SIZE(states); i++) {
			state = tiers ? states[i].state : "inactive";
			promote_write(PROMOTE_BALANCING, states[from].balancing);
			promote_write(PROMOTE_SWITCH, states[from].on);
			promote_write(PROMOTE_BALANCING, states[i].balancing);
			promote_write(PROMOTE_SWITCH, states[i].on);
			EXPECT_TRUE(state_starts_with(state));

			promote_write(PROMOTE_BALANCING, states[from].balancing);
			promote_write(PROMOTE_SWITCH, states[from].on);
			promote_write(PROMOTE_SWITCH, states[i].on);
			promote_write(PROMOTE_BALANCING, states[i].balancing);
			EXPECT_TRUE(state_starts_with(state));
		}
	}
}

TEST_F(knob, says_why_it_is_inactive)
{
	char text[256] = "";

	ASSERT_EQ(0, promote_write(PROMOTE_BALANCING, "0"));
	ASSERT_EQ(0, promote_write(PROMOTE_SWITCH, "1"));
	ASSERT_LT(0, promote_read(PROMOTE_STATE, text, sizeof(text)));
	EXPECT_EQ(0, strncmp(text, "inactive: ", strlen("inactive: ")));
	EXPECT_LT(strlen("inactive: "), strlen(text));
}

TEST_HARNESS_MAIN
