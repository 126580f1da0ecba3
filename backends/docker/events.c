/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's stream of events: one connection, however many containers. */
#include "backends/docker/docker_priv.h"

#include "backends/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_LINE  ((size_t)4 << 20) /* an event has all labels of its container in it */
#define EVENTS_TYPES "%7B%22type%22%3A%5B%22container%22%5D%7D"
#define EVENTS_NS    UINT64_C(1000000000)

struct events {
	struct cube_docker *d;
	const struct cube_news *news;
	struct cube_buf line; /* what has come of it */
};

/* By either engine's word. What is not here changes no state. */
static const struct {
	const char *action;
	enum cube_state state;
} events_states[] = {
	{"start", CUBE_IS_RUNNING}, {"restart", CUBE_IS_RUNNING}, {"unpause", CUBE_IS_RUNNING},
	{"pause", CUBE_IS_PAUSED},  {"die", CUBE_IS_STOPPED},     {"died", CUBE_IS_STOPPED},
	{"destroy", CUBE_IS_GONE},  {"remove", CUBE_IS_GONE},
};

static void events_tell(const struct events *e, const json_t *event)
{
	const struct cube_news *news = e->news;
	const json_t *actor = json_object_get(event, "Actor");
	const char *action = cube_json_str(event, "Action", ""),
		   *uid = cube_json_str(json_object_get(actor, "Attributes"), DOCKER_LABEL_UID, ""),
		   *id = docker_is_ours(uid) ? uid : cube_json_str(actor, "ID", "");

	if (strcmp(cube_json_str(event, "Type", ""), "container") != 0)
		return;
	if (strcmp(action, "create") == 0 && id == uid)
		docker_late_made(e->d, uid);
	if (strcmp(action, "oom") == 0)
		news->oom(news->ctx, id);
	for (size_t i = 0; i < CUBE_COUNT(events_states); i++)
		if (strcmp(action, events_states[i].action) == 0)
			news->changed(news->ctx, id, events_states[i].state);
}

static int events_line(struct events *e)
{
	cube_auto(cube_json_auto) json_t *event = NULL;
	int rc = 0;

	if (e->line.len > 0)
		rc = cube_json_parse(cube_buf_str(&e->line), e->line.len, "event", &event, NULL);
	if (event != NULL)
		events_tell(e, event);
	cube_buf_reset(&e->line);
	return rc == -ENOMEM ? rc : rc < 0 ? -EREMOTEIO : 0;
}

static int events_take(void *ctx, const void *data, size_t len)
{
	struct events *e = ctx;
	const char *at = data, *end = at + len;
	int rc = 0;

	while (rc == 0 && at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((nl != NULL ? nl : end) - at);

		rc = cube_buf_add(&e->line, at, n);
		if (rc == 0 && nl != NULL)
			rc = events_line(e);
		at += n + 1;
	}
	return rc;
}

/* By the engine's own clock: events are asked for from there on, so that none is missed in between. */
static int events_since(struct cube_docker *d, struct cube_cancel *cancel, uint64_t *ret_s,
			struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	uint64_t ns = 0;
	int rc = docker_ask(
		d, &(struct docker_ask){.method = "GET", .path = "/info", .what = "follow it", .ret = &o},
		cancel, err);

	if (rc == 0 && cube_clock_parse(cube_json_str(o, "SystemTime", ""), &ns) < 0)
		ns = cube_clock_wall();
	*ret_s = ns / EVENTS_NS;
	return rc;
}

int docker_watch(struct cube_backend *base, const struct cube_news *news, struct cube_cancel *cancel,
		 struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	struct events e = {.d = d, .news = news, .line = CUBE_BUF(EVENTS_LINE)};
	uint64_t since = 0;
	char path[128];
	int rc = events_since(d, cancel, &since, err);

	if (rc < 0)
		return rc;
	docker_late_look(d);
	news->begun(news->ctx);
	(void)snprintf(path, sizeof(path), "/events?since=%" PRIu64 "&filters=%s", since, EVENTS_TYPES);
	rc = docker_ask(d,
			&(struct docker_ask){.method = "GET",
					     .path = path,
					     .what = "follow it",
					     .timeout_s = CUBE_HTTP_EVER,
					     .sink = events_take,
					     .ctx = &e},
			cancel, err);
	cube_buf_done(&e.line);
	return rc < 0 ? rc
		      : cube_fail(err, -EHOSTUNREACH, "the engine at %.100s has ended its events", d->where);
}
