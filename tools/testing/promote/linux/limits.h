/* SPDX-License-Identifier: GPL-2.0 */
/* What mm/promote/policy.c needs of the kernel's <linux/limits.h>. */
#ifndef _PROMOTE_TEST_LINUX_LIMITS_H
#define _PROMOTE_TEST_LINUX_LIMITS_H

#define U32_MAX UINT32_MAX

#endif
