/* SPDX-License-Identifier: Apache-2.0 */
/* What a program leaves to the one that takes its place in the same process (exec).
 *
 * Numbers and strings, each under a name, in memory without a file; descriptors are inherited under their numbers. A program
 * that does not know a name passes over it, and what it misses is -1 or NULL: so both may be of different versions. */
#ifndef CUBEFS_FS_HANDOVER_H
#define CUBEFS_FS_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/conf.h"
#include "backends/base/err.h"
#include "fs/opts.h"

enum cube_hand_number {
	/* descriptors */
	CUBE_HAND_FUSE,
	CUBE_HAND_KEEP,
	CUBE_HAND_LINE, /* between keeper and worker */
	CUBE_HAND_BOSS, /* between keeper and supervisor */
	CUBE_HAND_LOCK,
	CUBE_HAND_LOG,
	CUBE_HAND_MOUNTS,
	CUBE_HAND_DOOR,
	CUBE_HAND_PROGRAM, /* that takes over */
	CUBE_HAND_BEFORE,  /* that it takes over from */
	CUBE_HAND_CLIENT,  /* who asked for it */
#define CUBE_HAND_FDS (CUBE_HAND_CLIENT + 1)
	CUBE_HAND_CHILD = CUBE_HAND_FDS, /* the supervisor's number, for the keeper */
	CUBE_HAND_MOUNT_ID,
	CUBE_HAND_UID,
	CUBE_HAND_GID,
	CUBE_HAND_ALLOW_OTHER,
	CUBE_HAND_SYMLINKS_RAW,
	CUBE_HAND_OWNERS_RAW,
	CUBE_HAND_DEBUG,
	CUBE_HAND_NUMBERS
};

enum cube_hand_string {
	CUBE_HAND_STATE,
	CUBE_HAND_MOUNT,
	CUBE_HAND_CONF, /* its text */
	CUBE_HAND_VERSION,
	CUBE_HAND_WHY, /* the one that took over gives it back */
	CUBE_HAND_TOKEN_FILE,
	CUBE_HAND_9P,
	CUBE_HAND_STRINGS = CUBE_HAND_9P + CUBE_OPTS_9P
};

struct cube_handover {
	int64_t n[CUBE_HAND_NUMBERS];
	const char *s[CUBE_HAND_STRINGS]; /* borrowed; of one that was read: in `text` */
	char *text;
};

void cube_handover_init(struct cube_handover *h); /* -1 and NULL */
void cube_handover_done(struct cube_handover *h);
/* Descriptor of the memory, close-on-exec, the caller's. */
int cube_handover_write(const struct cube_handover *h, int *ret_fd, struct cube_err *err);
/* -EPROTO: it is none. */
int cube_handover_read(int fd, struct cube_handover *ret, struct cube_err *err);

/* The program @program (a descriptor) in the place of this one, as `cubefs takeover ROLE`: returns only if that is
 * refused, and then nothing has changed. The descriptors of @h go along. */
int cube_handover_exec(const struct cube_handover *h, int program, const char *role, struct cube_err *err);
/* The same in a child, with the role "check", which has ten seconds to say whether it can take over. Whoever waits for
 * children of this process waits for that one, too. */
struct cube_handover_check {
	int line, pidfd; /* what it says; it */
	uint64_t until;
	struct cube_buf said;
};
void cube_handover_check_init(struct cube_handover_check *c);
int cube_handover_check_start(const struct cube_handover *h, int program, struct cube_handover_check *c,
			      struct cube_err *err);
/* Never waits. 1: it has yet to say it; 0: it can; -EPROTO: it cannot, and why. But for 1 it is over, and dropped. */
int cube_handover_check_look(struct cube_handover_check *c, struct cube_err *err);
/* Closes what is of it here: in a child, too. */
void cube_handover_check_drop(struct cube_handover_check *c);

/* A configuration as text that is read back the same. */
int cube_handover_conf(const struct cube_conf *conf, struct cube_buf *out);

#endif
