/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are made here: of a container as it is, or of another image with other words in it.
 *
 * What is made has our mark (DOCKER_LABEL_HOME) and is told by its tag: cubefs/template:NAME, cubefs/checkpoint:ID. An
 * image's labels go over to all that is made of it, so that alone they say nothing. One that lost its tag is still there
 * where another is made of it, and is swept when that has gone. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define IMAGE_SLOW_S 3600
#define IMAGE_LOCAL  "localhost/" /* before what Podman was not told the registry of */

const char *docker_tag(const json_t *image, const char *repo, size_t n)
{
	const json_t *tags = json_object_get(image, "RepoTags"), *tag;
	size_t i, len = strlen(repo);

	json_array_foreach(tags, i, tag)
	{
		const char *text = json_string_value(tag);

		if (text != NULL && strncmp(text, IMAGE_LOCAL, strlen(IMAGE_LOCAL)) == 0)
			text += strlen(IMAGE_LOCAL);
		if (text != NULL && strncmp(text, repo, len) == 0 && text[len] == ':' && n-- == 0)
			return text + len + 1;
	}
	return NULL;
}

const char *docker_image_label(const json_t *image, const char *key)
{
	return cube_json_str(json_object_get(json_object_get(image, "Config"), "Labels"), key, "");
}

int docker_images(struct cube_docker *d, bool all, struct cube_cancel *cancel, json_t **ret,
		  struct cube_err *err)
{
	return docker_ask(d,
			  &(struct docker_ask){.method = "GET",
					       .path = all ? "/images/json?all=1" : "/images/json",
					       .what = "list the images",
					       .ret = ret},
			  cancel, err);
}

/* ---- made ---- */

void docker_query_label(struct cube_buf *query, const char *key, const char *value)
{
	struct cube_buf line = CUBE_BUF((size_t)1 << 20);

	(void)cube_buf_printf(&line, "LABEL %s=\"", key);
	for (; *value != '\0'; value++) {
		if (strchr("\"\\$", *value) != NULL)
			(void)cube_buf_addc(&line, '\\');
		(void)cube_buf_addc(&line, *value);
	}
	(void)cube_buf_addc(&line, '"');
	(void)cube_buf_adds(query, "&changes=");
	(void)cube_http_escape(query, cube_buf_str(&line));
	cube_buf_done(&line);
}

int docker_commit(struct cube_docker *d, const char *box, const char *ref, bool pause,
		  const struct cube_pair *labels, size_t n_labels, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *nothing = json_object(); /* Podman wants a body */
	struct cube_buf path = CUBE_BUF((size_t)4 << 20);
	const char *tag = strrchr(ref, ':');
	int rc;

	(void)cube_buf_printf(&path, "/commit?container=%s&repo=%.*s&tag=", box, (int)(tag - ref), ref);
	(void)cube_http_escape(&path, tag + 1);
	(void)cube_buf_printf(&path, "&pause=%d", pause ? 1 : 0);
	docker_query_label(&path, DOCKER_LABEL_HOME, d->home);
	for (size_t i = 0; i < n_labels; i++)
		docker_query_label(&path, labels[i].key, labels[i].value);
	rc = path.error == 0
		     ? docker_ask(d,
				  &(struct docker_ask){.method = "POST",
						       .path = cube_buf_str(&path),
						       .body = nothing,
						       .what = "make an image of the container",
						       .timeout_s = IMAGE_SLOW_S},
				  NULL, err)
		     : cube_fail(err, path.error, "the image's labels: %s", cube_errno_text(path.error));
	cube_buf_done(&path);
	return rc;
}

/* ---- what a template says of its programs, as one label: the engine's own words cannot be taken back ---- */

static json_t *image_words(const struct cube_buf *words)
{
	json_t *list = json_array();

	for (size_t at = 0; list != NULL && at < words->len;) {
		size_t n = strnlen(words->data + at, words->len - at);

		(void)json_array_append_new(list, cube_json_bytes(words->data + at, n));
		at += n + 1;
	}
	return list;
}

static int image_config_text(const struct cube_template_config *c, struct cube_buf *out)
{
	cube_auto(cube_json_auto) json_t *o =
		json_pack("{s:o,s:o,s:s,s:s}", "Env", image_words(&c->env), "Entrypoint",
			  image_words(&c->entrypoint), "User", c->user, "WorkingDir", c->workdir);

	return o != NULL ? cube_json_write(o, out) : -ENOMEM;
}

json_t *docker_image_config(const json_t *image)
{
	const char *text = docker_image_label(image, DOCKER_LABEL_CONFIG);
	json_t *o = NULL;

	if (*text != '\0' && cube_json_parse(text, strlen(text), "config", &o, NULL) == 0)
		return o;
	o = json_object_get(image, "Config");
	return json_is_object(o) ? json_incref(o) : json_object();
}

/* ---- through a container that never runs ---- */

static int maker_name(const struct cube_docker *d, char out[DOCKER_MAKER_MAX], struct cube_err *err)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return cube_fail_errno(err, "random numbers");
	(void)snprintf(out, DOCKER_MAKER_MAX, DOCKER_MAKER "%s.%s.%016" PRIx64, d->home, d->instance, n);
	return 0;
}

int docker_maker(struct cube_docker *d, const json_t *body, struct cube_cancel *cancel,
		 char out[DOCKER_MAKER_MAX], struct cube_err *err)
{
	char path[DOCKER_MAKER_MAX + 40];
	int rc = maker_name(d, out, err);

	if (rc < 0)
		return rc;
	(void)snprintf(path, sizeof(path), "/containers/create?name=%s", out);
	return docker_ask(d,
			  &(struct docker_ask){.method = "POST",
					       .path = path,
					       .body = body,
					       .what = "create a container that does not run",
					       .timeout_s = IMAGE_SLOW_S},
			  cancel, err);
}

void docker_maker_gone(struct cube_docker *d, const char *name)
{
	char path[DOCKER_MAKER_MAX + 40];

	(void)snprintf(path, sizeof(path), "/containers/%s?force=1&v=1", name);
	(void)docker_ask(d, &(struct docker_ask){.method = "DELETE", .path = path, .what = "clean up"}, NULL,
			 NULL);
}

int docker_image_make(struct cube_docker *d, const struct docker_image_order *o, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_buf config = CUBE_BUF((size_t)1 << 20);
	int rc = o->config != NULL ? image_config_text(o->config, &config) : 0;
	const struct cube_pair labels[] = {
		{DOCKER_LABEL_IMAGE, o->name},
		{DOCKER_LABEL_PRINT, o->print},
		{DOCKER_LABEL_SOURCE, o->source},
		{DOCKER_LABEL_CONFIG, cube_buf_str(&config)},
	};
	json_t *env = o->config != NULL ? image_words(&o->config->env) : json_array();
	cube_auto(cube_json_auto) json_t *body =
		json_pack("{s:s,s:[s],s:o,s:{s:s}}", "Image", o->from, "Cmd", DOCKER_NO_COMMAND, "Env", env,
			  "HostConfig", "NetworkMode", "none");
	char maker[DOCKER_MAKER_MAX];

	if (rc == 0 && body == NULL)
		rc = -ENOMEM;
	if (rc < 0) {
		cube_buf_done(&config);
		return cube_fail(err, rc, "template %s: %s", o->name, cube_errno_text(rc));
	}
	rc = docker_maker(d, body, cancel, maker, err);
	if (rc == 0) {
		rc = docker_commit(d, maker, o->ref, false, labels, CUBE_COUNT(labels), err);
		docker_maker_gone(d, maker);
	}
	cube_buf_done(&config);
	return rc;
}

/* ---- removed ---- */

int docker_image_delete(struct cube_docker *d, const char *ref, struct cube_err *err)
{
	struct cube_buf path = CUBE_BUF(1024);
	int rc;

	(void)cube_buf_adds(&path, "/images/");
	(void)cube_http_escape(&path, ref);
	rc = docker_ask(d,
			&(struct docker_ask){
				.method = "DELETE", .path = cube_buf_str(&path), .what = "remove the image"},
			NULL, err);
	cube_buf_done(&path);
	return rc;
}

static bool image_tagged(const json_t *image)
{
	const char *first = json_string_value(json_array_get(json_object_get(image, "RepoTags"), 0));

	return first != NULL && strcmp(first, "<none>:<none>") != 0;
}

/* What is needed is refused: by a container, by an image that is made of it. */
void docker_images_sweep(struct cube_docker *d)
{
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *image;
	size_t i;

	if (docker_images(d, false, NULL, &all, NULL) < 0)
		return;
	json_array_foreach(all, i, image)
	{
		const char *kept = docker_tag(image, DOCKER_KEPT, 0);
		bool ours = strcmp(cube_json_str(json_object_get(image, "Labels"), DOCKER_LABEL_HOME, ""),
				   d->home) == 0;
		char ref[DOCKER_CP_REF];

		if (!ours)
			continue;
		(void)snprintf(ref, sizeof(ref), DOCKER_KEPT ":%.*s", CUBE_ID_MAX, kept != NULL ? kept : "");
		if (kept != NULL && docker_tag(image, DOCKER_CHECKPOINT, 0) == NULL)
			(void)docker_image_delete(d, ref, NULL);
		else if (!image_tagged(image))
			(void)docker_image_delete(d, cube_json_str(image, "Id", "-"), NULL);
	}
}

/* -EBUSY: another image is made of it. */
int docker_image_childless(struct cube_docker *d, const char *name, const char *id,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *image;
	size_t i;
	int rc;

	docker_images_sweep(d);
	rc = docker_images(d, true, cancel, &all, err);
	json_array_foreach(all, i, image) if (strcmp(cube_json_str(image, "ParentId", ""), id) ==
					      0) return cube_fail(err, -EBUSY,
								  "template %s is in use: a checkpoint or "
								  "another template is made of it",
								  name);
	return rc;
}
