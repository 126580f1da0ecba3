/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of sandboxes: what the service calls them, and how their envd is asked. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOX_STOPPED "stopped." /* before the id: a file in our directory */

bool e2b_is_ours(const char *id)
{
	return strlen(id) == 16 && id[strspn(id, "0123456789abcdef")] == '\0';
}

/* A name that the service chose, which becomes a part of paths, hosts and header lines. */
static bool box_word(const char *word, size_t max, const char *more)
{
	for (const char *c = word; *c != '\0'; c++)
		if (!isascii((unsigned char)*c) || (!isalnum((unsigned char)*c) && strchr(more, *c) == NULL))
			return false;
	return strlen(word) <= max;
}

static bool box_sid_ok(const char *sid)
{
	return *sid != '\0' && *sid != '-' && box_word(sid, CUBE_ID_MAX, "-_");
}

/* ---- the table ---- */

/* With the lock held. NULL: out of memory, which costs a question later. */
static struct e2b_box *box_entry(struct cube_e2b *e, const char *id)
{
	struct e2b_box *known = cube_map_get(e->boxes, id);

	if (known != NULL)
		return known;
	known = cube_calloc(1, sizeof(*known));
	if (known == NULL)
		return NULL;
	(void)snprintf(known->id, sizeof(known->id), "%s", id);
	if (cube_map_put(e->boxes, id, known) < 0)
		cube_free(cube_steal(known));
	return known;
}

static void box_store(struct cube_e2b *e, struct e2b_box *box)
{
	struct e2b_box *known;

	pthread_mutex_lock(&e->lock);
	known = box_entry(e, box->id);
	if (known != NULL) {
		memcpy(known->sid, box->sid, sizeof(box->sid));
		memcpy(known->token, box->token, sizeof(box->token));
		memcpy(known->domain, box->domain, sizeof(box->domain));
		*box = *known;
	}
	pthread_mutex_unlock(&e->lock);
}

static bool box_load(struct cube_e2b *e, const char *id, struct e2b_box *ret)
{
	const struct e2b_box *known;

	pthread_mutex_lock(&e->lock);
	known = cube_map_get(e->boxes, id);
	if (known != NULL)
		*ret = *known;
	pthread_mutex_unlock(&e->lock);
	return known != NULL;
}

void e2b_box_forget(struct cube_e2b *e, const char *id)
{
	pthread_mutex_lock(&e->lock);
	cube_free(cube_map_take(e->boxes, id));
	pthread_mutex_unlock(&e->lock);
	(void)e2b_box_stopped_set(e, id, false, NULL);
}

void e2b_box_fresh(struct cube_e2b *e, const char *id, bool fresh)
{
	struct e2b_box *known;

	pthread_mutex_lock(&e->lock);
	known = cube_map_get(e->boxes, id);
	if (known != NULL)
		known->fresh = fresh;
	pthread_mutex_unlock(&e->lock);
}

void e2b_box_keep(struct cube_e2b *e, const char *id, uint64_t until, uint64_t renew_at)
{
	struct e2b_box *known;

	pthread_mutex_lock(&e->lock);
	known = cube_map_get(e->boxes, id);
	if (known != NULL) {
		known->until = until;
		known->renew_at = renew_at;
	}
	pthread_mutex_unlock(&e->lock);
}

int e2b_box_note(struct cube_e2b *e, const char *id, const json_t *from, struct e2b_box *ret,
		 struct cube_err *err)
{
	const char *sid = cube_json_str(from, "sandboxID", ""),
		   *token = cube_json_str(from, "envdAccessToken", ""),
		   *domain = cube_json_str(from, "domain", ""),
		   *mark = cube_json_str(json_object_get(from, "metadata"), E2B_META_UID, "");
	struct e2b_box box = {.fresh = false};

	if (!box_sid_ok(sid) || !box_word(token, sizeof(box.token) - 1, "-_.~+/=") ||
	    !box_word(domain, sizeof(box.domain) - 1, "-."))
		return cube_fail(err, -EREMOTEIO, "the service at %.100s answers with a sandbox that is none",
				 e->url);
	(void)snprintf(box.id, sizeof(box.id), "%s", id != NULL ? id : e2b_is_ours(mark) ? mark : sid);
	(void)snprintf(box.sid, sizeof(box.sid), "%s", sid);
	(void)snprintf(box.token, sizeof(box.token), "%s", token);
	(void)snprintf(box.domain, sizeof(box.domain), "%s", domain);
	box_store(e, &box);
	if (ret != NULL)
		*ret = box;
	return 0;
}

/* ---- questions ---- */

struct box_search {
	const char *id;
	char sid[CUBE_ID_MAX + 1];
};

/* A service that passes over what it does not know lists them all: whoever is found may be about to be ended. */
static int box_found(void *ctx, const json_t *one)
{
	struct box_search *s = ctx;
	const char *sid = cube_json_str(one, "sandboxID", ""),
		   *mark = cube_json_str(json_object_get(one, "metadata"), E2B_META_UID, "");

	if (box_sid_ok(sid) && strcmp(mark, s->id) == 0)
		(void)snprintf(s->sid, sizeof(s->sid), "%s", sid);
	return 0;
}

int e2b_box_sid(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, char out[CUBE_ID_MAX + 1],
		struct cube_err *err)
{
	struct box_search found = {.id = id};
	struct e2b_box box;
	char query[80];
	int rc;

	if (box_load(e, id, &box)) {
		(void)snprintf(out, CUBE_ID_MAX + 1, "%s", box.sid);
		return 0;
	}
	if (!e2b_is_ours(id)) {
		(void)snprintf(out, CUBE_ID_MAX + 1, "%s", id);
		return box_word(id, CUBE_ID_MAX, "") ? 0
						     : cube_fail(err, -ENOENT, "there is no sandbox %s", id);
	}
	(void)snprintf(query, sizeof(query), "&metadata=" E2B_META_UID "%%3D%s", id);
	rc = e2b_look_all(e, query, cancel, box_found, &found, err);
	if (rc < 0)
		return rc;
	if (found.sid[0] == '\0')
		return cube_fail(err, -ENOENT, "there is no sandbox %s", id);
	(void)snprintf(out, CUBE_ID_MAX + 1, "%s", found.sid);
	return 0;
}

int e2b_box_get(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, json_t **ret,
		struct e2b_box *ret_box, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	char sid[CUBE_ID_MAX + 1], path[CUBE_ID_MAX + 32], what[CUBE_ID_MAX + 32];
	int rc = e2b_box_sid(e, id, cancel, sid, err);

	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/sandboxes/%s", sid);
	(void)snprintf(what, sizeof(what), "look at sandbox %s", id);
	rc = e2b_ask(
		e, &(struct e2b_ask){.method = "GET", .path = path, .what = what, .repeat = true, .ret = &o},
		cancel, err);
	if (rc == -ENOENT)
		e2b_box_forget(e, id);
	if (rc == 0)
		rc = e2b_box_note(e, id, o, ret_box, err);
	if (rc == 0 && ret != NULL)
		*ret = cube_steal(o);
	return rc;
}

int e2b_box_known(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, struct e2b_box *ret,
		  struct cube_err *err)
{
	return box_load(e, id, ret) && ret->token[0] != '\0' ? 0 : e2b_box_get(e, id, cancel, NULL, ret, err);
}

int e2b_box_post(struct cube_e2b *e, const char *id, const char *path, const json_t *body, const char *verb,
		 struct cube_cancel *cancel, json_t **ret, struct cube_err *err)
{
	char sid[CUBE_ID_MAX + 1], whole[CUBE_ID_MAX + 64], what[CUBE_ID_MAX + 64];
	int rc = e2b_box_sid(e, id, cancel, sid, err);

	if (rc < 0)
		return rc;
	(void)snprintf(whole, sizeof(whole), "/sandboxes/%s%s", sid, path);
	(void)snprintf(what, sizeof(what), "%s sandbox %s", verb, id);
	return e2b_ask(e,
		       &(struct e2b_ask){.method = "POST",
					 .path = whole,
					 .body = body,
					 .what = what,
					 .ret = ret,
					 .timeout_s = 180},
		       cancel, err);
}

/* ---- stopped ---- */

static void box_stopped_name(const char *id, char out[CUBE_ID_MAX + 16])
{
	(void)snprintf(out, CUBE_ID_MAX + 16, BOX_STOPPED "%s", id);
}

int e2b_box_stopped_set(const struct cube_e2b *e, const char *id, bool on, struct cube_err *err)
{
	char name[CUBE_ID_MAX + 16];
	int rc = 0;

	box_stopped_name(id, name);
	if (on)
		rc = cube_file_replace(e->state, name, "", 0, 0600);
	else if (unlinkat(e->state, name, 0) < 0 && errno != ENOENT)
		rc = -errno;
	return rc < 0 ? cube_fail(err, rc, "what is noted of sandbox %s: %s", id, cube_errno_text(rc)) : 0;
}

bool e2b_box_stopped(const struct cube_e2b *e, const char *id)
{
	char name[CUBE_ID_MAX + 16];

	box_stopped_name(id, name);
	return faccessat(e->state, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
