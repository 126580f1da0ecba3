/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of backends stand on: a loop with its thread, a state directory, an instance; a listener
 * on a link that remembers what it was told; and commands that are run and waited for.
 *
 * Helpers that cannot do their part fail the test (cmocka's fail_msg). Waiting ends after STAGE_PATIENCE. */
#ifndef CUBEFS_TESTS_UNIT_BACKENDS_STAGE_H
#define CUBEFS_TESTS_UNIT_BACKENDS_STAGE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/conf.h"
#include "backends/base/loop.h"

#define STAGE_PATIENCE_MS 20000

struct stage {
	struct cube_loop *loop;
	pthread_t thread;
	bool running;
	char dir[64];
	struct cube_conf *conf;
	struct cube_backend_env env;
	struct cube_backend *b;
};

/* Prepares the kind while there is one thread, then opens an instance of @ops with the lines of @conf as its
 * section (may be NULL); 0 or the failure. The loop's thread is started where it opened. @err may be NULL
 * where it is sure to work. */
int stage_open(struct stage *s, const struct cube_backend_ops *ops, const char *conf, struct cube_err *err);
/* Destroys what is left, ends the thread, closes the instance, removes the directory. */
void stage_close(struct stage *s);

/* A sandbox of @template (NULL: the default) with a fresh mark; its id to be freed. */
char *stage_create(struct stage *s, const char *template);
/* A spec with a fresh mark in @uid; for who wants to change something. */
struct cube_spec stage_spec(char uid[17]);
/* Imports @fd as template @name: 0 or the failure. @source is what it is said to be. */
int stage_import(struct stage *s, const char *name, const char *source, int fd, struct cube_err *err);
enum cube_state stage_state(struct stage *s, const char *id);
bool stage_listed(struct stage *s, const char *id);

/* ---- Listening ---- */

enum heard_kind {
	HEARD_UP,
	HEARD_SYNCED,
	HEARD_STARTED,
	HEARD_OUTPUT,
	HEARD_INPUT,
	HEARD_SESSION,
	HEARD_ENDED,
	HEARD_DOWN
};

struct heard {
	struct heard *next;
	unsigned seq;
	enum heard_kind kind;
	uint64_t id; /* job, session or boot */
	int pid;
	uint64_t total, err_total;
	struct cube_end_record end;
	struct cube_err err; /* text empty: none */
	char *cwd, *exports; /* exports NULL: unchanged */
	bool fresh;
};

struct ear {
	struct stage *stage;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct heard *first, **last;
	unsigned seq;
	struct cube_link *link;
};

/* A link to @id; waits for `up` and `synced`. */
struct ear *ear_open(struct stage *s, const char *id);
/* Without waiting, for who expects a refusal. */
int ear_try(struct stage *s, const char *id, struct ear **ret, struct cube_err *err);
void ear_close(struct ear *e);
/* The first of that kind and id (0: any) that was heard, now or soon. */
const struct heard *ear_wait(struct ear *e, enum heard_kind kind, uint64_t id);
/* The same behind @after. */
const struct heard *ear_wait_after(struct ear *e, const struct heard *after, enum heard_kind kind,
				   uint64_t id);
/* NULL: not heard within @ms. */
const struct heard *ear_listen(struct ear *e, enum heard_kind kind, uint64_t id, unsigned ms);
/* `output` up to @total. */
void ear_wait_output(struct ear *e, uint64_t job, uint64_t total);
/* Was @a told before @b? */
bool heard_before(const struct heard *a, const struct heard *b);

/* ---- Running ---- */

struct run {
	struct ear *ear;
	struct cube_link_start
		start; /* text, out_fd and order_fd are set; the rest may be changed before run_start */
	const struct heard *ended;
	char *out, *err_out, *all; /* stdout, stderr, both in order; set by run_wait */
	size_t all_len;
};

/* A job with a fresh number that is to run @text. */
void run_init(struct run *r, struct ear *e, const char *text);
/* The same for words, NULL ended. @words holds the text. */
void run_init_argv(struct run *r, struct ear *e, const char *words, size_t len);
void run_start(struct run *r);
/* It goes on at another link, where that has to know where to its output goes; there was nothing on stderr. */
void run_adopt(struct run *r, struct ear *e);
/* Until it has ended. */
void run_wait(struct run *r);
/* Both; asserts how it ended. */
void run_expect(struct run *r, enum cube_end how, int code);
void run_done(struct run *r);
/* All of it: runs @text, asserts exit code 0, gives what it printed on stdout (to be freed). */
char *run_text(struct ear *e, const char *text);

#endif
