/* SPDX-License-Identifier: Apache-2.0 */
/* The e2b backend: its table, opening, status. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define E2B_CAPS                                                                                             \
	(CUBE_CAP_EXEC | CUBE_CAP_PAUSE | CUBE_CAP_STOP | CUBE_CAP_TTY | CUBE_CAP_NET_OPEN |                 \
	 CUBE_CAP_USAGE | CUBE_CAP_PERSIST | CUBE_CAP_USERS | CUBE_CAP_ACCESS)
#define E2B_BY_AGENT (CUBE_CAP_EXEC | CUBE_CAP_TTY | CUBE_CAP_USERS)

static int e2b_free_box(void *ctx, const char *id, void *value)
{
	(void)ctx, (void)id;
	cube_free(value);
	return 0;
}

static void e2b_close(struct cube_backend *b)
{
	struct cube_e2b *e = e2b_of(b);

	e2b_tunnels_end(e);
	cube_http_live_free(e->live);
	cube_http_free(e->data);
	cube_http_free(e->http);
	if (e->boxes != NULL)
		(void)cube_map_each(e->boxes, e2b_free_box, NULL);
	cube_map_free(e->boxes);
	cube_map_free(e->doubtful);
	cube_buf_done(&e->agent);
	if (e->key != NULL)
		explicit_bzero(e->key, strlen(e->key));
	cube_free(e->key);
	if (e->state >= 0)
		(void)close(e->state);
	pthread_mutex_destroy(&e->lock);
	cube_free(e);
}

static void e2b_capabilities(struct cube_e2b *e)
{
	e2b_agent_load(e);
	e->base.caps = E2B_CAPS;
	if (e->agent.len > 0)
		return;
	e->base.caps &= ~(uint32_t)E2B_BY_AGENT;
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++)
		if ((E2B_BY_AGENT & 1u << i) != 0)
			(void)snprintf(e->base.missing[i], sizeof(e->base.missing[i]), "%s", e->agent_why);
}

static int e2b_open(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err)
{
	struct cube_e2b *e = cube_calloc(1, sizeof(*e));
	int rc;

	if (e == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	e->base =
		(struct cube_backend){.ops = &cube_backend_e2b, .name = env->name, .par = CUBE_PAR_PER_CUBE};
	e->loop = env->loop;
	pthread_mutex_init(&e->lock, NULL);
	cube_list_init(&e->tunnels);
	cube_buf_init(&e->agent, (size_t)32 << 20);
	e->state = open(env->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = e->state < 0 ? cube_fail_errno(err, "%.200s", env->state_dir) : e2b_configure(e, env->conf, err);
	if (rc == 0) {
		e->boxes = cube_map_new();
		e->doubtful = cube_map_new();
		e->live = cube_http_live_new(e->loop);
		if (e->boxes == NULL || e->doubtful == NULL || e->live == NULL)
			rc = cube_fail(err, -ENOMEM, "out of memory");
	}
	if (rc < 0) {
		e2b_close(&e->base);
		return rc;
	}
	e2b_capabilities(e);
	*ret = &e->base;
	return 0;
}

/* One question that needs the key, and as little as can be of the answer. */
static int e2b_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
		      struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	struct cube_status s = {.caps = b->caps};
	uint64_t from = cube_clock_mono();
	int rc = e2b_ask(e,
			 &(struct e2b_ask){.method = "GET",
					   .path = "/v2/sandboxes?limit=1",
					   .what = "ask the service",
					   .repeat = true},
			 cancel, err);

	if (rc == -EINTR)
		return rc;
	s.latency_us = (cube_clock_mono() - from) / 1000;
	s.reachable = rc == 0;
	if (rc == 0)
		(void)snprintf(s.version, sizeof(s.version), "E2B API at %.110s", e->url);
	else
		(void)snprintf(s.version, sizeof(s.version), "%.127s", err->text);
	(void)snprintf(s.store, sizeof(s.store), "by the service at %.150s", e->url);
	memcpy(s.missing, b->missing, sizeof(s.missing));
	*ret = s;
	return 0;
}

static void e2b_doctor(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_e2b *e = e2b_of(b);
	struct cube_status st = {.reachable = false};
	struct cube_err err = {0};
	char what[400];

	(void)e2b_status(b, NULL, &st, &err);
	(void)snprintf(what, sizeof(what), "backend %.60s: %.300s", b->name,
		       st.reachable ? st.version : err.text);
	say(ctx, st.reachable, what,
	    st.reachable ? "" : "see to url, api_key_file and the network; cubefs-e2b(7) has them all");
	if (e->agent.len == 0) {
		(void)snprintf(what, sizeof(what), "backend %.60s: no commands: %.200s", b->name,
			       e->agent_why);
		say(ctx, false, what, "install cube-init beside cubefs");
	}
}

const struct cube_backend_ops cube_backend_e2b = {
	.abi = CUBE_BACKEND_ABI,
	.kind = "e2b",
	.summary = "sandboxes of an E2B service, or of one that speaks like it",
	.caps = E2B_CAPS,
	.par = CUBE_PAR_PER_CUBE,
	.open = e2b_open,
	.close = e2b_close,
	.status = e2b_status,
	.doctor = e2b_doctor,
	.create = e2b_create,
	.destroy = e2b_destroy,
	.inspect = e2b_inspect,
	.list = e2b_list,
	.watch = e2b_watch,
	.start = e2b_start,
	.stop = e2b_stop,
	.pause = e2b_pause,
	.resume = e2b_resume,
	.expire = e2b_expire,
	.link = e2b_link,
	.usage = e2b_usage,
	.access = e2b_access,
};
