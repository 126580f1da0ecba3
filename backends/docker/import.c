/* SPDX-License-Identifier: Apache-2.0 */
/* How templates get to the engine: a directory or an archive of this machine is sent, an image is pulled by the engine
 * itself. Whole or not at all, since the engine tags what is whole. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/digest.h"
#include "backends/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_IMAGE  "image:"
#define IMPORT_ID     "id:"
#define IMPORT_SLOW_S 3600
#define IMPORT_LINE   ((size_t)64 << 10)

int docker_template_check(struct cube_backend *b, const struct cube_template_order *o, struct cube_err *err)
{
	(void)b;
	if (o->uefi || o->tpm || o->specialized)
		return cube_fail(err, -EOPNOTSUPP,
				 "a container has no firmware: uefi, tpm and specialized are for "
				 "machines");
	if (o->os != NULL && strcmp(o->os, "linux") != 0)
		return cube_fail(err, -EOPNOTSUPP, "os=%s: the containers of this backend are linux", o->os);
	if (o->source[0] != '/' && strncmp(o->source, IMPORT_IMAGE, strlen(IMPORT_IMAGE)) != 0 &&
	    strncmp(o->source, IMPORT_ID, strlen(IMPORT_ID)) != 0)
		return cube_fail(
			err, -EOPNOTSUPP,
			"'%.100s': this backend imports a directory or a tar archive of this machine, "
			"image:REFERENCE or id:IMAGE",
			o->source);
	if (o->source[0] != '/' && o->sha256 != NULL)
		return cube_fail(
			err, -EOPNOTSUPP,
			"sha256= is for archives: an image is named by its digest, image:NAME@sha256:...");
	return 0;
}

/* ---- what is sent ---- */

static int import_digest(int fd, struct cube_cancel *cancel, char out[CUBE_DIGEST_TEXT])
{
	struct cube_digest *digest = cube_digest_new();
	char chunk[65536];
	ssize_t n = lseek(fd, 0, SEEK_SET) < 0 ? -1 : 1;
	int rc = digest != NULL ? 0 : -ENOMEM;

	while (rc == 0 && n > 0) {
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0)
			cube_digest_add(digest, chunk, (size_t)n);
		if (cube_cancel_fired(cancel))
			rc = -EINTR;
	}
	if (rc == 0 && n < 0)
		rc = -errno;
	if (rc == 0)
		(void)cube_digest_end(digest, out);
	cube_digest_free(digest);
	return rc;
}

/* The directory as an archive, in an order that is the same each time. */
static int import_pack(struct cube_docker *d, const struct cube_template_order *o, struct cube_cancel *cancel,
		       int *ret_fd, struct cube_err *err)
{
	/* Nothing that differs from one time to the next: neither when a file was read nor our process's number. */
	const char *const root[] = {"tar",
				    "--sort=name",
				    "--numeric-owner",
				    "--xattrs",
				    "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
				    "-c",
				    ".",
				    NULL};
	const char *const user[] = {"tar", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "-c",
				    ".",   NULL};
	struct cube_buf text = CUBE_BUF(4096);
	cube_auto_fd to = openat(d->state, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct cube_spawn s = {
		.argv = geteuid() == 0 ? root : user, .cwd = o->fd, .in = -1, .out = to, .text = &text};
	char why[200];
	int status = 0, rc;

	if (to < 0)
		return cube_fail_errno(err, "a file in %.150s", d->path);
	rc = cube_spawn_run(&s, cancel, &status, err);
	if (rc == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		rc = cube_fail(err, -EIO, "cannot pack %.150s: tar: %s", o->source, why);
	}
	cube_buf_done(&text);
	if (rc == 0)
		*ret_fd = cube_steal_fd(&to);
	return rc;
}

static int import_open(struct cube_docker *d, const struct cube_template_order *o, struct cube_cancel *cancel,
		       int *ret_fd, struct cube_err *err)
{
	struct stat st;

	if (o->fd < 0 || fstat(o->fd, &st) < 0)
		return cube_fail(err, -ENOENT, "%.200s is not open", o->source);
	if (S_ISDIR(st.st_mode))
		return import_pack(d, o, cancel, ret_fd, err);
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return cube_fail(err, -EINVAL, "%.200s is neither a directory nor an archive", o->source);
	*ret_fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 3);
	return *ret_fd < 0 ? cube_fail_errno(err, "%.200s", o->source) : 0;
}

/* ---- progress: lines of JSON ---- */

struct import_log {
	const struct cube_template_order *o;
	struct cube_buf line;
	char last[160];
	char failed[200]; /* the engine says so at the end of an answer that began well */
};

static void import_say(struct import_log *l, const char *text)
{
	struct cube_buf line = CUBE_BUF(1024);

	if (*text == '\0' || strcmp(text, l->last) == 0)
		return;
	(void)snprintf(l->last, sizeof(l->last), "%.159s", text);
	(void)cube_buf_add_escaped(&line, l->last, strlen(l->last), false);
	l->o->log(l->o->ctx, cube_buf_str(&line));
	cube_buf_done(&line);
}

static void import_line(struct import_log *l, const char *text, size_t len)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const json_t *detail;
	int64_t now, all;
	const char *error;

	if (cube_json_parse(text, len, "progress", &o, NULL) < 0)
		return;
	error = cube_json_str(o, "error", NULL);
	if (error != NULL)
		(void)snprintf(l->failed, sizeof(l->failed), "%.199s", error);
	import_say(l, error != NULL ? error : cube_json_str(o, "status", ""));
	detail = json_object_get(o, "progressDetail");
	now = cube_json_int(detail, "current", 0);
	all = cube_json_int(detail, "total", 0);
	if (all > 0 && now >= 0 && now <= all)
		l->o->progress(l->o->ctx, (unsigned)(now * 100 / all));
}

static int import_sink(void *ctx, const void *data, size_t len)
{
	struct import_log *l = ctx;
	const char *end;
	int rc = cube_buf_add(&l->line, data, len);

	while (rc == 0 && l->line.len > 0 && (end = memchr(l->line.data, '\n', l->line.len)) != NULL) {
		size_t n = (size_t)(end - l->line.data);

		import_line(l, l->line.data, n);
		cube_buf_drop(&l->line, n + 1);
	}
	return rc;
}

/* POST /images/create with @query, its answer as it comes. */
static int import_create(struct cube_docker *d, const struct cube_template_order *o, const char *query,
			 int fd, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_str path = cube_asprintf("/images/create?%s", query);
	struct import_log l = {.o = o, .line = CUBE_BUF(IMPORT_LINE)};
	int rc = path == NULL ? cube_fail(err, -ENOMEM, "out of memory")
			      : docker_ask(d,
					   &(struct docker_ask){.method = "POST",
								.path = path,
								.what = "import the template",
								.timeout_s = IMPORT_SLOW_S,
								.sink = import_sink,
								.ctx = &l,
								.body_fd = fd,
								.has_fd = fd >= 0},
					   cancel, err);

	if (rc == 0 && l.line.len > 0)
		import_line(&l, l.line.data, l.line.len);
	if (rc == 0 && l.failed[0] != '\0')
		rc = cube_fail(err, strstr(l.failed, "no space left") != NULL ? -ENOSPC : -EREMOTEIO,
			       "cannot import template %s: the engine at %.100s: %s", o->name, d->where,
			       l.failed);
	cube_buf_done(&l.line);
	return rc;
}

/* ---- the two ways ---- */

static int import_send(struct cube_docker *d, const struct cube_template_order *o, const char *ref, int fd,
		       const char *print, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_buf query = CUBE_BUF(8192);
	int rc;

	/* Podman 4 overlooks a tag that is not in the name. */
	(void)cube_buf_printf(&query, "fromSrc=-&repo=%s%s", DOCKER_REPO, d->engine.podman ? "%3A" : "&tag=");
	(void)cube_http_escape(&query, ref + sizeof(DOCKER_REPO));
	docker_query_label(&query, DOCKER_LABEL_IMAGE, o->name);
	docker_query_label(&query, DOCKER_LABEL_PRINT, print);
	docker_query_label(&query, DOCKER_LABEL_SOURCE, o->source);
	docker_query_label(&query, DOCKER_LABEL_HOME, d->home);
	rc = query.error == 0 && lseek(fd, 0, SEEK_SET) == 0
		     ? 0
		     : cube_fail(err, -EIO, "cannot send %.200s", o->source);
	if (rc == 0)
		rc = import_create(d, o, cube_buf_str(&query), fd, cancel, err);
	cube_buf_done(&query);
	return rc;
}

static int import_file(struct cube_docker *d, const struct cube_template_order *o, const char *ref,
		       struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *there = NULL;
	char print[CUBE_DIGEST_TEXT] = "";
	const json_t *labels;
	cube_auto_fd fd = -1;
	int rc = import_open(d, o, cancel, &fd, err);

	if (rc < 0)
		return rc;
	rc = import_digest(fd, cancel, print);
	if (rc < 0)
		return cube_fail(err, rc, "%.200s: %s", o->source, cube_errno_text(rc));
	if (o->sha256 != NULL && strcmp(print + strlen("sha256:"), o->sha256) != 0)
		return cube_fail(err, -EINVAL, "%.150s has the checksum %s, not the one that was named",
				 o->source, print);
	rc = docker_image_get(d, ref, cancel, &there, NULL);
	labels = json_object_get(json_object_get(there, "Config"), "Labels");
	if (rc == 0 && strcmp(cube_json_str(labels, DOCKER_LABEL_PRINT, ""), print) == 0) {
		o->log(o->ctx, "the same content is there already");
		return 0;
	}
	if (rc == 0)
		rc = docker_image_unused(d, o->name, ref, cube_json_str(there, "Id", "-"), cancel, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	o->log(o->ctx, "sending it to the engine");
	return import_send(d, o, ref, fd, print, cancel, err);
}

/* The engine's own image gets our tag and labels, as an image of nothing else on top of it. */
static int import_tag(struct cube_docker *d, const struct cube_template_order *o, const json_t *have,
		      const char *ref, struct cube_cancel *cancel, struct cube_err *err)
{
	const char *id = cube_json_str(have, "Id", "-");
	struct cube_template_config config;
	int rc;

	cube_template_config_init(&config);
	rc = docker_config_of(have, o->name, &config, err);
	if (rc == 0)
		rc = docker_image_make(d,
				       &(struct docker_image_order){.from = id,
								    .ref = ref,
								    .name = o->name,
								    .source = o->source,
								    .print = id,
								    .config = &config},
				       cancel, err);
	cube_template_config_done(&config);
	return rc;
}

static int import_pull(struct cube_docker *d, const struct cube_template_order *o, const char *image,
		       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_buf query = CUBE_BUF(4096);
	const char *last = strrchr(image, '/');
	int rc;

	(void)cube_buf_adds(&query, "fromImage=");
	(void)cube_http_escape(&query, image);
	/* Without a tag the engine would take all that there are. */
	if (strchr(last != NULL ? last : image, ':') == NULL && strchr(image, '@') == NULL)
		(void)cube_buf_adds(&query, "&tag=latest");
	rc = import_create(d, o, cube_buf_str(&query), -1, cancel, err);
	cube_buf_done(&query);
	return rc;
}

static int import_image(struct cube_docker *d, const struct cube_template_order *o, const char *ref,
			struct cube_cancel *cancel, struct cube_err *err)
{
	bool pull = strncmp(o->source, IMPORT_IMAGE, strlen(IMPORT_IMAGE)) == 0;
	const char *image = o->source + (pull ? strlen(IMPORT_IMAGE) : strlen(IMPORT_ID));
	cube_auto(cube_json_auto) json_t *have = NULL, *there = NULL;
	int rc;

	if (pull && docker_image_get(d, image, cancel, &have, NULL) < 0) {
		rc = import_pull(d, o, image, cancel, err);
		if (rc < 0)
			return rc;
	}
	if (have == NULL) {
		rc = docker_image_get(d, image, cancel, &have, err);
		if (rc < 0)
			return rc;
	}
	rc = docker_image_get(d, ref, cancel, &there, NULL);
	if (rc == 0 && strcmp(cube_json_str(there, "Parent", ""), cube_json_str(have, "Id", "-")) == 0) {
		o->log(o->ctx, "the same image is there already");
		return 0;
	}
	if (rc == 0)
		rc = docker_image_unused(d, o->name, ref, cube_json_str(there, "Id", "-"), cancel, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return import_tag(d, o, have, ref, cancel, err);
}

int docker_template_import(struct cube_backend *base, const struct cube_template_order *o,
			   struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	char ref[DOCKER_IMAGE];
	int rc = docker_template_check(base, o, err);

	if (rc < 0)
		return rc;
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	docker_template_ref(o->name, ref);
	rc = o->source[0] == '/' ? import_file(d, o, ref, cancel, err) : import_image(d, o, ref, cancel, err);
	if (rc == 0)
		o->progress(o->ctx, 100);
	return rc;
}
