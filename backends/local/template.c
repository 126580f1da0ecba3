/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox's root is made of: the template `host`, and those that were imported.
 *
 * An imported one is TEMPLATES/NAME/ with the directory `tree` (in it the root, CUBE_LOCAL_ROOT_DIR) and
 * the file info.json. A name that begins with a dot is no template: what is being imported or removed. */
#include "backends/local/local_priv.h"

#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "backends/local/hidden.h"
#include "backends/local/mnt.h"
#include "backends/local/template_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define TEMPLATE_HOST "host"

const char *cube_local_template_default(const struct cube_local *b)
{
	(void)b;
	return TEMPLATE_HOST;
}

void cube_local_base_close(struct cube_local_base *base)
{
	for (unsigned i = 0; i < base->n_lower; i++)
		close(base->lower[i]);
	base->n_lower = 0;
}

/* Where marks can be written, all of this machine's root lies below and the mask points into it; else
 * the mask is alone and usr and opt are bound. */
static int template_open_host(struct cube_local *b, struct cube_local_base *ret, struct cube_err *err)
{
	int rc, slash;

	if (!b->mask)
		return cube_fail(err, -EOPNOTSUPP, "the template host cannot be used: %s", b->host_why);
	rc = cube_local_mask_get(b->mask, &ret->lower[0], err);
	if (rc < 0)
		return rc;
	ret->n_lower = 1;
	if (b->host->slash < 0)
		return 0;
	slash = fcntl(b->host->slash, F_DUPFD_CLOEXEC, 3);
	if (slash < 0) {
		rc = cube_fail_errno(err, "out of descriptors");
		cube_local_base_close(ret);
		return rc;
	}
	ret->lower[ret->n_lower++] = slash;
	return 0;
}

void cube_local_template_binds(const struct cube_local *b, const char *name, struct cube_local_shown *ret)
{
	ret->n = 0;
	if (strcmp(name, TEMPLATE_HOST) == 0 && b->host->slash < 0)
		cube_local_mask_shown(ret);
}

int cube_local_template_wait(const struct cube_local *b, const char *name, struct cube_cancel *cancel,
			     struct cube_err *err)
{
	int rc = strcmp(name, TEMPLATE_HOST) == 0 && b->host->slash >= 0 ? cube_local_hidden_wait(cancel) : 0;

	return rc < 0 ? cube_fail(err, rc, "interrupted") : 0;
}

int cube_local_template_open(struct cube_local *b, const char *name, struct cube_local_base *ret,
			     struct cube_err *err)
{
	char path[CUBE_ID_MAX + 8];
	int fd;

	*ret = (struct cube_local_base){.n_lower = 0};
	if (strcmp(name, TEMPLATE_HOST) == 0)
		return template_open_host(b, ret, err);
	if (!cube_name_template_ok(name))
		return cube_fail(err, -ENOENT, "no template '%.64s'", name);
	(void)snprintf(path, sizeof(path), "%s/tree", name);
	fd = openat(b->templates, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return cube_fail(err, -ENOENT, "no template %s: see backends/%s/templates, or import one",
				 name, b->base.name);
	ret->lower[0] = fd;
	ret->n_lower = 1;
	ret->index = true;
	return 0;
}

int cube_local_template_check(struct cube_local *b, const char *name, struct cube_err *err)
{
	struct cube_template t;

	if (strcmp(name, TEMPLATE_HOST) == 0 || !cube_name_template_ok(name) ||
	    !cube_local_template_info(b->templates, name, &t) || !*t.reason)
		return 0;
	return cube_fail(err, -EOPNOTSUPP, "template %s runs no sandbox: %s", name, t.reason);
}

/* ---- list ---- */

static void list_host(const struct cube_local *b, void (*each)(void *ctx, const struct cube_template *t),
		      void *ctx)
{
	struct cube_template t = {.name = TEMPLATE_HOST, .source = "this machine", .size = UINT64_MAX};

	(void)snprintf(t.state, sizeof(t.state), "%s", b->mask ? "ready" : "error");
	if (!b->mask)
		(void)snprintf(t.reason, sizeof(t.reason), "%.199s", b->host_why);
	each(ctx, &t);
}

bool cube_local_template_info(int templates, const char *name, struct cube_template *ret)
{
	struct cube_buf text = CUBE_BUF(65536);
	cube_auto(cube_json_auto) json_t *o = NULL;
	char path[CUBE_ID_MAX + 16];
	bool ok;

	*ret = (struct cube_template){.size = UINT64_MAX};
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	(void)snprintf(path, sizeof(path), "%s/info.json", name);
	ok = cube_file_read(templates, path, &text) == 0 &&
	     cube_json_parse(cube_buf_str(&text), text.len, path, &o, NULL) == 0;
	cube_buf_done(&text);
	(void)snprintf(ret->state, sizeof(ret->state), "%s", ok ? "ready" : "error");
	if (!ok) {
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "its info.json cannot be read: import it again");
		return false;
	}
	(void)snprintf(ret->source, sizeof(ret->source), "%s", cube_json_str(o, "source", ""));
	(void)snprintf(ret->fingerprint, sizeof(ret->fingerprint), "%s", cube_json_str(o, "fingerprint", ""));
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s", cube_json_str(o, "reason", ""));
	ret->size = (uint64_t)cube_json_int(o, "size", -1);
	return true;
}

/* .NAME.tmp: locked by who imports it; without a lock it was left behind. */
static bool list_growing(int templates, const char *entry, struct cube_template *ret)
{
	size_t n = strlen(entry);
	cube_auto_fd dir = -1;

	*ret = (struct cube_template){.size = UINT64_MAX};
	if (n < 6 || entry[0] != '.' || strcmp(entry + n - 4, ".tmp") != 0)
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(n - 5), entry + 1);
	dir = openat(templates, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || !cube_name_template_ok(ret->name) || faccessat(templates, ret->name, F_OK, 0) == 0)
		return false;
	if (flock(dir, LOCK_SH | LOCK_NB) < 0) {
		(void)snprintf(ret->state, sizeof(ret->state), "importing");
	} else {
		(void)snprintf(ret->state, sizeof(ret->state), "error");
		(void)snprintf(ret->reason, sizeof(ret->reason),
			       "its import was interrupted: import it again");
	}
	return true;
}

int cube_local_template_list(struct cube_backend *base,
			     void (*each)(void *ctx, const struct cube_template *t), void *ctx,
			     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	int fd = openat(b->templates, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct cube_template t;
	const struct dirent *e;

	if (!d) {
		rc = cube_fail_errno(err, "cannot list the templates");
		if (fd >= 0)
			close(fd);
		return rc;
	}
	list_host(b, each, ctx);
	while ((e = readdir(d)) != NULL) {
		if (cube_name_template_ok(e->d_name))
			(void)cube_local_template_info(b->templates, e->d_name, &t);
		else if (!list_growing(b->templates, e->d_name, &t))
			continue;
		each(ctx, &t);
	}
	closedir(d);
	return 0;
}

/* ---- remove ---- */

int cube_local_template_remove(struct cube_backend *base, const char *name, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	char gone[CUBE_ID_MAX + 16];
	int rc;

	if (strcmp(name, TEMPLATE_HOST) == 0)
		return cube_fail(err, -EPERM,
				 "the template host is this machine itself and cannot be removed");
	if (!cube_name_template_ok(name))
		return cube_fail(err, -ENOENT, "no template '%.64s'", name);
	if (cube_local_cubes_use(b, name))
		return cube_fail(err, -EBUSY, "template %s is in use by a sandbox", name);
	(void)snprintf(gone, sizeof(gone), ".%s.gone", name);
	(void)cube_file_remove_tree(b->templates, gone);
	if (renameat(b->templates, name, b->templates, gone) < 0)
		return errno == ENOENT ? 0 : cube_fail_errno(err, "cannot remove template %s", name);
	rc = cube_file_remove_tree(b->templates, gone);
	return rc < 0 ? cube_fail(err, rc, "cannot remove template %s: %s", name, cube_errno_text(rc)) : 0;
}
