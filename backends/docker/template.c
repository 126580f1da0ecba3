/* SPDX-License-Identifier: Apache-2.0 */
/* Templates are images. One that was imported here is tagged cubefs/template:NAME and has its name in a label; any other
 * image is a template by its own name, where that can be the name of one. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEMPLATE_LATEST ":latest"

/* A tag has no ':' and no '~', and begins with no dot. */
void docker_template_ref(const char *name, char out[DOCKER_IMAGE])
{
	size_t at = (size_t)snprintf(out, DOCKER_IMAGE, "%s", DOCKER_REPO ":");

	for (; *name != '\0' && at + 3 < DOCKER_IMAGE; name++) {
		const char *special = strchr(":~_", *name);

		if (special != NULL)
			out[at++] = '_';
		out[at++] = special == NULL ? *name : *name == ':' ? '-' : *name == '~' ? '.' : '_';
	}
	out[at] = '\0';
}

int docker_image_get(struct cube_docker *d, const char *ref, struct cube_cancel *cancel, json_t **ret,
		     struct cube_err *err)
{
	struct cube_buf path = CUBE_BUF(1024);
	int rc;

	(void)cube_buf_adds(&path, "/images/");
	(void)cube_http_escape(&path, ref);
	(void)cube_buf_adds(&path, "/json");
	rc = docker_ask(d,
			&(struct docker_ask){.method = "GET",
					     .path = cube_buf_str(&path),
					     .what = "look at the image of a template",
					     .ret = ret},
			cancel, err);
	cube_buf_done(&path);
	return rc;
}

int docker_template_find(struct cube_docker *d, const char *name, char ret_ref[DOCKER_IMAGE], json_t **ret,
			 struct cube_cancel *cancel, struct cube_err *err)
{
	int rc;

	docker_template_ref(name, ret_ref);
	rc = docker_image_get(d, ret_ref, cancel, ret, err);
	if (rc != -ENOENT || *name == '~')
		return rc;
	(void)snprintf(ret_ref, DOCKER_IMAGE, "%s", name);
	rc = docker_image_get(d, name, cancel, ret, err);
	if (rc == -ENOENT)
		return cube_fail(
			err, rc,
			"the engine at %.100s has no image '%.64s': import it (mkdir templates/NAME, import "
			"image:REFERENCE) or name another with template=",
			d->where, name);
	return rc;
}

/* ---- list ---- */

struct template_list {
	void (*each)(void *ctx, const struct cube_template *t);
	void *ctx;
	json_t *seen; /* names: an import's own goes before another image called so */
};

static void template_copy(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%.*s", (int)size - 1, from);
}

static void template_tell(struct template_list *l, const json_t *image, const char *name)
{
	const json_t *labels = json_object_get(image, "Labels");
	struct cube_template t = {.size = UINT64_MAX, .state = "ready"};
	int64_t size = cube_json_int(image, "Size", -1);

	if ((!cube_name_template_ok(name) && !cube_name_layer_ok(name)) ||
	    json_object_get(l->seen, name) != NULL)
		return;
	(void)json_object_set_new(l->seen, name, json_true());
	template_copy(t.name, sizeof(t.name), name);
	template_copy(t.source, sizeof(t.source), cube_json_str(labels, DOCKER_LABEL_SOURCE, name));
	template_copy(t.fingerprint, sizeof(t.fingerprint),
		      cube_json_str(labels, DOCKER_LABEL_PRINT, cube_json_str(image, "Id", "-")));
	t.size = size >= 0 ? (uint64_t)size : UINT64_MAX;
	l->each(l->ctx, &t);
}

/* Without the registry that Podman puts before a name that had none. */
static const char *template_tag(const json_t *tag)
{
	static const char *const before[] = {"docker.io/library/", "docker.io/", "localhost/"};
	const char *text = json_string_value(tag);

	for (size_t i = 0; text != NULL && i < CUBE_COUNT(before); i++)
		if (strncmp(text, before[i], strlen(before[i])) == 0)
			return text + strlen(before[i]);
	return text;
}

/* An import's name is in its label; others have theirs as tags. */
static void template_one(struct template_list *l, const json_t *image, bool own)
{
	const json_t *tags = json_object_get(image, "RepoTags"), *tag;
	size_t i;

	json_array_foreach(tags, i, tag)
	{
		const char *text = template_tag(tag);
		size_t len = text != NULL ? strlen(text) : 0;
		bool is_own = text != NULL && strncmp(text, DOCKER_REPO ":", sizeof(DOCKER_REPO)) == 0;
		char name[CUBE_ID_MAX + 1];

		if (text == NULL || is_own != own)
			continue;
		if (own) {
			template_tell(
				l, image,
				cube_json_str(json_object_get(image, "Labels"), DOCKER_LABEL_IMAGE, ""));
			continue;
		}
		if (len > strlen(TEMPLATE_LATEST) &&
		    strcmp(text + len - strlen(TEMPLATE_LATEST), TEMPLATE_LATEST) == 0)
			len -= strlen(TEMPLATE_LATEST);
		if (len < sizeof(name)) {
			(void)snprintf(name, sizeof(name), "%.*s", (int)len, text);
			template_tell(l, image, name);
		}
	}
}

int docker_template_list(struct cube_backend *base, void (*each)(void *ctx, const struct cube_template *t),
			 void *ctx, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *all = NULL, *seen = json_object();
	struct template_list l = {.each = each, .ctx = ctx, .seen = seen};
	int rc = docker_ask(
		docker_of(base),
		&(struct docker_ask){
			.method = "GET", .path = "/images/json", .what = "list the images", .ret = &all},
		NULL, err);

	for (int own = 1; rc == 0 && own >= 0; own--)
		for (size_t i = 0; i < json_array_size(all); i++)
			template_one(&l, json_array_get(all, i), own != 0);
	return rc;
}

/* ---- use ---- */

int docker_image_unused(struct cube_docker *d, const char *name, const char *ref, const char *id,
			struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *all = NULL;
	cube_auto(cube_json_auto) json_t *filter = json_pack("{s:[s]}", "ancestor", ref);
	struct cube_buf text = CUBE_BUF(1024), path = CUBE_BUF(4096);
	int rc = filter != NULL ? cube_json_write(filter, &text) : -ENOMEM;

	(void)cube_buf_adds(&path, "/containers/json?all=1&filters=");
	if (rc == 0)
		rc = cube_http_escape(&path, cube_buf_str(&text));
	if (rc == 0)
		rc = docker_ask(d,
				&(struct docker_ask){.method = "GET",
						     .path = cube_buf_str(&path),
						     .what = "see who uses the template",
						     .ret = &all},
				cancel, err);
	else
		(void)cube_fail(err, rc, "out of memory");
	cube_buf_done(&path);
	cube_buf_done(&text);
	if (rc == 0 && json_array_size(all) > 0)
		return cube_fail(err, -EBUSY, "template %s is in use: %zu containers are made of it", name,
				 json_array_size(all));
	return rc == 0 ? docker_image_childless(d, name, id, cancel, err) : rc;
}

int docker_template_remove(struct cube_backend *base, const char *name, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *image = NULL;
	char ref[DOCKER_IMAGE];
	int rc = docker_template_find(d, name, ref, &image, NULL, err);

	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		rc = docker_image_unused(d, name, ref, cube_json_str(image, "Id", "-"), NULL, err);
	if (rc == 0)
		rc = docker_image_delete(d, ref, err);
	return rc == -ENOENT ? 0 : rc;
}

/* ---- what it says of its programs ---- */

static void template_words(const json_t *list, struct cube_buf *out)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *word = json_string_value(one);

		if (word != NULL)
			(void)cube_buf_add(out, word, strlen(word) + 1);
	}
}

/* NAME=VALUE with a name that a variable can have. */
static void template_env(const json_t *list, struct cube_buf *out)
{
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *word = json_string_value(one);
		const char *is = word != NULL ? strchr(word, '=') : NULL;

		if (is != NULL && cube_name_env_ok(word, (unsigned long)(is - word)))
			(void)cube_buf_add(out, word, strlen(word) + 1);
	}
}

int docker_config_of(const json_t *image, const char *name, struct cube_template_config *ret,
		     struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *config = docker_image_config(image);
	const char *dir = cube_json_str(config, "WorkingDir", "");
	const json_t *cmd = json_object_get(config, "Cmd");
	const char *first = json_string_value(json_array_get(cmd, 0));
	int rc;

	template_env(json_object_get(config, "Env"), &ret->env);
	template_words(json_object_get(config, "Entrypoint"), &ret->entrypoint);
	if (first == NULL || strcmp(first, DOCKER_NO_COMMAND) != 0)
		template_words(cmd, &ret->entrypoint);
	template_copy(ret->user, sizeof(ret->user), cube_json_str(config, "User", ""));
	template_copy(ret->workdir, sizeof(ret->workdir), *dir == '/' ? dir : "");
	rc = ret->env.error != 0 ? ret->env.error : ret->entrypoint.error;
	return rc < 0 ? cube_fail(err, rc, "template %s: %s", name, cube_errno_text(rc)) : 0;
}

int docker_template_config(struct cube_backend *base, const char *name, struct cube_template_config *ret,
			   struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *image = NULL;
	char ref[DOCKER_IMAGE];
	int rc = docker_template_find(docker_of(base), name, ref, &image, NULL, err);

	return rc == 0 ? docker_config_of(image, name, ret, err) : rc;
}
