/* SPDX-License-Identifier: Apache-2.0 */
/* Is the mount served? In the keeper, which is in the namespace of those who use it.
 *
 * Now and then a process of its own asks for the attributes of the mount's root, past the kernel's cache: the answer
 * needs the worker's threads and the lock that everything there goes through. Whoever waits for it is that process; the
 * keeper only counts how long it has been waiting. What it counts is its own time: when it could not run itself, the
 * machine stood still, and the count begins again. */
#ifndef CUBEFS_FS_CANARY_H
#define CUBEFS_FS_CANARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cube_canary {
	const char *path;         /* the mount point, borrowed; NULL: there is none to ask */
	_Atomic uint32_t *asking; /* shared with the one that asks: it has come as far as the question */
	pid_t pid;                /* who asks; 0: nobody */
	uint64_t looked, next;    /* monotonic ns: the last look, the next question */
	uint64_t waited;          /* ns that were counted */
	unsigned told;            /* whole seconds that were told */
};

/* Without memory, or @path NULL, nobody asks. */
void cube_canary_init(struct cube_canary *c, const char *path);
/* To be called several times a second. Each whole second that no answer came is told once: their number; else 0. */
unsigned cube_canary_look(struct cube_canary *c);
/* The counting alone. @waiting: somebody waits for an answer. */
unsigned cube_canary_count(struct cube_canary *c, uint64_t now, bool waiting);
/* That child has ended: the answer is there if it was the one that asks. */
void cube_canary_ended(struct cube_canary *c, pid_t pid);
/* Nobody asks any more, and nobody has the mount in use. It may be asked again after another init. */
void cube_canary_done(struct cube_canary *c);

#endif
