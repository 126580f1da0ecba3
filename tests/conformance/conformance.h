/* SPDX-License-Identifier: Apache-2.0 */
/* The list of checks that every backend must pass.
 *
 * A check is a function that takes the subject: an open instance and the few commands in which its
 * sandboxes differ from a shell's. It runs where the instance claims all capabilities of `needs`, and where
 * it claims none of `lacks`. What is not claimed is looked at by the checks of refuse.c. */
#ifndef CUBEFS_TESTS_CONFORMANCE_CONFORMANCE_H
#define CUBEFS_TESTS_CONFORMANCE_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/backends/stage.h"

/* What is said in other words inside. */
struct dialect {
	const char *hang;                    /* until killed */
	const char *deaf;                    /* the same, and ignores INT and TERM, and prints "deaf" then */
	const char *to_stderr;               /* a line "e" to stderr */
	const char *suicide;                 /* ends by its own KILL */
	const char *megabytes;               /* 3 MiB of anything on stdout */
	const char *make_file, *make_inside; /* around a path: makes that file with the line "inside" */
};

struct subject {
	const char *name;
	const char *kind;                   /* looked up in the registry; or */
	const struct cube_backend_ops *ops; /* one that is not in it */
	const char *conf;                   /* lines of its section; or */
	const char *conf_env;               /* the environment variable that has them */
	bool wrapped;                       /* in all decorators */
	bool slow;          /* a sandbox takes long to make: beds are of one, as long as it runs */
	bool no_pause_time; /* its server stands for machines whose clock stands still in a pause, and has none */
	const struct dialect *dialect;
	struct stage stage;
	char *kept;        /* its sandbox, where it is slow; NULL: none */
	uint64_t sessions; /* that were given to beds */
};

struct check {
	const char *name;
	uint32_t needs, lacks;
	void (*run)(struct subject *s);
};

/* Tables, ended by a NULL name. */
extern const struct check checks_life[];
extern const struct check checks_state[];
extern const struct check checks_exec[];
extern const struct check checks_input[];
extern const struct check checks_end[];
extern const struct check checks_session[];
extern const struct check checks_again[];
extern const struct check checks_files[];
extern const struct check checks_template[];
extern const struct check checks_ports[];
extern const struct check checks_volume[];
extern const struct check checks_checkpoint[];
extern const struct check checks_kept[];
extern const struct check checks_bind[];
extern const struct check checks_owner[];
extern const struct check checks_refuse[];

/* A sandbox with a link to it. */
struct bed {
	struct subject *subject;
	char *id;
	struct ear *ear;
	uint64_t session; /* a number that is nobody else's, as is the next one */
};

struct bed bed_open(struct subject *s);
void bed_close(struct bed *b);    /* destroys it, unless the next one is to have it */
void bed_last(struct subject *s); /* there is no next one */

/* A `cat` whose input is open; waits until it runs. */
struct run cat_start(struct bed *b);

/* Runs @text in a fresh process (@session 0) or a session; asserts exit code 0 and what stdout has. */
void expect_output(struct bed *b, uint64_t session, const char *text, const char *out);

/* The directories of a sandbox, for the caller to close. */
struct cube_root expect_root(struct subject *s, const char *id);
/* A file with that text below a directory. */
void put_file(int dir, const char *name, const char *text);
/* /bin/sh, without which no sandbox can be made; whether it could run there is not asked. */
void put_shell(int dir);
void expect_file(int dir, const char *name, const char *text);

/* A failure of ours is an errno and a sentence. */
void expect_failure(int r, int code, const struct cube_err *err);

#endif
