/* SPDX-License-Identifier: Apache-2.0 */
/* Import of templates: a directory, an archive or an image becomes TEMPLATES/NAME in one step, or nothing
 * does.
 *
 * It grows in .NAME.tmp, which is locked meanwhile; what a daemon that was killed left there is told from
 * what grows by the lock, and removed by the next daemon, but for what was downloaded: the next import of the
 * same checksum goes on with that. */
#include "backends/local/local_priv.h"
#include "backends/local/template_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/fetch.h"
#include "backends/base/file.h"
#include "backends/base/name.h"
#include "backends/local/import_tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_UNPACK 70u /* percent of an import from a URL at which it is downloaded */

struct importing {
	struct cube_local *b;
	const struct cube_template_order *order;
	struct cube_local_import im;
	struct cube_local_import_tmp tmp;
	struct cube_local_template t; /* what will be written down */
	bool there;                   /* the same content is there already */
};

/* The same content under the same name is there already. */
static bool import_is_there(void *ctx)
{
	struct importing *i = ctx;
	struct cube_local_template t;

	i->there = *i->im.fingerprint && cube_local_template_read(i->b->templates, i->order->name, &t) &&
		   strcmp(t.t.fingerprint, i->im.fingerprint) == 0;
	if (*i->im.fingerprint)
		cube_local_template_done(&t);
	return i->there;
}

/* ---- what may be imported ---- */

static bool import_hex(const char *sha256)
{
	return strlen(sha256) == 64 && strspn(sha256, "0123456789abcdef") == 64;
}

static int check_source(const struct cube_template_order *o, struct cube_err *err)
{
	if (o->source[0] == '/')
		return 0;
	if (strncmp(o->source, "http://", 7) != 0 && strncmp(o->source, "https://", 8) != 0)
		return cube_fail(
			err, -EOPNOTSUPP,
			"the local backend imports a directory, an archive or an image of this machine "
			"or from a URL, not %.120s",
			o->source);
	if (!cube_fetch_url_ok(o->source))
		return cube_fail(err, -EINVAL,
				 "%.200s is no URL that can be fetched: http or https, no password in it",
				 o->source);
	if (o->sha256 == NULL)
		return cube_fail(err, -EINVAL, "%.200s: what comes from a URL needs its checksum: sha256=HEX",
				 o->source);
	return 0;
}

int cube_local_template_check(struct cube_backend *b, const struct cube_template_order *o,
			      struct cube_err *err)
{
	(void)b;
	if (!cube_name_template_ok(o->name) || strcmp(o->name, CUBE_LOCAL_TEMPLATE_HOST) == 0)
		return cube_fail(err, -EINVAL, "'%.64s' cannot be the name of a template", o->name);
	if (o->os != NULL && strcmp(o->os, "linux") != 0)
		return cube_fail(err, -EOPNOTSUPP, "os=%.64s: local sandboxes run this machine's linux alone",
				 o->os);
	if (o->uefi || o->tpm || o->specialized)
		return cube_fail(err, -EOPNOTSUPP, "%s=yes: local sandboxes are no machines with firmware",
				 o->uefi  ? "uefi"
				 : o->tpm ? "tpm"
					  : "specialized");
	if (o->sha256 != NULL && !import_hex(o->sha256))
		return cube_fail(err, -EINVAL, "sha256=%.80s: 64 lower case hexadecimal digits", o->sha256);
	return check_source(o, err);
}

/* ---- from what is here ---- */

/* @image is a directory with one. */
static int import_image(struct importing *i, int image, struct cube_err *err)
{
	return cube_local_import_image(&i->im, image, &i->t.config, import_is_there, i, err);
}

static int import_directory(struct importing *i, int fd, struct cube_err *err)
{
	if (i->order->sha256 != NULL)
		return cube_fail(err, -EINVAL, "sha256=: %.200s is a directory, which has no checksum",
				 i->order->source);
	if (cube_local_oci_there(fd))
		return import_image(i, fd, err);
	return cube_local_import_dir(&i->im, fd, err);
}

/* What was unpacked is an image: it is moved aside, and its layers become the root. */
static int import_unpacked_image(struct importing *i, struct cube_err *err)
{
	char print[CUBE_DIGEST_TEXT];
	cube_auto_fd image = i->im.root;
	int rc;

	memcpy(print, i->im.fingerprint, sizeof(print));
	i->im.root = -1;
	i->im.own = true;
	i->im.files = i->im.bytes = 0;
	rc = cube_local_import_tmp_aside(&i->tmp, i->im.ids, &i->im.root, err);
	if (rc == 0)
		rc = cube_local_import_image(&i->im, image, &i->t.config, NULL, NULL, err);
	memcpy(i->im.fingerprint, print, sizeof(print));
	return rc;
}

static int import_archive(struct importing *i, int fd, struct cube_err *err)
{
	int rc = cube_local_import_print(&i->im, fd, i->im.fingerprint, err);

	if (rc < 0)
		return rc;
	if (i->order->sha256 != NULL && strcmp(i->im.fingerprint + strlen("sha256:"), i->order->sha256) != 0)
		return cube_fail(err, -EINVAL, "%.120s has the checksum %s, not the one that was given",
				 i->order->source, i->im.fingerprint);
	if (import_is_there(i))
		return 0;
	rc = cube_local_import_tar(&i->im, fd, CUBE_TAR_PLAIN, err);
	return rc == 0 && cube_local_oci_there(i->im.root) ? import_unpacked_image(i, err) : rc;
}

static int import_here(struct importing *i, int fd, struct cube_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return cube_fail_errno(err, "cannot look at %.200s", i->order->source);
	if (S_ISDIR(st.st_mode))
		return import_directory(i, fd, err);
	if (S_ISREG(st.st_mode))
		return import_archive(i, fd, err);
	return cube_fail(err, -EINVAL, "%.200s is neither a directory nor an archive", i->order->source);
}

/* ---- from a URL ---- */

static int import_url(struct importing *i, struct cube_err *err)
{
	cube_auto_fd fd = -1;
	int rc;

	(void)snprintf(i->im.fingerprint, sizeof(i->im.fingerprint), "sha256:%s", i->order->sha256);
	if (import_is_there(i))
		return 0;
	i->im.to = IMPORT_UNPACK;
	fd = openat(i->tmp.dir, i->tmp.kept, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cube_fail_errno(err, "cannot make a file for %.200s", i->order->source);
	rc = cube_local_import_url(&i->im, fd, err);
	if (rc < 0)
		return rc;
	i->im.from = IMPORT_UNPACK;
	i->im.to = 100;
	rc = import_archive(i, fd, err);
	if (rc == -EINVAL) /* it is not what it should be: the next time it is downloaded anew */
		(void)unlinkat(i->tmp.dir, i->tmp.kept, 0);
	return rc;
}

/* ---- the steps ---- */

static int import_fill(struct importing *i, struct cube_err *err)
{
	int rc = i->order->fd < 0 ? import_url(i, err) : import_here(i, i->order->fd, err);

	if (rc < 0 || i->there)
		return rc;
	if (i->im.files == 0)
		return cube_fail(err, -EINVAL, "%.200s holds no files", i->order->source);
	return cube_local_import_finish(&i->im, i->t.t.reason, sizeof(i->t.t.reason), err);
}

/* All of it on the disk, then under its name. A template of that name that nobody uses is replaced. */
static int import_commit(struct importing *i, struct cube_err *err)
{
	struct cube_template *t = &i->t.t;
	int rc;

	(void)snprintf(t->source, sizeof(t->source), "%s", i->order->source);
	(void)snprintf(t->fingerprint, sizeof(t->fingerprint), "%s", i->im.fingerprint);
	t->size = i->im.bytes;
	rc = cube_local_template_write(i->tmp.dir, &i->t, err);
	if (rc == 0)
		rc = cube_local_import_tmp_name(i->b, &i->tmp, err);
	return rc;
}

static int import_run(struct importing *i, struct cube_err *err)
{
	int rc = import_fill(i, err);

	if (rc < 0)
		return rc;
	if (!i->there)
		(void)import_is_there(i); /* a directory is known when it was read */
	if (i->there) {
		i->order->log(i->order->ctx, "unchanged: this content is there already");
		cube_local_import_tmp_drop(i->b, &i->tmp, false);
		return 0;
	}
	rc = import_commit(i, err);
	if (rc < 0)
		return rc;
	cube_local_import_say(&i->im, "ready");
	if (*i->t.t.reason)
		i->order->log(i->order->ctx, i->t.t.reason);
	return 0;
}

int cube_local_template_import(struct cube_backend *base, const struct cube_template_order *o,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct importing i = {
		.b = b,
		.order = o,
		.tmp = CUBE_LOCAL_IMPORT_TMP,
		.im = {.ids = &b->host->ids,
		       .bounds = b->bounds,
		       .root = -1,
		       .order = o,
		       .cancel = cancel,
		       .to = 100},
	};
	int rc;

	if (o->fd < 0 && o->source[0] == '/')
		return cube_fail(err, -EINVAL, "%.200s was not opened", o->source);
	cube_template_config_init(&i.t.config);
	i.im.said = cube_clock_mono();
	rc = cube_local_import_tmp_begin(b, o, &i.tmp, &i.im.root, err);
	if (rc == 0)
		rc = import_run(&i, err);
	if (rc < 0)
		cube_local_import_tmp_drop(b, &i.tmp, true);
	if (i.im.root >= 0)
		close(i.im.root);
	cube_local_import_tmp_end(&i.tmp);
	cube_local_template_done(&i.t);
	return rc;
}
