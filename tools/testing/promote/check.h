/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of mm/promote/policy.c share: TAP on stdout. */
#ifndef _PROMOTE_TEST_CHECK_H
#define _PROMOTE_TEST_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#define MS	1000000LL

static unsigned int nr_tests, nr_failed;

static void check(bool ok, const char *what)
{
	nr_tests++;
	nr_failed += !ok;
	printf("%sok %u - %s\n", ok ? "" : "not ", nr_tests, what);
}

/* The plan, and the exit status. */
static int check_end(void)
{
	printf("1..%u\n", nr_tests);
	return nr_failed != 0;
}

#endif /* _PROMOTE_TEST_CHECK_H */
