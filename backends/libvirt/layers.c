/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that stand still: a tree, whose leaves are the disks of machines and what checkpoints name.
 *
 * A layer is made of a machine's disk by a second name (a hard link), before the machine goes on with another disk over it;
 * so nothing is copied, and until then both names mean the disk as it is. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/names.h"

#define LAYER_HEX   "0123456789abcdef"
#define LAYER_FILE  ".qcow2"
#define LAYER_UNDER ".under"

static bool layer_ok(const char *name)
{
	return strlen(name) == LIBVIRT_LAYER && strspn(name, LAYER_HEX) == LIBVIRT_LAYER;
}

static int layer_name(const struct cube_libvirt *v, const char *name, const char *suffix, char out[PATH_MAX],
		      struct cube_err *err)
{
	int n = snprintf(out, PATH_MAX, "%s/layers/%s%s", v->dir, name, suffix);

	return n < 0 || n >= PATH_MAX
		       ? cube_fail(err, -ENAMETOOLONG, "%.200s...: the path is too long", v->dir)
		       : 0;
}

int libvirt_layer_path(const struct cube_libvirt *v, const struct libvirt_layer *l, char out[PATH_MAX],
		       struct cube_err *err)
{
	return layer_name(v, l->name, LAYER_FILE, out, err);
}

/* ---- what is under what ---- */

static int under_read(const char *path, struct libvirt_layer *ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(64);
	int rc = cube_file_read(AT_FDCWD, path, &text);

	ret->name[0] = '\0';
	if (rc == 0 && layer_ok(cube_buf_str(&text)))
		(void)snprintf(ret->name, sizeof(ret->name), "%s", cube_buf_str(&text));
	cube_buf_done(&text);
	return rc == 0 || rc == -ENOENT ? 0 : cube_fail(err, rc, "%.200s: %s", path, cube_errno_text(rc));
}

static int under_write(const char *dir, const char *name, const struct libvirt_layer *l, struct cube_err *err)
{
	cube_auto_fd fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : cube_file_replace(fd, name, l->name, strlen(l->name), 0600);

	return rc < 0 ? cube_fail(err, rc, "%.200s/%s: %s", dir, name, cube_errno_text(rc)) : 0;
}

int libvirt_layer_under(const struct cube_libvirt *v, const char *id, const char *disk,
			struct libvirt_layer *ret, struct cube_err *err)
{
	char name[64], path[PATH_MAX];
	int rc;

	(void)snprintf(name, sizeof(name), "%s" LAYER_UNDER, disk);
	rc = libvirt_box_path(v, id, name, path, err);
	return rc == 0 ? under_read(path, ret, err) : rc;
}

int libvirt_layer_set_under(const struct cube_libvirt *v, const char *id, const char *disk,
			    const struct libvirt_layer *l, struct cube_err *err)
{
	char name[64], dir[PATH_MAX];
	int rc = libvirt_box_path(v, id, "", dir, err);

	(void)snprintf(name, sizeof(name), "%s" LAYER_UNDER, disk);
	return rc == 0 ? under_write(dir, name, l, err) : rc;
}

int libvirt_layer_new(struct libvirt_layer *ret)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return -errno;
	(void)snprintf(ret->name, sizeof(ret->name), "%016" PRIx64, n);
	return 0;
}

int libvirt_layer_of(const struct cube_libvirt *v, const char *path, const struct libvirt_layer *under,
		     const struct libvirt_layer *l, struct cube_err *err)
{
	char dir[PATH_MAX], name[64], to[PATH_MAX];
	int rc = layer_name(v, "", "", dir, err);

	(void)snprintf(name, sizeof(name), "%s" LAYER_UNDER, l->name);
	if (rc == 0) {
		rc = cube_file_mkdir_path(dir, 0711);
		rc = rc < 0 ? cube_fail(err, rc, "%.200s: %s", dir, cube_errno_text(rc)) : 0;
	}
	if (rc == 0)
		rc = under_write(dir, name, under, err);
	if (rc == 0)
		rc = libvirt_layer_path(v, l, to, err);
	if (rc == 0 && link(path, to) < 0)
		rc = cube_fail_errno(err, "%.150s cannot be kept as %.150s", path, to);
	return rc;
}

/* ---- those that nobody needs ---- */

struct sweep {
	struct cube_libvirt *v;
	struct cube_names live;
	int rc; /* the first failure: then nothing goes */
};

static bool sweep_has(const struct sweep *s, const char *name)
{
	for (size_t i = 0; i < s->live.n; i++)
		if (strcmp(s->live.at[i], name) == 0)
			return true;
	return false;
}

/* The layer that is under a disk by its header. What is not there, or is half made, has nothing under it. */
static void sweep_under(struct sweep *s, int dir, const char *file, struct libvirt_layer *ret)
{
	char path[PATH_MAX], layers[PATH_MAX];
	size_t len;
	int rc = libvirt_disk_under(dir, file, path);

	ret->name[0] = '\0';
	if (rc == 0)
		rc = layer_name(s->v, "", "", layers, NULL);
	if (rc < 0) {
		s->rc = rc == -ENOENT || rc == -EINVAL ? s->rc : rc;
		return;
	}
	len = strlen(layers);
	if (strncmp(path, layers, len) == 0)
		(void)snprintf(ret->name, sizeof(ret->name), "%s", path + len);
	if (!layer_ok(ret->name))
		ret->name[0] = '\0';
}

/* With all that is under it. */
static void sweep_mark(struct sweep *s, const struct libvirt_layer *from)
{
	struct libvirt_layer l = *from, noted;

	while (s->rc == 0 && l.name[0] != '\0' && !sweep_has(s, l.name)) {
		char path[PATH_MAX];

		s->rc = cube_names_add(&s->live, l.name);
		if (s->rc == 0)
			s->rc = layer_name(s->v, l.name, LAYER_UNDER, path, NULL);
		if (s->rc == 0)
			s->rc = under_read(path, &noted, NULL);
		if (s->rc == 0)
			s->rc = layer_name(s->v, l.name, LAYER_FILE, path, NULL);
		if (s->rc == 0)
			sweep_under(s, AT_FDCWD, path, &l);
		if (s->rc == 0 && strcmp(noted.name, l.name) != 0)
			sweep_mark(s, &noted);
	}
}

/* A disk, or one that is to take its place, or what else lies there. */
static int sweep_disk(void *ctx, int dir, const char *file)
{
	struct sweep *s = ctx;
	struct libvirt_layer l;

	if (strncmp(file, LIBVIRT_ROOT, strlen(LIBVIRT_ROOT)) != 0 &&
	    strncmp(file, LIBVIRT_WORKSPACE, strlen(LIBVIRT_WORKSPACE)) != 0)
		return 0;
	sweep_under(s, dir, file, &l);
	sweep_mark(s, &l);
	return s->rc;
}

static void sweep_kept(void *ctx, const char *cp, const struct libvirt_kept *k)
{
	(void)cp;
	sweep_mark(ctx, &k->root);
	sweep_mark(ctx, &k->workspace);
}

static int sweep_box(void *ctx, int dir, const char *id)
{
	static const char *const disks[] = {LIBVIRT_ROOT, LIBVIRT_WORKSPACE};
	struct sweep *s = ctx;
	int rc = cube_file_each(dir, id, sweep_disk, s);

	if (s->rc == 0 && rc != -ENOENT && rc != -ENOTDIR)
		s->rc = rc;
	for (size_t i = 0; i < CUBE_COUNT(disks) && s->rc == 0; i++) {
		struct libvirt_layer l;

		s->rc = libvirt_layer_under(s->v, id, disks[i], &l, NULL);
		if (s->rc == 0)
			sweep_mark(s, &l);
	}
	return s->rc;
}

static int sweep_file(void *ctx, int dir, const char *file)
{
	const struct sweep *s = ctx;
	char name[LIBVIRT_LAYER + 1];

	(void)snprintf(name, sizeof(name), "%s", file);
	if (layer_ok(name) && !sweep_has(s, name))
		(void)unlinkat(dir, file, 0);
	return 0;
}

static int sweep_dir(struct sweep *s, const char *name, int (*fn)(void *ctx, int dir, const char *name))
{
	cube_auto_fd dir = open(s->v->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir < 0 ? -errno : cube_file_each(dir, name, fn, s);

	return rc == -ENOENT ? 0 : rc;
}

void libvirt_layers_sweep(struct cube_libvirt *v)
{
	struct sweep s = {.v = v, .live = CUBE_NAMES};

	pthread_mutex_lock(&v->layers_lock);
	s.rc = sweep_dir(&s, "cubes", sweep_box);
	if (s.rc == 0)
		s.rc = libvirt_kept_each(v, sweep_kept, &s, NULL);
	if (s.rc == 0)
		(void)sweep_dir(&s, "layers", sweep_file);
	pthread_mutex_unlock(&v->layers_lock);
	cube_names_done(&s.live);
}
