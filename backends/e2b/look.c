/* SPDX-License-Identifier: Apache-2.0 */
/* What the service says of sandboxes. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOOK_PAGES  1000 /* of a hundred */
#define LOOK_LABELS ((size_t)64 << 10)

bool e2b_look_info(const struct cube_e2b *e, const json_t *from, struct cube_info *info,
		   struct cube_buf *labels)
{
	json_t *meta = json_object_get(from, "metadata"), *value;
	const char *sid = cube_json_str(from, "sandboxID", ""), *uid = cube_json_str(meta, E2B_META_UID, ""),
		   *state = cube_json_str(from, "state", "running");
	struct cube_info i = {.state = CUBE_IS_RUNNING};
	const char *key;

	if (e2b_is_ours(uid))
		(void)snprintf(i.uid, sizeof(i.uid), "%s", uid);
	if ((size_t)snprintf(i.id, sizeof(i.id), "%s", i.uid[0] != '\0' ? i.uid : sid) >= sizeof(i.id) ||
	    !cube_backend_id_ok(i.id))
		return false;
	if (strcmp(state, "paused") == 0 || strcmp(state, "pausing") == 0)
		i.state = e2b_box_stopped(e, i.id) ? CUBE_IS_STOPPED : CUBE_IS_PAUSED;
	if (i.state == CUBE_IS_STOPPED)
		(void)snprintf(i.reason, sizeof(i.reason), "stopped");
	(void)snprintf(i.name, sizeof(i.name), "%.*s", CUBE_ID_MAX, cube_json_str(meta, E2B_META_NAME, ""));
	(void)snprintf(i.template, sizeof(i.template), "%.*s", CUBE_ID_MAX,
		       cube_json_str(meta, E2B_META_TEMPLATE,
				     cube_json_str(from, "alias", cube_json_str(from, "templateID", ""))));
	(void)cube_clock_parse(cube_json_str(from, "startedAt", ""), &i.created_wall);
	if (strcmp(cube_json_str(meta, E2B_META_NET, ""), "open") == 0)
		i.net = CUBE_NET_OPEN;
	cube_buf_reset(labels);
	json_object_foreach(meta, key, value) if (strncmp(key, E2B_META_LABEL, strlen(E2B_META_LABEL)) == 0 &&
						  json_is_string(value))(void)
		cube_buf_printf(labels, "%s=%s\n", key + strlen(E2B_META_LABEL), json_string_value(value));
	i.labels = labels->len > 0 ? cube_buf_str(labels) : NULL;
	*info = i;
	return true;
}

static int look_page(struct cube_e2b *e, const char *query, struct cube_cancel *cancel, char next[E2B_CURSOR],
		     int (*each)(void *ctx, const json_t *one), void *ctx, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *page = NULL;
	struct cube_buf path = CUBE_BUF(4096);
	const json_t *one;
	size_t i;
	int rc = 0;

	(void)cube_buf_printf(&path, "/v2/sandboxes?limit=100%s", query);
	if (next[0] != '\0') {
		(void)cube_buf_adds(&path, "&nextToken=");
		(void)cube_http_escape(&path, next);
	}
	if (path.error < 0)
		rc = cube_fail(err, path.error, "out of memory");
	else
		rc = e2b_ask(e,
			     &(struct e2b_ask){.method = "GET",
					       .path = cube_buf_str(&path),
					       .what = "list sandboxes",
					       .repeat = true,
					       .ret = &page,
					       .next = next},
			     cancel, err);
	cube_buf_done(&path);
	if (rc == 0 && !json_is_array(page))
		rc = cube_fail(err, -EREMOTEIO, "the service at %.100s answers with a list that is none",
			       e->url);
	if (rc < 0)
		return rc;
	json_array_foreach(page, i, one) if ((rc = each(ctx, one)) != 0) break;
	return rc;
}

int e2b_look_all(struct cube_e2b *e, const char *query, struct cube_cancel *cancel,
		 int (*each)(void *ctx, const json_t *one), void *ctx, struct cube_err *err)
{
	char next[E2B_CURSOR] = "";

	for (unsigned page = 0; page < LOOK_PAGES; page++) {
		int rc = look_page(e, query, cancel, next, each, ctx, err);

		if (rc != 0 || next[0] == '\0')
			return rc;
	}
	return cube_fail(err, -EREMOTEIO, "the service at %.100s has a list without an end", e->url);
}

int e2b_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct cube_buf labels = CUBE_BUF(LOOK_LABELS);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_info info;
	int rc = e2b_box_get(e2b_of(b), id, NULL, &o, NULL, err);

	if (rc == 0 && !e2b_look_info(e2b_of(b), o, &info, &labels))
		rc = cube_fail(err, -EREMOTEIO, "what the service says of sandbox %s cannot be", id);
	if (rc == 0) {
		*ret = info;
		ret->labels = NULL;
	}
	cube_buf_done(&labels);
	return rc;
}

struct look_list {
	struct cube_e2b *e;
	void (*each)(void *ctx, const struct cube_info *info);
	void *ctx;
	struct cube_buf labels;
};

static int look_listed(void *ctx, const json_t *one)
{
	struct look_list *l = ctx;
	struct cube_info info;

	if (e2b_look_info(l->e, one, &info, &l->labels))
		l->each(l->ctx, &info);
	return 0;
}

int e2b_list(struct cube_backend *b, struct cube_cancel *cancel,
	     void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct look_list l = {.e = e2b_of(b), .each = each, .ctx = ctx, .labels = CUBE_BUF(LOOK_LABELS)};
	int rc = e2b_look_all(l.e, "", cancel, look_listed, &l, err);

	cube_buf_done(&l.labels);
	return rc;
}

/* ---- figures ---- */

static uint64_t look_figure(const json_t *o, const char *key)
{
	int64_t n = cube_json_int(o, key, -1);

	return n >= 0 ? (uint64_t)n : UINT64_MAX;
}

int e2b_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_usage u;
	struct e2b_box box;
	int rc = e2b_box_known(e, id, NULL, &box, err);

	memset(&u, 0xff, sizeof(u));
	if (rc == 0)
		rc = e2b_envd(e, &box, NULL, NULL, "measure", NULL, &o, err);
	if (rc == -EHOSTDOWN) /* asked of one that does not run, or is gone */
		rc = e2b_box_get(e, id, NULL, NULL, NULL, err);
	if (rc < 0)
		return rc;
	u.memory = look_figure(o, "mem_used");
	u.disk = look_figure(o, "disk_used");
	*ret = u;
	return 0;
}

int e2b_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line), void *ctx,
	       struct cube_err *err)
{
	struct cube_e2b *e = e2b_of(b);
	struct e2b_door door;
	struct e2b_box box;
	char line[600];
	int rc = e2b_box_known(e, id, NULL, &box, err);

	if (rc == 0)
		rc = e2b_door(e, &box, NULL, &door, err);
	if (rc < 0)
		return rc;
	(void)snprintf(line, sizeof(line), "e2b %s", box.sid);
	each(ctx, line);
	(void)snprintf(line, sizeof(line), "agent envd %s", door.base);
	each(ctx, line);
	return 0;
}
