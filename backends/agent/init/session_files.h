/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which a session's shell and the agent talk: RUNDIR/N/, one directory for each shell.
 *
 *     c  fifo: the shell reads its commands from it (it is the shell's script)
 *     s  fifo: the shell reports (session_report.h)
 *     o  fifo: the output of one command; a new one for each, so that background children keep theirs
 *     i  fifo: the input of one command that has one
 *     d, D  the driver of a command, of every second one: sh may read on in the one before while the next is
 *        written; t the command's text, x what `export -p` printed behind it
 *     n  what a new shell begins with, e the exports that it takes over, v variables and directory to set,
 *     r  brings back the status of the command before, q/ where a shell with a broken driver shows its status
 *
 * The directory belongs to the agent and may be passed through by all, the files in it to the session's user
 * alone. What the user can do to them harms this session and nobody else: the agent makes each afresh,
 * follows no link, never waits on one and reads no more than the bounds below. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_SESSION_FILES_H
#define CUBEFS_BACKENDS_AGENT_INIT_SESSION_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define INIT_RUN_DIR_MAX 200

struct init_session_files {
	char path[INIT_RUN_DIR_MAX + 24]; /* of the directory */
	int dir;                          /* -1: there is none */
	int command;                      /* c, opened for both, so that it never ends */
	int status;                       /* s, likewise */
	int driver[2];                    /* d, D */
	int text;                         /* t */
	int exports;                      /* x */
	int output;                       /* the reading end of the next command's o; -1: not made yet */
	bool given;                       /* to uid, gid */
	uid_t uid;
	gid_t gid;
};

/* Once: @path is [A-Za-z0-9._/-], absolute. Makes it where it is missing. 0 or -errno; sessions ask again. */
int init_session_files_setup(const char *path);
/* Removes what is there; at the end of the program. */
void init_session_files_teardown(void);

void init_session_files_init(struct init_session_files *f);
/* Makes a directory with all that a shell needs. 0 or -errno. */
int init_session_files_open(struct init_session_files *f);
/* Closes and removes it. Harmless when there is none. */
void init_session_files_close(struct init_session_files *f);
/* False once somebody removed them. */
bool init_session_files_intact(const struct init_session_files *f);

/* For the child that becomes the user: gives the files in @dir to it and reports that to the agent. */
void init_session_files_give(int dir, uid_t uid, gid_t gid);
/* What the report said: files made later are given as well. */
void init_session_files_given(struct init_session_files *f, uid_t uid, gid_t gid);

/* Replaces the content of one of the open files. 0 or -errno. */
int init_session_files_put(int fd, const struct iovec *parts, int n);
/* Makes @name afresh with that content. 0 or -errno. */
int init_session_files_make(struct init_session_files *f, const char *name, const struct iovec *parts, int n);
/* The fifo o for the next command; harmless when it is there. 0 or -errno. */
int init_session_files_output(struct init_session_files *f);
/* The fifo i: its writing end in *ret_write, and a reading end that keeps it alive. 0 or -errno. */
int init_session_files_input(struct init_session_files *f, int *ret_write, int *ret_keep);
/* What is in x: a copy for free(3), NULL when it is empty, too long or no memory is there. */
char *init_session_files_exports(struct init_session_files *f, size_t *ret_len);
/* The name of a file in q/, which it removes; false when there is none. */
bool init_session_files_probe(struct init_session_files *f, char *name, size_t size);

#endif
