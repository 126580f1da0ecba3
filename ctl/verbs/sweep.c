/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: what cubefs made at a backend and nobody knows any more, and sandboxes whose life is over, are destroyed,
 * or (without arguments) told.
 *
 * One backend after the other is asked, on a pool thread. What it lists and no sandbox here is about is looked at
 * once more, since a sandbox of ours may just have gone, and then destroyed. No sandbox can be adopted meanwhile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/event.h"
#include "ctl/verbs/verbs.h"

#define SWEEP_NS UINT64_C(1000000000)

struct sweep {
	struct cube_work work;
	struct cube_domain *domain;
	struct cube_verb_call *call; /* NULL: nobody waits any more */
	struct cube_cancel *cancel;
	/* which */
	bool dry;                  /* told alone */
	struct cube_service *only; /* NULL: all backends */
	bool by_age;
	uint64_t older_s;
	char *label_text;       /* what label points into; owned */
	struct cube_pair label; /* key NULL: any */
	/* how far */
	struct cube_service *at;
	unsigned orphans, expired;
	struct cube_buf names; /* " BACKEND/ID=orphan NAME=expired" */
	int code;              /* the first failure */
	struct cube_err err;
};

/* ---- one that is there ---- */

/* What does not say when it was made is never old enough. */
static bool sweep_old(const struct sweep *s, uint64_t created_wall)
{
	uint64_t now = cube_clock_wall();

	return !s->by_age ||
	       (created_wall != 0 && created_wall <= now && (now - created_wall) / SWEEP_NS >= s->older_s);
}

static bool sweep_wants(const struct sweep *s, const struct cube_info *info)
{
	if (info->uid[0] == '\0' || !sweep_old(s, info->created_wall))
		return false; /* somebody else's, or too young */
	return s->label.key == NULL || cube_there_is(info, &s->label);
}

static bool sweep_is_orphan(struct sweep *s, struct cube_service *service, const struct cube_info *info)
{
	struct cube_info again;
	bool orphan;

	cube_domain_enter(s->domain);
	orphan = cube_service_has(service, info) == NULL;
	cube_domain_leave(s->domain);
	return orphan && cube_backend_inspect(service->backend, info->id, &again, NULL) == 0;
}

static void sweep_fail(struct sweep *s, int code, const struct cube_err *err)
{
	if (s->code < 0)
		return;
	s->code = code;
	s->err = *err;
}

static void sweep_one(struct sweep *s, struct cube_service *service, const struct cube_info *info)
{
	struct cube_err err = {0};
	const char *name = info->name[0] != '\0' ? info->name : "-";
	int code = s->dry ? 0 : cube_backend_destroy(service->backend, info->id, &err);

	cube_domain_enter(s->domain);
	if (code < 0) {
		(void)cube_fail_in(&err, "sweep: %s/%s (was '%s')", service->backend->name, info->id, name);
		sweep_fail(s, code, &err);
	} else {
		s->orphans++;
		(void)cube_buf_printf(&s->names, " %s/%s=orphan", service->backend->name, info->id);
		cube_event(s->domain->events, NULL, s->dry ? "verb" : "destroyed",
			   "sweep: %s%s/%s, orphaned, was '%s'", s->dry ? "would destroy " : "",
			   service->backend->name, info->id, name);
	}
	cube_domain_leave(s->domain);
}

/* ---- one backend after the other ---- */

static void sweep_next(struct sweep *s);

static void sweep_run(struct cube_work *w)
{
	struct sweep *s = cube_container_of(w, struct sweep, work);
	struct cube_domain *d = s->domain;
	struct cube_there there = {0};
	struct cube_err err = {0};
	int code = cube_there_ask(s->at->backend, s->cancel, &there, &err);

	if (code < 0)
		sweep_fail(s, code, &err);
	for (size_t i = 0; i < there.n && !cube_cancel_fired(s->cancel); i++)
		if (sweep_wants(s, &there.all[i]) && sweep_is_orphan(s, s->at, &there.all[i]))
			sweep_one(s, s->at, &there.all[i]);
	cube_there_done(&there);
	cube_domain_enter(d);
	sweep_next(s);
	cube_task_end(d);
	cube_domain_leave(d);
}

/* As many names as fit stand behind the counts. */
static void sweep_answer(const struct sweep *s, struct cube_verb_call *call)
{
	const char *names = cube_buf_str(&s->names);
	size_t room = sizeof(call->answer) - 64, len = strlen(names);

	while (len > room) {
		const char *last = memrchr(names, ' ', len);

		len = last != NULL ? (size_t)(last - names) : 0;
	}
	(void)snprintf(call->answer, sizeof(call->answer), "orphans=%u expired=%u%.*s", s->orphans,
		       s->expired, (int)len, names);
}

/* ---- those whose life is over ---- */

/* One that was to be destroyed then goes by itself; others stay as they were left. */
static bool sweep_expired(const struct sweep *s, struct cube_cube *c)
{
	bool ended = c->phase == CUBE_STOPPED || c->phase == CUBE_PAUSED;

	return (cube_times_over(c) || (ended && strcmp(c->reason, "lifetime") == 0)) &&
	       (s->only == NULL || s->only == c->service) && sweep_old(s, c->created_wall) &&
	       (s->label.key == NULL || cube_label_is(c, &s->label));
}

static void sweep_expire(struct sweep *s, struct cube_destroy *to)
{
	cube_list_each (i, &s->domain->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (!sweep_expired(s, c))
			continue;
		s->expired++;
		(void)cube_buf_printf(&s->names, " %s=expired", c->name);
		if (s->dry)
			cube_event(s->domain->events, c->name, "verb",
				   "sweep: would destroy it, its life is over");
		else
			cube_destroy_pick(to, c);
	}
}

static void sweep_free(struct sweep *s)
{
	cube_cancel_unref(s->cancel);
	cube_buf_done(&s->names);
	cube_free(s->label_text);
	cube_free(s);
}

static void sweep_end(struct sweep *s)
{
	struct cube_verb_call *call = s->call;
	struct cube_destroy *to = NULL;
	int code;

	cube_domain_own(s->domain)->sweeps--;
	if (call != NULL && s->code == 0) {
		to = cube_destroy_new(s->domain);
		if (to != NULL)
			sweep_expire(s, to);
		else
			s->code = cube_fail(&s->err, -ENOMEM, "sweep: out of memory");
	}
	if (call != NULL) {
		call->state = NULL;
		call->cancel = NULL;
		call->err = s->err;
		sweep_answer(s, call);
	}
	code = s->code;
	sweep_free(s);
	if (call != NULL && code == 0)
		cube_destroy_go(call, to); /* ends it when they are gone */
	else if (call != NULL)
		cube_verb_finish(call, code);
}

static void sweep_next(struct sweep *s)
{
	struct cube_list *all = &s->domain->services, *next;

	if (s->domain->closing)
		s->code = cube_fail(&s->err, -EHOSTDOWN, "sweep: the daemon is ending");
	next = s->at != NULL ? s->at->link.next : s->only != NULL ? &s->only->link : all->next;
	if (next == all || (s->at != NULL && s->only != NULL) || cube_cancel_fired(s->cancel) ||
	    s->domain->closing) {
		sweep_end(s);
		return;
	}
	s->at = cube_list_entry(next, struct cube_service, link);
	s->work = (struct cube_work){.run = sweep_run, .key = cube_backend_queue_key(s->at->backend, NULL)};
	cube_task_submit(s->domain, &s->work);
}

/* ---- the line ---- */

static int sweep_backend(struct sweep *s, const char *value, struct cube_err *err)
{
	s->only = cube_domain_service(s->domain, value);
	return s->only != NULL ? 0
			       : cube_fail(err, -ENOENT,
					   "sweep: no backend '%s' is configured (see backends/)", value);
}

static int sweep_older(struct sweep *s, const char *value, struct cube_err *err)
{
	s->by_age = true;
	if (cube_num_u64(value, UINT64_MAX / SWEEP_NS, &s->older_s) < 0)
		return cube_fail(err, -EINVAL, "sweep: older=%s: seconds", value);
	return 0;
}

static int sweep_label(struct sweep *s, const char *word, struct cube_err *err)
{
	s->label_text = cube_strdup(word);
	if (s->label_text == NULL)
		return cube_fail(err, -ENOMEM, "sweep: out of memory");
	return cube_verb_label("sweep", s->label_text, &s->label, err);
}

static int sweep_word(struct sweep *s, char *word, struct cube_err *err)
{
	char *value;

	if (cube_verb_is_label(word) && s->label_text == NULL)
		return sweep_label(s, word, err);
	value = cube_verb_value("sweep", word, err);
	if (value == NULL)
		return -EINVAL;
	if (strcmp(word, "backend") == 0 && s->only == NULL)
		return sweep_backend(s, value, err);
	if (strcmp(word, "older") == 0 && !s->by_age)
		return sweep_older(s, value, err);
	return cube_fail(err, -EINVAL, "sweep: '%s': backend, older or label.NAME, each once", word);
}

/* It ends soon; what it has destroyed is destroyed. */
static void sweep_cancel(struct cube_verb_call *call)
{
	struct sweep *s = cube_steal(call->state);

	s->call = NULL;
	call->cancel = NULL;
	cube_cancel_fire(s->cancel);
}

static int sweep_start(struct cube_verb_call *call, struct cube_err *err)
{
	struct sweep *s = cube_calloc(1, sizeof(*s));
	int r = 0;

	if (s == NULL || (s->cancel = cube_cancel_new()) == NULL) {
		cube_free(s);
		return cube_fail(err, -ENOMEM, "sweep: out of memory");
	}
	s->domain = call->domain;
	s->dry = call->n_words == 1;
	cube_buf_init(&s->names, 2 * sizeof(call->answer)); /* what is above it is not shown */
	for (unsigned i = 1; r == 0 && i < call->n_words; i++)
		r = sweep_word(s, call->words[i], err);
	if (r < 0) {
		sweep_free(s);
		return r;
	}
	s->call = call;
	call->state = s;
	call->cancel = sweep_cancel;
	cube_domain_own(s->domain)->sweeps++;
	sweep_next(s);
	return 1;
}

const struct cube_verb cube_verb_sweep = {
	.name = "sweep",
	.args = "[backend=NAME] [older=SECONDS] [label.NAME=VALUE]",
	.summary = "destroy what is expired or orphaned at a backend; alone: only say what it would",
	.max = 3,
	.run = sweep_start,
};
