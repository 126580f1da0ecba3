/* SPDX-License-Identifier: Apache-2.0 */
/* A domain for tests: the real loop in a thread, a state directory of its own, sandboxes of kind `mem`. */
#ifndef CUBEFS_TESTS_UNIT_CTL_STAGE_H
#define CUBEFS_TESTS_UNIT_CTL_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctl/cube.h"
#include "ctl/domain.h"
#include "ctl/job.h"
#include "ctl/session.h"
#include "ctl/verb.h"

struct stage {
	struct cube_domain *d;
	struct cube_loop *loop;
	struct cube_conf *conf;
	pthread_t thread;
	bool keep_loop; /* a later domain runs on it as well, as on a backend that outlives the daemon */
	char dir[64];
	struct cube_err err; /* of the latest failure */
	char answer[160];    /* of the latest verb */
};

/* A domain over an empty state directory; @conf: the configuration ("" for the one mem backend). */
void stage_open(struct stage *s, const char *conf);
/* The same on what @s has already. */
void stage_open_on(struct stage *s, const char *conf);
/* Ends the domain in order; the state directory stays. */
void stage_down(struct stage *s);
/* Again, over the same state directory. */
void stage_up(struct stage *s);
/* Ends it as SIGKILL would: what is on disk stays as it is now, whatever an orderly end would add. */
void stage_killed(struct stage *s);
/* Ends it and removes the directory. */
void stage_close(struct stage *s);

/* cmocka set-up and tear-down with the default configuration: *state is a struct stage. */
int stage_setup(void **state);
int stage_teardown(void **state);

/* Writes a verb and waits for its end: the code; s->err, s->answer. NULL object: the root. */
int stage_verb(struct stage *s, enum cube_scope scope, void *object, const char *line);
#define stage_root(s, line)    stage_verb(s, CUBE_SCOPE_ROOT, NULL, line)
#define stage_cube(s, c, line) stage_verb(s, CUBE_SCOPE_CUBE, c, line)
#define stage_job(s, j, line)  stage_verb(s, CUBE_SCOPE_JOB, j, line)
/* Creates a sandbox by the verb and returns it (borrowed). */
struct cube_cube *stage_make(struct stage *s, const char *line);
/* Creates one as mkdir does: accepted, not yet there. */
int stage_mkdir(struct stage *s, const char *name, struct cube_cube **ret);

/* Runs a command in a session (NULL: main) to its end: the exit code, -1 for lost, or the negative errno of
 * the refusal minus 1000. *out (may be NULL) gets the output as a string that the caller frees. */
int stage_exec(struct stage *s, struct cube_cube *c, const char *session, const char *text, char **out);
/* Starts one and does not wait; a reference. */
struct cube_job *stage_run(struct stage *s, struct cube_cube *c, const char *session, const char *text);
/* A named job with this text. */
struct cube_job *stage_start(struct stage *s, struct cube_cube *c, const char *name, const char *text);
/* Makes @file in the sandbox, by a job of that name: what is at `await FILE` goes on, however slow this machine is.
 */
void stage_go(struct stage *s, struct cube_cube *c, const char *file);
/* Waits for the end of @j: its exit code. */
int stage_end(struct stage *s, struct cube_job *j);
/* The output of a stream as a plain reader sees it; the caller frees. */
char *stage_output(struct stage *s, struct cube_job *j, enum cube_stream stream);
/* Waits until it printed at least @n bytes. */
void stage_printed(struct stage *s, struct cube_job *j, uint64_t n);
void stage_unref(struct stage *s, struct cube_job *j);

/* Waits until @holds(@ctx) under the lock, at most 20 s; false: it did not come. */
bool stage_until(struct stage *s, bool (*holds)(void *ctx), void *ctx);
bool stage_phase(struct stage *s, struct cube_cube *c, enum cube_phase phase);

/* The content of a file below the state directory; NULL: not there. The caller frees. */
char *stage_file(struct stage *s, const char *path);

#endif
