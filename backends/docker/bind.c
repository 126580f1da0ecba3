/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of this machine in a container: mounted into its namespace while it runs, since an engine takes none then;
 * after each start before anything of its own runs.
 *
 * The number of a mount inside is written down before it is attached: a daemon that is killed in between finds it, or that
 * it is not there. What is to be there is the daemon's to remember, and to tell again. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/name.h"
#include "backends/ns/bind.h"
#include "backends/ns/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIND_FILE "binds" /* a line that tells its run from others, then lines: NUMBER PATH */
#define BIND_TEXT ((size_t)64 << 10)

static const struct cube_ns_ids bind_ids = {.count = UINT32_MAX};

struct docker_bind {
	char path[CUBE_INSIDE_MAX + 1];
	struct cube_bind
		what;    /* with our own path and descriptor; -1: it has not been told since our start */
	uint64_t number; /* of its mount inside; 0: none */
};

struct docker_binds {
	char run[48]; /* when the container was started that has mounts of those numbers, in the engine's words */
	unsigned n; /* a parent's path is before what is in it */
	struct docker_bind list[DOCKER_MOUNTS];
};

/* ---- what is known ---- */

static void binds_close(struct docker_binds *b)
{
	for (unsigned i = 0; i < b->n; i++)
		cube_close_auto(&b->list[i].what.fd);
	cube_free(b);
}

static int binds_each_close(void *ctx, const char *id, void *value)
{
	(void)ctx;
	(void)id;
	binds_close(value);
	return 0;
}

int docker_binds_open(struct cube_docker *d)
{
	d->binds = cube_map_new();
	return d->binds != NULL && pthread_mutex_init(&d->binds_lock, NULL) == 0 ? 0 : -ENOMEM;
}

void docker_binds_close(struct cube_docker *d)
{
	if (d->binds == NULL)
		return;
	(void)cube_map_each(d->binds, binds_each_close, NULL);
	cube_map_free(d->binds);
	(void)pthread_mutex_destroy(&d->binds_lock);
}

void docker_binds_forget(struct cube_docker *d, const char *id)
{
	struct docker_binds *b;

	pthread_mutex_lock(&d->binds_lock);
	b = cube_map_take(d->binds, id);
	pthread_mutex_unlock(&d->binds_lock);
	if (b != NULL)
		binds_close(b);
}

static struct docker_bind *bind_find(struct docker_binds *b, const char *path)
{
	for (unsigned i = 0; i < b->n; i++)
		if (strcmp(b->list[i].path, path) == 0)
			return &b->list[i];
	return NULL;
}

/* NULL: there are too many. */
static struct docker_bind *bind_add(struct docker_binds *b, const char *path)
{
	unsigned at = b->n;

	if (b->n == DOCKER_MOUNTS)
		return NULL;
	for (; at > 0 && strcmp(b->list[at - 1].path, path) > 0; at--) {
		b->list[at] = b->list[at - 1];
		b->list[at].what.path = b->list[at].path;
	}
	b->n++;
	b->list[at] = (struct docker_bind){.what = {.fd = -1}};
	(void)snprintf(b->list[at].path, sizeof(b->list[at].path), "%s", path);
	b->list[at].what.path = b->list[at].path;
	return &b->list[at];
}

static void bind_take(struct docker_binds *b, struct docker_bind *one)
{
	cube_close_auto(&one->what.fd);
	b->n--;
	for (; one < b->list + b->n; one++) {
		*one = one[1];
		one->what.path = one->path;
	}
}

static void binds_read(const struct cube_docker *d, const char *id, struct docker_binds *b)
{
	cube_auto_fd dir = docker_box_dir(d, id, false, NULL);
	struct cube_buf text = CUBE_BUF(BIND_TEXT);
	char *save = NULL, *path, *line;

	line = dir >= 0 && cube_file_read(dir, BIND_FILE, &text) == 0 && text.len > 0
		       ? strtok_r(text.data, "\n", &save)
		       : NULL;
	if (line != NULL)
		(void)snprintf(b->run, sizeof(b->run), "%s", line);
	while (line != NULL && (line = strtok_r(NULL, "\n", &save)) != NULL) {
		uint64_t number = strtoull(line, &path, 10);
		struct docker_bind *one = *path == ' ' ? bind_add(b, path + 1) : NULL;

		if (one != NULL)
			one->number = number;
	}
	cube_buf_done(&text);
}

static int binds_save(const struct cube_docker *d, const char *id, const struct docker_binds *b,
		      struct cube_err *err)
{
	cube_auto_fd dir = docker_box_dir(d, id, true, err);
	struct cube_buf text = CUBE_BUF(BIND_TEXT);
	int rc = dir < 0 ? dir : 0;

	(void)cube_buf_printf(&text, "%s\n", *b->run != '\0' ? b->run : "-");
	for (unsigned i = 0; i < b->n; i++)
		(void)cube_buf_printf(&text, "%" PRIu64 " %s\n", b->list[i].number, b->list[i].path);
	if (rc == 0 && text.error < 0)
		rc = cube_fail(err, text.error, "out of memory");
	if (rc == 0) {
		rc = cube_file_replace(dir, BIND_FILE, cube_buf_str(&text), text.len, 0600);
		if (rc < 0)
			(void)cube_fail(err, rc, "cannot note the binds of sandbox %s: %s", id,
					cube_errno_text(rc));
	}
	cube_buf_done(&text);
	return rc;
}

/* Those of @id, with the lock held; NULL: out of memory. */
static struct docker_binds *binds_of(struct cube_docker *d, const char *id)
{
	struct docker_binds *b = cube_map_get(d->binds, id);

	if (b != NULL)
		return b;
	b = cube_calloc(1, sizeof(*b));
	if (b == NULL)
		return NULL;
	binds_read(d, id, b);
	if (cube_map_put(d->binds, id, b) == 0)
		return b;
	binds_close(b);
	return NULL;
}

/* A number is a mount of one run: the kernel gives it again. */
static struct docker_binds *binds_in(struct cube_docker *d, const char *id, const json_t *box)
{
	const char *run = cube_json_str(json_object_get(box, "State"), "StartedAt", "-");
	struct docker_binds *b = binds_of(d, id);

	if (b == NULL || strncmp(b->run, run, sizeof(b->run) - 1) == 0)
		return b;
	(void)snprintf(b->run, sizeof(b->run), "%s", run);
	for (unsigned i = 0; i < b->n; i++)
		b->list[i].number = 0;
	return b;
}

/* ---- inside ---- */

static bool bind_covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(dir, path, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The directory at @path inside, made where it is missing. @root shows what is mounted there. */
static int bind_point(const struct cube_root *root, const char *path, struct cube_err *err)
{
	const struct cube_file_owner make = {.mode = 0755};
	cube_auto_fd point = -1;
	const char *rest = path;
	int above = root->fd;

	for (unsigned i = 0; i < root->n_mounts; i++)
		if (bind_covers(root->mounts[i].path, path) && strcmp(root->mounts[i].path, path) != 0 &&
		    strlen(root->mounts[i].path) > (size_t)(rest - path)) {
			rest = path + strlen(root->mounts[i].path);
			above = root->mounts[i].fd;
		}
	point = cube_file_beneath(above, rest, &make);
	if (point >= 0)
		return 0;
	return cube_fail(err, point, "bind %s: %s", path,
			 point == -ELOOP ? "a link is in this path inside: name the directory itself"
					 : cube_errno_text(point));
}

static bool bind_is_inside(const struct docker_bind *one, int pid)
{
	struct cube_ns_point p;

	return pid != 0 && one->number != 0 && cube_ns_mount_number(pid, one->number, &p) == 0;
}

static int bind_attach(const struct cube_docker *d, const char *id, struct docker_binds *b,
		       struct docker_bind *one, int pid, struct cube_err *err)
{
	cube_auto_fd fd = cube_ns_bind_mount(&bind_ids, &one->what, err);
	struct statx stx;
	int rc = fd < 0 ? fd : 0;

	if (rc == 0 && statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0)
		rc = cube_fail_errno(err, "bind %s", one->path);
	if (rc < 0)
		return rc;
	one->number = stx.stx_mnt_id; /* which it keeps where it is moved */
	rc = binds_save(d, id, b, err);
	if (rc < 0)
		return rc;
	rc = cube_ns_mount_attach(pid, fd, one->path, &one->number);
	if (rc == 0)
		return 0;
	one->number = 0;
	return cube_fail(err, rc, "bind %s: %s", one->path,
			 rc == -EBUSY   ? "something is mounted there inside"
			 : rc == -ELOOP ? "a link is in this path inside: name the directory itself"
					: cube_errno_text(rc));
}

/* Refused while it is starting or stopping. */
static int bind_look(struct cube_docker *d, const char *id, json_t **ret_box, struct cube_root *ret_root,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = docker_box_get(d, id, cancel, ret_box, err), pid;
	cube_auto_fd proc = -1;

	if (rc < 0)
		return rc;
	pid = docker_box_pid(*ret_box);
	proc = pid != 0 ? docker_proc(d, id, cancel, err) : -1;
	if (pid != 0 && proc < 0)
		return proc;
	rc = docker_root(&d->base, id, ret_root, err);
	return rc;
}

/* ---- the operations ---- */

/* What is there already of the engine's making. */
static int bind_free_place(const json_t *box, const char *path, struct cube_err *err)
{
	const json_t *mounts = json_object_get(box, "Mounts"), *one;
	size_t i;

	if (strcmp(path, "/workspace") == 0)
		return cube_fail(err, -EBUSY, "bind %s: the sandbox's own directory is there", path);
	json_array_foreach(mounts, i, one) if (strcmp(cube_json_str(one, "Destination", ""), path) ==
					       0) return cube_fail(err, -EBUSY, "bind %s: a volume is there",
								   path);
	return 0;
}

static int bind_new(struct cube_docker *d, const char *id, const struct cube_bind *bind, const json_t *box,
		    const struct cube_root *root, struct cube_err *err)
{
	struct docker_binds *b = binds_in(d, id, box);
	struct docker_bind *one = b != NULL ? bind_find(b, bind->path) : NULL;
	bool fresh = one == NULL;
	int pid = docker_box_pid(box);
	cube_auto_fd fd = fcntl(bind->fd, F_DUPFD_CLOEXEC, 3), try = -1;
	int rc = 0;

	if (b == NULL || fd < 0)
		return cube_fail(err, -ENOMEM, "bind %s: out of memory", bind->path);
	try = cube_ns_bind_mount(&bind_ids, bind, err); /* said now where it will not go later either */
	if (try < 0)
		return try;
	if (fresh && root->n_mounts < CUBE_MOUNTS_MAX)
		one = bind_add(b, bind->path);
	if (one == NULL)
		return cube_fail(err, -ENOSPC, "bind %s: a container has %d volumes and binds at most",
				 bind->path, DOCKER_MOUNTS);
	cube_close_auto(&one->what.fd);
	one->what = *bind;
	one->what.path = one->path;
	one->what.fd = cube_steal_fd(&fd);
	if (bind_is_inside(one, pid))
		return 0;
	rc = bind_point(root, one->path, err);
	if (rc == 0)
		rc = pid != 0 ? bind_attach(d, id, b, one, pid, err) : binds_save(d, id, b, err);
	if (rc < 0 && fresh) {
		bind_take(b, one);
		(void)binds_save(d, id, b, NULL);
	}
	return rc;
}

int docker_bind(struct cube_backend *base, const char *id, const struct cube_bind *bind,
		struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	struct cube_root root = {.fd = -1};
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = bind_look(d, id, &box, &root, cancel, err);

	if (rc == 0)
		rc = bind_free_place(box, bind->path, err);
	if (rc == 0) {
		pthread_mutex_lock(&d->binds_lock);
		rc = bind_new(d, id, bind, box, &root, err);
		pthread_mutex_unlock(&d->binds_lock);
	}
	cube_root_close(&root);
	return rc;
}

/* Only the mount that was attached has its number. */
static int bind_gone(struct docker_binds *b, struct docker_bind *one, int pid, struct cube_err *err)
{
	struct cube_ns_point p;
	int rc = pid != 0 && one->number != 0 ? cube_ns_mount_number(pid, one->number, &p) : -ENOENT;

	if (rc == 0)
		rc = cube_ns_mount_detach(pid, &p);
	if (rc < 0 && rc != -ENOENT)
		return cube_fail(err, rc, "unbind %s: %s", one->path,
				 rc == -EBUSY ? "something else is mounted over it inside"
					      : cube_errno_text(rc));
	bind_take(b, one);
	return 0;
}

/* @path NULL: all of them. */
static int binds_gone(struct cube_docker *d, const char *id, const char *path, const json_t *box,
		      struct cube_err *err)
{
	struct docker_binds *b;
	struct docker_bind *one;
	int rc = 0;

	pthread_mutex_lock(&d->binds_lock);
	b = binds_in(d, id, box);
	while (rc == 0 && b != NULL && b->n > 0) {
		one = path != NULL ? bind_find(b, path) : &b->list[b->n - 1];
		if (one == NULL)
			break;
		rc = bind_gone(b, one, docker_box_pid(box), err);
		if (rc == 0)
			rc = binds_save(d, id, b, err);
	}
	pthread_mutex_unlock(&d->binds_lock);
	return b == NULL ? cube_fail(err, -ENOMEM, "out of memory") : rc;
}

static int binds_leave(struct cube_docker *d, const char *id, const char *path, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	int rc = docker_box_get(d, id, NULL, &box, err);

	if (rc == 0 && docker_box_pid(box) != 0) {
		cube_auto_fd proc = docker_proc(d, id, NULL, err);

		if (proc < 0)
			return proc;
	}
	return rc < 0 ? rc : binds_gone(d, id, path, box, err);
}

int docker_unbind(struct cube_backend *base, const char *id, const char *path, struct cube_err *err)
{
	return binds_leave(docker_of(base), id, path, err);
}

int docker_binds_leave(struct cube_docker *d, const char *id, struct cube_err *err)
{
	bool any;

	pthread_mutex_lock(&d->binds_lock);
	any = binds_of(d, id) == NULL || binds_of(d, id)->n > 0;
	pthread_mutex_unlock(&d->binds_lock);
	return any ? binds_leave(d, id, NULL, err) : 0;
}

/* ---- a start; what is shown ---- */

static int binds_started(struct cube_docker *d, const char *id, const json_t *box,
			 const struct cube_root *root, struct cube_err *err)
{
	struct docker_binds *b = binds_in(d, id, box);
	int rc = 0, pid = docker_box_pid(box);

	for (unsigned i = 0; b != NULL && rc == 0 && i < b->n; i++) {
		if (b->list[i].what.fd < 0 || bind_is_inside(&b->list[i], pid))
			continue;
		rc = bind_point(root, b->list[i].path, err);
		if (rc == 0)
			rc = bind_attach(d, id, b, &b->list[i], pid, err);
	}
	return rc;
}

int docker_binds_started(struct cube_docker *d, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *box = NULL;
	struct cube_root root = {.fd = -1};
	bool any;
	int rc;

	pthread_mutex_lock(&d->binds_lock);
	any = binds_of(d, id) != NULL && binds_of(d, id)->n > 0;
	pthread_mutex_unlock(&d->binds_lock);
	if (!any)
		return 0;
	rc = bind_look(d, id, &box, &root, cancel, err);
	if (rc == 0 && docker_box_pid(box) != 0) {
		pthread_mutex_lock(&d->binds_lock);
		rc = binds_started(d, id, box, &root, err);
		pthread_mutex_unlock(&d->binds_lock);
	}
	cube_root_close(&root);
	return rc;
}

static int binds_show(struct docker_binds *b, struct cube_root *root)
{
	for (unsigned i = 0; i < b->n; i++) {
		unsigned n = root->n_mounts;
		int fd;

		if (b->list[i].what.fd < 0)
			continue;
		if (n == CUBE_MOUNTS_MAX)
			return -ENOSPC;
		fd = cube_ns_bind_mount(&bind_ids, &b->list[i].what, NULL);
		if (fd < 0)
			return fd;
		(void)snprintf(root->mounts[n].path, sizeof(root->mounts[n].path), "%s", b->list[i].path);
		root->mounts[n].fd = fd;
		root->mounts[n].read_only = b->list[i].what.read_only;
		root->mounts[n].shared = true;
		root->n_mounts++;
	}
	return 0;
}

int docker_binds_show(struct cube_docker *d, const char *id, struct cube_root *root)
{
	struct docker_binds *b;
	int rc = -ENOMEM;

	pthread_mutex_lock(&d->binds_lock);
	b = binds_of(d, id);
	if (b != NULL)
		rc = binds_show(b, root);
	pthread_mutex_unlock(&d->binds_lock);
	return rc;
}
