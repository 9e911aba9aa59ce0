/* SPDX-License-Identifier: GPL-2.0 */
/* What mm/promote/policy.c needs of the kernel's <linux/minmax.h>. */
#ifndef _PROMOTE_TEST_LINUX_MINMAX_H
#define _PROMOTE_TEST_LINUX_MINMAX_H

#define min(x, y) ({		\
	__typeof__(x) x_ = (x);	\
	__typeof__(y) y_ = (y);	\
	x_ < y_ ? x_ : y_; })
#define max(x, y) ({		\
	__typeof__(x) x_ = (x);	\
	__typeof__(y) y_ = (y);	\
	x_ > y_ ? x_ : y_; })
#define clamp(val, lo, hi)	min(max(val, lo), hi)
#define min_t(type, x, y)	min((type)(x), (type)(y))
#define clamp_t(type, val, lo, hi) \
	clamp((type)(val), (type)(lo), (type)(hi))

#endif
