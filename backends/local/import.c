/* SPDX-License-Identifier: Apache-2.0 */
/* Import of templates: a directory or an archive becomes TEMPLATES/NAME in one step, or nothing does.
 *
 * It grows in .NAME.tmp, which is locked meanwhile; what a daemon that was killed left there is told from
 * what grows by the lock, and removed by the next import of that name. */
#include "backends/local/local_priv.h"
#include "backends/local/template_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/name.h"
#include "backends/local/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMPORT_SAY_NS UINT64_C(1000000000)

struct importing {
	struct cube_local *b;
	const char *name, *source;
	struct cube_local_import im;
	char tmp[CUBE_ID_MAX + 8];
	int dir;     /* .NAME.tmp */
	bool locked; /* by us: it may be removed */
	char reason[160];
};

static void import_say(struct cube_local_import *im, const char *what)
{
	char line[200];

	(void)snprintf(line, sizeof(line), "%s: %" PRIu64 " files, %" PRIu64 " MiB", what, im->files,
		       im->bytes >> 20);
	im->log(im->ctx, line);
}

void cube_local_import_progress(struct cube_local_import *im)
{
	uint64_t now = cube_clock_mono();

	if (now - im->said < IMPORT_SAY_NS)
		return;
	im->said = now;
	import_say(im, "importing");
}

/* ---- a directory ---- */

struct import_saw {
	struct cube_local_import *im;
	struct cube_local_digest *digest;
	const struct cube_local_tree *tree;
};

static void import_saw(void *ctx, const void *data, size_t len)
{
	struct import_saw *s = ctx;

	cube_local_digest_add(s->digest, data, len);
	s->im->bytes = s->tree->bytes;
	s->im->files = s->tree->files;
	cube_local_import_progress(s->im);
}

int cube_local_import_dir(struct cube_local_import *im, int fd, struct cube_err *err)
{
	struct cube_local_tree t = {
		.ids = im->ids, .keep_owners = true, .cancel = im->cancel, .saw = import_saw};
	struct import_saw saw = {.im = im, .digest = cube_local_digest_new(), .tree = &t};
	int rc;

	if (!saw.digest)
		return cube_fail(err, -ENOMEM, "out of memory");
	t.ctx = &saw;
	rc = cube_local_tree_copy(&t, fd, im->root, err);
	(void)cube_local_digest_end(saw.digest, im->fingerprint);
	cube_local_digest_free(saw.digest);
	im->bytes = t.bytes;
	im->files = t.files;
	im->skipped = t.skipped;
	return rc;
}

/* ---- the steps ---- */

static int import_check(const char *name, const char *source, int source_fd, struct stat *ret,
			struct cube_err *err)
{
	if (!cube_name_template_ok(name) || strcmp(name, "host") == 0)
		return cube_fail(err, -EINVAL, "'%.64s' cannot be the name of a template", name);
	if (source_fd < 0)
		return cube_fail(
			err, -EOPNOTSUPP,
			"the local backend imports a directory or a tar archive of this machine, not %.120s",
			source);
	if (fstat(source_fd, ret) < 0)
		return cube_fail_errno(err, "cannot look at %.200s", source);
	if (!S_ISDIR(ret->st_mode) && !S_ISREG(ret->st_mode))
		return cube_fail(err, -EINVAL, "%.200s is neither a directory nor an archive", source);
	return 0;
}

static int import_begin(struct importing *i, struct cube_err *err)
{
	cube_auto_fd tree = -1;
	int rc;

	(void)snprintf(i->tmp, sizeof(i->tmp), ".%s.tmp", i->name);
	if (mkdirat(i->b->templates, i->tmp, 0700) < 0 && errno != EEXIST)
		return cube_fail_errno(err, "cannot make a directory for template %s", i->name);
	i->dir = openat(i->b->templates, i->tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (i->dir < 0 || flock(i->dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? cube_fail(err, -EBUSY, "template %s is being imported", i->name)
					    : cube_fail_errno(err, "cannot lock template %s", i->name);
	i->locked = true;
	rc = cube_file_remove_tree(i->dir, "tree");
	if (rc == 0)
		rc = cube_file_mkdir(i->dir, "tree", 0755, &tree);
	if (rc == 0)
		rc = cube_file_mkdir(tree, CUBE_LOCAL_ROOT_DIR, 0755, &i->im.root);
	if (rc == 0 && (fchmodat(tree, CUBE_LOCAL_ROOT_DIR, 0755, 0) < 0 ||
			fchownat(tree, CUBE_LOCAL_ROOT_DIR, i->im.ids->uid, i->im.ids->gid, 0) < 0))
		rc = -errno;
	return rc < 0 ? cube_fail(err, rc, "cannot make a directory for template %s: %s", i->name,
				  cube_errno_text(rc))
		      : 0;
}

/* The same content under the same name is there already. */
static bool import_is_there(const struct importing *i)
{
	struct cube_template t;

	return *i->im.fingerprint && cube_local_template_info(i->b->templates, i->name, &t) &&
	       strcmp(t.fingerprint, i->im.fingerprint) == 0;
}

static int import_fill(struct importing *i, int fd, mode_t type, struct cube_err *err)
{
	int rc;

	if (S_ISDIR(type)) {
		rc = cube_local_import_dir(&i->im, fd, err);
	} else {
		rc = cube_local_import_print(&i->im, fd, err);
		if (rc == 0 && import_is_there(i))
			return 0;
		if (rc == 0)
			rc = cube_local_import_tar(&i->im, fd, err);
	}
	if (rc == 0 && i->im.files == 0)
		rc = cube_fail(err, -EINVAL, "%.200s holds no files", i->source);
	return rc == 0 ? cube_local_import_finish(&i->im, i->reason, sizeof(i->reason), err) : rc;
}

static int import_write_info(const struct importing *i, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(65536);
	cube_auto(cube_json_auto) json_t *source = cube_json_bytes(i->source, strlen(i->source));
	cube_auto(cube_json_auto) json_t *o = json_pack(
		"{s:O,s:s,s:s,s:I,s:I}", "source", source, "fingerprint", i->im.fingerprint, "reason",
		i->reason, "size", (json_int_t)i->im.bytes, "files", (json_int_t)i->im.files);
	int rc = o ? cube_json_write(o, &text) : -ENOMEM;

	if (rc == 0)
		rc = cube_file_replace(i->dir, "info.json", text.data, text.len, 0600);
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "cannot write info.json: %s", cube_errno_text(rc)) : 0;
}

/* All of it on the disk, then under its name. A template of that name that nobody uses is replaced. */
static int import_commit(struct importing *i, struct cube_err *err)
{
	int rc = import_write_info(i, err);

	if (rc < 0)
		return rc;
	if (syncfs(i->dir) < 0)
		return cube_fail_errno(err, "cannot write template %s", i->name);
	rc = cube_local_template_remove(&i->b->base, i->name, err);
	if (rc < 0)
		return rc;
	if (renameat(i->b->templates, i->tmp, i->b->templates, i->name) < 0)
		return cube_fail_errno(err, "cannot name template %s", i->name);
	return 0;
}

static int import_run(struct importing *i, int fd, mode_t type, struct cube_err *err)
{
	int rc = import_fill(i, fd, type, err);

	if (rc < 0)
		return rc;
	if (import_is_there(i)) {
		i->im.log(i->im.ctx, "unchanged: this content is there already");
		(void)cube_file_remove_tree(i->b->templates, i->tmp);
		return 0;
	}
	rc = import_commit(i, err);
	if (rc < 0)
		return rc;
	import_say(&i->im, "ready");
	if (*i->reason)
		i->im.log(i->im.ctx, i->reason);
	return 0;
}

static void import_no_log(void *ctx, const char *line)
{
	(void)ctx;
	(void)line;
}

int cube_local_template_import(struct cube_backend *base, const char *name, const char *source, int source_fd,
			       void (*log)(void *ctx, const char *line), void *ctx,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct importing i = {.b = b,
			      .name = name,
			      .source = source,
			      .dir = -1,
			      .im = {.ids = &b->host->ids,
				     .root = -1,
				     .log = log ? log : import_no_log,
				     .ctx = ctx,
				     .cancel = cancel}};
	struct stat st = {.st_mode = 0};
	int rc = import_check(name, source, source_fd, &st, err);

	if (rc < 0)
		return rc;
	i.im.said = cube_clock_mono();
	rc = import_begin(&i, err);
	if (rc == 0)
		rc = import_run(&i, source_fd, st.st_mode, err);
	if (rc < 0 && i.locked)
		(void)cube_file_remove_tree(b->templates, i.tmp);
	if (i.im.root >= 0)
		close(i.im.root);
	if (i.dir >= 0)
		close(i.dir);
	return rc;
}
