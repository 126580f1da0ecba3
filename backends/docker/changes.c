/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between states of a sandbox's files: of layers that are on this machine, any two; else what the engine
 * says of a container and its own image. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/differ.h"
#include "backends/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* What the engine puts there, or mounts, and the machine id, which is every sandbox's own. */
static const char *const changes_theirs[] = {"/.dockerenv",
					     "/dev",
					     "/proc",
					     "/sys",
					     "/etc/hosts",
					     "/etc/hostname",
					     "/etc/resolv.conf",
					     "/etc/machine-id",
					     "/etc/mtab",
					     "/run/.containerenv"};

struct changes {
	const struct cube_changes *what;
	struct cube_docker *d;
	json_t *box;   /* of a sandbox; else NULL */
	json_t *image; /* of a checkpoint; else NULL */
	json_t *base;
	struct cube_root now;
	int was;
	struct cube_names layers[2]; /* of now, of was */
};

static bool changes_mounted(const struct changes *c, const char *path)
{
	const json_t *mounts = json_object_get(c->box, "Mounts"), *one;
	size_t i;

	json_array_foreach(mounts, i,
			   one) if (strcmp(cube_json_str(one, "Destination", ""), path) == 0) return true;
	return false;
}

static bool changes_skip(void *ctx, int dir, const char *path, const char *name)
{
	const struct changes *c = ctx;

	(void)dir;
	(void)name;
	for (size_t i = 0; i < CUBE_COUNT(changes_theirs); i++)
		if (strcmp(path, changes_theirs[i]) == 0)
			return true;
	return strcmp(path, "/workspace") == 0 || changes_mounted(c, path);
}

static void changes_tell(void *ctx, char kind, const char *path)
{
	const struct changes *c = ctx;

	c->what->each(c->what->ctx, kind, path);
}

/* ---- by the layers ---- */

/* Those that only one side has; what lies below is common. A layer's own "-init" part is the engine's. */
static int changes_open(const struct cube_names *all, size_t common, const char *sub, int *out, unsigned *n)
{
	for (size_t i = 0; i + common < all->n; i++) {
		char path[PATH_MAX];
		int fd;

		if (strstr(all->at[i], "-init/diff") != NULL)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", all->at[i], sub);
		fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			return -errno;
		if (fd >= 0)
			out[(*n)++] = fd;
	}
	return 0;
}

static size_t changes_common(const struct changes *c)
{
	const struct cube_names *a = &c->layers[0], *b = &c->layers[1];
	size_t n = 0;

	while (n < a->n && n < b->n && strcmp(a->at[a->n - 1 - n], b->at[b->n - 1 - n]) == 0)
		n++;
	return n;
}

static int changes_part(const struct changes *c, const char *sub, int now, int was,
			struct cube_cancel *cancel)
{
	size_t common = changes_common(c), most = c->layers[0].n + c->layers[1].n - 2 * common;
	int *layers = cube_calloc(most + 1, sizeof(*layers)), rc = layers != NULL ? 0 : -ENOMEM;
	struct cube_differ d = {.now = now,
				.was = was,
				.layers = layers,
				.path = sub,
				.whole_seconds = true,
				.each = changes_tell,
				.skip = *sub == '\0' ? changes_skip : NULL,
				.ctx = (void *)(uintptr_t)c};

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(c->layers); i++)
		rc = changes_open(&c->layers[i], common, sub, layers, &d.n_layers);
	if (rc == 0)
		rc = cube_differ_run(&d, cancel);
	for (unsigned i = 0; i < d.n_layers; i++)
		cube_close_auto(&layers[i]);
	cube_free(layers);
	return rc;
}

/* A volume at /workspace is in no checkpoint. */
static int changes_workspace(const struct changes *c, struct cube_cancel *cancel)
{
	cube_auto_fd was = openat(c->was, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	for (unsigned i = 0; i < c->now.n_mounts; i++)
		if (strcmp(c->now.mounts[i].path, "/workspace") == 0 && !c->now.mounts[i].shared)
			return changes_part(c, "/workspace", c->now.mounts[i].fd,
					    was < 0 ? CUBE_DIFFER_NONE : was, cancel);
	return 0;
}

static int changes_by_layers(struct changes *c, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = c->box != NULL ? docker_root(&c->d->base, c->what->id, &c->now, err)
				: docker_checkpoint_root(&c->d->base, c->what->cp, &c->now, err);

	if (rc < 0)
		return rc;
	c->was = docker_layers_view(c->base);
	rc = c->was < 0 ? c->was : docker_layers(c->box != NULL ? c->box : c->image, &c->layers[0]);
	if (rc == 0)
		rc = docker_layers(c->base, &c->layers[1]);
	if (rc == 0)
		rc = changes_part(c, "", c->now.fd, c->was, cancel);
	if (rc == 0)
		rc = changes_workspace(c, cancel);
	return rc < 0 ? cube_fail(err, rc, "cannot tell what changed in %s: %s",
				  c->box != NULL ? c->what->id : c->what->cp,
				  rc == -EINTR ? "interrupted" : cube_errno_text(rc))
		      : 0;
}

/* ---- by the engine ---- */

static bool changes_is_parent(const json_t *all, const char *path)
{
	size_t len = strlen(path), i;
	const json_t *one;

	json_array_foreach(all, i, one)
	{
		const char *other = cube_json_str(one, "Path", "");

		if (strncmp(other, path, len) == 0 && other[len] == '/')
			return true;
	}
	return false;
}

/* It tells each directory in which there is something else as changed. */
static int changes_by_engine(struct changes *c, struct cube_cancel *cancel, struct cube_err *err)
{
	static const char kinds[] = "MAD";
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *one;
	size_t i;
	int rc;

	if (c->box == NULL ||
	    strcmp(cube_json_str(c->box, "Image", ""), cube_json_str(c->base, "Id", "-")) != 0)
		return cube_fail(err, -EOPNOTSUPP, "what changed since another state is not known here: %s",
				 docker_root_why(c->d));
	rc = docker_box_ask(
		c->d, c->what->id,
		&(struct docker_ask){
			.method = "GET", .path = "/changes", .what = "ask what changed in", .ret = &all},
		cancel, err);
	json_array_foreach(all, i, one)
	{
		const char *path = cube_json_str(one, "Path", "");
		int64_t kind = cube_json_int(one, "Kind", -1);

		if (rc == 0 && kind >= 0 && kind <= 2 && !changes_skip(c, CUBE_DIFFER_NONE, path, "") &&
		    (kind != 0 || !changes_is_parent(all, path)))
			changes_tell(c, kinds[kind], path);
	}
	return rc;
}

/* ---- which two ---- */

static int changes_template(struct changes *c, const char *name, struct cube_cancel *cancel,
			    struct cube_err *err)
{
	char ref[DOCKER_IMAGE];

	return docker_template_find(c->d, name, ref, &c->base, cancel, err);
}

static int changes_find(struct changes *c, struct cube_cancel *cancel, struct cube_err *err)
{
	const struct cube_changes *what = c->what;
	const json_t *of;
	int rc = what->cp != NULL ? docker_checkpoint_get(c->d, what->cp, cancel, &c->image, err)
				  : docker_box_get(c->d, what->id, cancel, &c->box, err);

	if (rc == 0 && what->base != NULL &&
	    docker_checkpoint_get(c->d, what->base, cancel, &c->base, NULL) == 0)
		return 0;
	if (rc < 0)
		return rc;
	of = c->box != NULL ? c->box : c->image;
	if (c->box != NULL && *docker_image_label(of, DOCKER_LABEL_BASE) != '\0')
		return docker_image_get(c->d, cube_json_str(c->box, "Image", "-"), cancel, &c->base, err);
	return changes_template(
		c, c->box != NULL ? docker_box_template(of) : docker_image_label(of, DOCKER_LABEL_IMAGE),
		cancel, err);
}

int docker_changes(struct cube_backend *base, const struct cube_changes *what, struct cube_cancel *cancel,
		   struct cube_err *err)
{
	struct changes c = {.what = what, .d = docker_of(base), .now = {.fd = -1}, .was = -1};
	int rc = what->id != NULL ? docker_settle(c.d, what->id, err) : 0;

	if (rc == 0)
		rc = changes_find(&c, cancel, err);
	if (rc == 0)
		rc = docker_root_why(c.d) == NULL ? changes_by_layers(&c, cancel, err)
						  : changes_by_engine(&c, cancel, err);
	cube_root_close(&c.now);
	cube_close_auto(&c.was);
	for (size_t i = 0; i < CUBE_COUNT(c.layers); i++)
		cube_names_done(&c.layers[i]);
	json_decref(c.box);
	json_decref(c.image);
	json_decref(c.base);
	return rc;
}
