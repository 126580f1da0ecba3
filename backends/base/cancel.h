/* SPDX-License-Identifier: Apache-2.0 */
/* A flag that one thread raises and another, busy with something long, notices. */
#ifndef CUBEFS_BACKENDS_BASE_CANCEL_H
#define CUBEFS_BACKENDS_BASE_CANCEL_H

#include <stdbool.h>

/* Reference counted, since the one who cancels and the one who works end in any order. */
struct cube_cancel;

struct cube_cancel *cube_cancel_new(void); /* one reference; NULL when out of memory or descriptors */
struct cube_cancel *cube_cancel_ref(struct cube_cancel *c);
void cube_cancel_unref(struct cube_cancel *c); /* NULL is harmless */

/* Raise it. Any thread, any number of times, async-signal-safe, keeps errno. NULL is harmless. */
void cube_cancel_fire(struct cube_cancel *c);

/* NULL never fires. */
bool cube_cancel_fired(const struct cube_cancel *c);
/* A descriptor that is readable once fired, for poll(2); -1 for NULL. Never read from it. */
int cube_cancel_fd(const struct cube_cancel *c);

#endif
