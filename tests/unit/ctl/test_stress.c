/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads do everything at once; at the end everybody was answered and nothing is left. */
#include "tests/unit/ctl/host.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

#define THREADS 6
#define ROUNDS  25
#define NAMES   4

struct worker {
	struct stage *s;
	unsigned n, seed;
	pthread_t thread;
	unsigned made, ran, refused;
};

/* Its own generator, so that a run can be repeated. */
static unsigned draw(struct worker *w, unsigned below)
{
	w->seed = w->seed * 1103515245u + 12345u;
	return w->seed / 65536u % below;
}

struct waiting {
	struct cube_verb_call call;
	atomic_bool done;
	int code;
};

static void waiting_done(struct cube_verb_call *call, int code)
{
	struct waiting *v = cube_container_of(call, struct waiting, call);

	v->code = code;
	atomic_store(&v->done, true);
}

static int verb(struct worker *w, enum cube_scope scope, void *object, const char *line, bool give_up)
{
	struct waiting v = {
		.call = {.domain = w->s->d, .scope = scope, .object = object, .done = waiting_done}};

	cube_domain_enter(w->s->d);
	cube_verb_start(&v.call, line, strlen(line));
	cube_domain_leave(w->s->d);
	while (!atomic_load(&v.done)) {
		(void)usleep(300);
		if (!give_up)
			continue;
		cube_domain_enter(w->s->d);
		cube_verb_cancel(&v.call);
		cube_domain_leave(w->s->d);
	}
	cube_domain_enter(w->s->d); /* whoever called done has left */
	cube_domain_leave(w->s->d);
	return v.code;
}

static struct cube_cube *take(struct worker *w, const char *name)
{
	cube_domain_enter(w->s->d);
	struct cube_cube *c = cube_domain_find(w->s->d, name);
	if (c != NULL)
		cube_cube_ref(c);
	cube_domain_leave(w->s->d);
	return c;
}

static void give(struct worker *w, struct cube_cube *c)
{
	cube_domain_enter(w->s->d);
	cube_cube_unref(c);
	cube_domain_leave(w->s->d);
}

static void run_command(struct worker *w, struct cube_cube *c)
{
	static const char *const texts[] = {"echo hi", "sleep 2; echo x", "hang",   "drop; echo y",
					    "exit 3",  "bytes 100k",      "cd /tmp"};
	const char *text = texts[draw(w, CUBE_COUNT(texts))];
	struct cube_job *j = NULL;
	struct cube_err err;
	bool over = false;

	cube_domain_enter(w->s->d);
	int r = cube_session_run(cube_session_main(c), text, strlen(text), &j, &err);
	cube_domain_leave(w->s->d);
	if (r < 0) {
		assert_true(r == -EHOSTDOWN || r == -EOPNOTSUPP);
		assert_string_not_equal(err.text, "");
		w->refused++;
		return;
	}
	for (unsigned i = 0; !over; i++) {
		(void)usleep(500);
		cube_domain_enter(w->s->d);
		if (i == 20 || draw(w, 40) == 0)
			cube_job_interrupt(j);
		(void)cube_cube_usable(c, true, NULL); /* what is paused by another worker ends nothing */
		over = j->state == CUBE_JOB_ENDED;
		if (over)
			cube_job_unref(j);
		cube_domain_leave(w->s->d);
	}
	w->ran++;
}

static void look(struct worker *w, struct cube_cube *c)
{
	cube_domain_enter(w->s->d);
	for (struct cube_job *j = cube_job_next(c, 0); j != NULL; j = cube_job_next(c, j->seq)) {
		struct cube_spool_view v;
		struct cube_output *o = cube_job_view(j, &v);

		if (o != NULL) {
			cube_output_pin(o, &v);
			cube_output_unpin(o, &v);
		}
		cube_output_unref(o);
	}
	cube_cube_look(c);
	cube_domain_leave(w->s->d);
}

static void one_round(struct worker *w)
{
	static const char *const life[] = {"pause",          "resume",  "stop 0",
					   "start",          "restart", "kill TERM",
					   "wait running 0", "pause &", "set label.x=y"};
	char line[64], name[16];
	struct cube_cube *c;

	(void)snprintf(name, sizeof(name), "n%u", draw(w, NAMES));
	c = take(w, name);
	if (c == NULL) {
		(void)snprintf(line, sizeof(line), "create %s", name);
		if (verb(w, CUBE_SCOPE_ROOT, NULL, line, draw(w, 8) == 0) == 0)
			w->made++;
		return;
	}
	switch (draw(w, 12)) {
	case 0:
		(void)snprintf(line, sizeof(line), "destroy %s", name);
		(void)verb(w, CUBE_SCOPE_ROOT, NULL, line, draw(w, 4) == 0);
		break;
	case 1:
		(void)snprintf(line, sizeof(line), "rename %s n%u", name, draw(w, NAMES));
		(void)verb(w, CUBE_SCOPE_ROOT, NULL, line, false);
		break;
	case 2:
	case 3:
		(void)verb(w, CUBE_SCOPE_CUBE, c, life[draw(w, CUBE_COUNT(life))], draw(w, 4) == 0);
		break;
	case 4:
		look(w, c);
		break;
	default:
		run_command(w, c);
	}
	give(w, c);
}

static void *work(void *ctx)
{
	struct worker *w = ctx;

	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(w);
	return NULL;
}

static void everything_at_once(void **state)
{
	struct worker w[THREADS];
	struct stage s;
	unsigned ran = 0;

	(void)state;
	host_open(&s);
	assert_int_equal(stage_root(&s, "set jobs_kept=4"), 0);
	assert_int_equal(stage_root(&s, "set output_limit=64k"), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.s = &s, .n = i, .seed = 77 * (i + 1)};
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(w[i].thread, NULL), 0);
		ran += w[i].ran;
	}
	assert_int_not_equal(ran, 0);
	stage_down(&s); /* in the middle of whatever goes on */
	stage_up(&s);
	for (unsigned i = 0; i < NAMES; i++) {
		char line[32];

		(void)snprintf(line, sizeof(line), "destroy n%u", i);
		int r = stage_root(&s, line);
		assert_true(r == 0 || r == -ENOENT);
	}
	for (unsigned i = 0; i < 2000 && host_count() > 0; i++)
		(void)usleep(1000); /* those whose destruction nobody waited for */
	assert_int_equal(host_count(), 0);
	host_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
