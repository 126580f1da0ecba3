/* SPDX-License-Identifier: Apache-2.0 */
/* The shell text that drives a session: what surrounds a command's own text.
 *
 * It works in bash, dash and busybox sh and forks nothing. Special builtins cannot be replaced by functions
 * in sh; in bash anything can but `builtin` makes up for the most of it. A shell whose `exec` was replaced
 * says so itself (a ! before its options), and one that says nothing is found out by session_watch.c: both
 * are replaced after the command that did it. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_SESSION_DRIVER_H
#define CUBEFS_BACKENDS_AGENT_INIT_SESSION_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Growing text. */
struct init_text {
	char *data;
	size_t len, cap;
	bool bad; /* no memory: nothing was added from then on */
};

void init_text_add(struct init_text *t, const char *s, size_t len);
void init_text_printf(struct init_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* @s as one word of the shell. */
void init_text_quote(struct init_text *t, const char *s, size_t len);
void init_text_done(struct init_text *t);

struct init_driver {
	const char *path; /* of the session's files */
	bool bash;
};

/* For a new shell (n): reports the directory and the exports when it ends; with @exports it first takes over
 * those in e. */
void init_driver_begin(struct init_text *t, const struct init_driver *d, bool exports);
/* Runs t with number @seq (d). @status is that of the command before, and @input says that it reads from i.
 */
void init_driver_run(struct init_text *t, const struct init_driver *d, uint64_t seq, unsigned status,
		     bool input);
/* What stands before a command's own text on its first line: the options that a report switched off. */
const char *init_driver_prefix(const char *options);
/* Sets and unsets variables (@env: NUL-separated NAME=VALUE or NAME), then goes to @cwd (NULL: stays) (v). */
void init_driver_vars(struct init_text *t, const struct init_driver *d, uint64_t seq, const char *env,
		      size_t env_len, const char *cwd);

#endif
