/* SPDX-License-Identifier: Apache-2.0 */
/* sweep: what cubefs made at a backend and nobody knows any more is destroyed, or (without arguments) told.
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
	unsigned found;
	struct cube_buf names; /* " BACKEND/ID=orphan" */
	int code;              /* the first failure */
	struct cube_err err;
};

/* ---- one that is there ---- */

static bool sweep_wants(const struct sweep *s, const struct cube_info *info)
{
	uint64_t now = cube_clock_wall();

	if (info->uid[0] == '\0')
		return false; /* somebody else's */
	if (s->by_age && (info->created_wall == 0 || info->created_wall > now ||
			  (now - info->created_wall) / SWEEP_NS < s->older_s))
		return false;
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
		s->found++;
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

/* As many names as fit stand behind the count. */
static void sweep_answer(const struct sweep *s, struct cube_verb_call *call)
{
	const char *names = cube_buf_str(&s->names);
	size_t room = sizeof(call->answer) - 32, len = strlen(names);

	while (len > room)
		len -= 1 + strcspn(names + len - 1, " ");
	(void)snprintf(call->answer, sizeof(call->answer), "orphans=%u%.*s", s->found, (int)len, names);
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
	int code = s->code;

	cube_domain_own(s->domain)->sweeps--;
	if (call != NULL) {
		call->state = NULL;
		call->cancel = NULL;
		call->err = s->err;
		sweep_answer(s, call);
	}
	sweep_free(s);
	if (call != NULL)
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
	.summary = "destroy what is orphaned at a backend; without arguments: only say what it would",
	.max = 3,
	.run = sweep_start,
};
