/* SPDX-License-Identifier: Apache-2.0 */
/* Time. Tests may put their own clock behind it, so that nothing has to sleep. */
#ifndef CUBEFS_BACKENDS_BASE_CLOCK_H
#define CUBEFS_BACKENDS_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#define CUBE_TIME_TEXT 32

/* CLOCK_MONOTONIC and CLOCK_REALTIME in nanoseconds. Thread safe. */
uint64_t cube_clock_mono(void);
uint64_t cube_clock_wall(void);

/* RFC 3339, UTC, milliseconds: "2026-11-29T19:23:06.120Z"; "-" for 0. Returns @out. */
const char *cube_clock_text(uint64_t wall_ns, char out[CUBE_TIME_TEXT]);
/* The other way, with 0 to 9 digits of a second's fraction; -EINVAL. */
int cube_clock_parse(const char *s, uint64_t *ret_wall_ns);

/* Tests: both clocks stand at what @fake_ns points to; NULL gives back the real ones. Timers of the loop and
 * time-outs of helper programs go by real time all the same. */
void cube_clock_fake(const _Atomic uint64_t *fake_ns);

#endif
