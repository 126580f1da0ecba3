/* SPDX-License-Identifier: Apache-2.0 */
/* Strict parsing of numbers: the whole string or nothing. */
#ifndef CUBEFS_BACKENDS_BASE_NUM_H
#define CUBEFS_BACKENDS_BASE_NUM_H

#include <stdint.h>

/* All: 0, -EINVAL, or -ERANGE for a number that is one but too large; *ret is written only with 0. */

/* Decimal digits only (no sign, no blanks), at most @max. */
int cube_num_u64(const char *s, uint64_t max, uint64_t *ret);
/* A size in bytes with an optional suffix K, M, G, T (1024, either case). */
int cube_num_size(const char *s, uint64_t *ret);
/* Decimal with an optional fraction of 1 to 3 digits ("0.5", "2"), as thousandths; for cpus and seconds. */
int cube_num_milli(const char *s, uint64_t *ret);
/* Octal digits, at most 07777. */
int cube_num_mode(const char *s, unsigned *ret);
/* "yes|no|true|false|on|off|1|0" */
int cube_num_bool(const char *s, int *ret);

#endif
