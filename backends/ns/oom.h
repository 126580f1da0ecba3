/* SPDX-License-Identifier: Apache-2.0 */
/* Was it the memory limit? Asked by a link when something inside was killed by nobody that it knows.
 *
 * A link may live longer than its sandbox's object here, so what it holds is a number in a table of the
 * process. */
#ifndef CUBEFS_BACKENDS_NS_OOM_H
#define CUBEFS_BACKENDS_NS_OOM_H

#include <stdbool.h>
#include <stdint.h>

/* The file that counts those kills in the control group of the process whose directory in /proc is @proc: its line
 * `oom_kill N`. A descriptor, or -1: there is none here. */
int cube_ns_oom_file(int proc);
/* What such a file says; UINT64_MAX: nothing. */
uint64_t cube_ns_oom_read(int file);

/* Watches one: takes @file over. NULL when that is not possible, else what the others take. Any thread. */
void *cube_ns_oom_watch(int file);
void cube_ns_oom_forget(void *watch); /* NULL is harmless */

/* How many processes the memory killer has taken there; 0 where that is not known or the watch was forgotten. Any
 * thread, does not block. */
uint64_t cube_ns_oom_count(void *watch);
/* Has it taken more than @count, and one that was not asked for before? Each counts once: a kill of a child, which its
 * command survived, is not found again at the end of a later one. false where the watch was forgotten. The same. */
bool cube_ns_oom_probe(void *watch, uint64_t count);

#endif
