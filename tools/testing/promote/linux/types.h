/* SPDX-License-Identifier: GPL-2.0 */
/* What mm/promote/policy.c needs of the kernel's <linux/types.h>. */
#ifndef _PROMOTE_TEST_LINUX_TYPES_H
#define _PROMOTE_TEST_LINUX_TYPES_H

#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef int64_t s64;
typedef uint64_t u64;

#endif
