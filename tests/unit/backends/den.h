/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the local backend add to the stage: the agent of this build, commands in one line, a second
 * process with other rights, archives made by hand. */
#ifndef CUBEFS_TESTS_UNIT_BACKENDS_DEN_H
#define CUBEFS_TESTS_UNIT_BACKENDS_DEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tests/unit/backends/stage.h"

extern const struct cube_backend_ops cube_backend_local;

/* The result of a program whose tests cannot run here: one skipped test with the reason. */
int den_skip(const char *why);

/* Has CUBEFS_AGENT name the cube-init of this build; false: it is not built. */
bool den_agent(void);

/* A stage of the local backend. @conf as in stage_open. */
void den_open(struct stage *s, const char *conf);
/* The instance is closed and opened again, as a daemon that was restarted: nothing is known but what is on
 * disk. */
void den_reopen(struct stage *s);

/* Removes a directory with an absolute path, also where one above it is another file system. */
int den_remove(const char *path);

/* Runs @text with this machine's shell; its exit code. */
int den_host(const char *text);

/* Runs @text in the sandbox and gives what it printed on both streams (to be freed); the code in *ret_code
 * where it is not NULL, else it must be 0. */
char *den_sh(struct stage *s, const char *id, const char *text, int *ret_code);
/* The same, where the output must be @expected. */
void den_says(struct stage *s, const char *id, const char *text, const char *expected);

/* A spec that stays valid until the next call. */
struct cube_spec den_spec(void);

/* Is anything left of the sandbox: processes, groups, files? */
bool den_left(const struct stage *s, const char *id);

/* Copies of this program and of the agent where every user can run them; den_again as another user takes them
 * from then on, and CUBEFS_AGENT names that of the agent. Removed by who made them. */
void den_public_make(void);
void den_public_remove(void);
const char *den_public(void); /* the program's; NULL: none */

/* Runs this program again with the word @arg and waits: its exit code, or 128 + signal. With @uid other than
 * 0 as that user, with nobody's groups. */
int den_again(const char *arg, uid_t uid);

/* In a child: it ends when its parent does, so that a test that is cut off leaves nothing that runs on. */
void den_die_together(void);

/* A file in memory that holds an archive: entries are added in order. */
struct den_tar;
struct den_tar *den_tar_new(const char *filter); /* NULL, "gzip", "bzip2", "xz", "zstd" */
void den_tar_add(struct den_tar *t, const char *name, mode_t type, mode_t mode, uid_t uid, const char *data,
		 size_t len);
void den_tar_link(struct den_tar *t, const char *name, const char *target, bool hard);
/* The smallest root that runs: busybox as the shell. */
void den_tar_root(struct den_tar *t);
/* Ends it: a descriptor at its start. */
int den_tar_end(struct den_tar *t);

#endif
