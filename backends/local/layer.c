/* SPDX-License-Identifier: Apache-2.0 */
/* Templates that are built: the upper layer of a sandbox becomes a layer of templates, and a template is
 * given what others have. */
#include "backends/local/local_priv.h"
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/import_tmp.h"
#include "backends/local/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what lies below ---- */

int cube_local_template_over(struct cube_local *b, const char *name, struct cube_local_template *t,
			     struct cube_err *err)
{
	struct cube_local_template base;
	bool own = true;
	int rc = 0;

	t->n_below = 0;
	cube_template_config_init(&base.config);
	base.n_below = 0;
	if (strcmp(name, CUBE_LOCAL_TEMPLATE_HOST) != 0) {
		own = cube_local_template_own(b, name);
		if (!cube_local_template_read(b->templates, name, &base))
			rc = cube_fail(err, -ENOENT, "no template %s", name);
	}
	if (rc == 0 && base.n_below + (own ? 1u : 0u) > CUBE_LOCAL_LAYERS)
		rc = cube_fail(err, -EFBIG,
			       "more than %d layers of files: put several commands into one step",
			       CUBE_LOCAL_LAYERS);
	if (rc == 0 && own)
		(void)snprintf(t->below[t->n_below++], sizeof(t->below[0]), "%s", name);
	for (unsigned i = 0; rc == 0 && i < base.n_below; i++)
		memcpy(t->below[t->n_below++], base.below[i], sizeof(t->below[0]));
	cube_local_template_done(&base);
	return rc;
}

/* ---- commit ---- */

/* /etc may be whatever was made of it inside. */
int cube_local_template_unseed(struct cube_local *b, const char *set, struct cube_err *err)
{
	struct cube_local_layer layer = CUBE_LOCAL_LAYER_NONE;
	cube_auto_fd etc = -1;
	int rc = cube_local_set_open(&b->store, set, CUBE_PART_ROOT, &layer, err);

	if (rc < 0)
		return rc;
	etc = openat(layer.upper, CUBE_LOCAL_ROOT_DIR "/etc",
		     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; etc >= 0 && cube_local_seed_names[i] != NULL; i++)
		(void)unlinkat(etc, cube_local_seed_names[i], 0);
	cube_local_layer_close(&layer);
	return 0;
}

/* The sandbox's layers, under the layer's name. */
static int layer_take(struct cube_local *b, struct local_cube *c, const char *name, struct cube_err *err)
{
	int rc;

	cube_local_cube_unmount(c);
	rc = cube_local_template_unseed(b, c->id, err);
	return rc == 0 ? cube_local_set_give(&b->store, c->id, name, err) : rc;
}

static int layer_make(struct cube_local *b, struct local_cube *c, const char *name,
		      struct cube_local_import_tmp *tmp, int *ret_root, struct cube_err *err)
{
	struct cube_local_template t = {.t = {.source = "a step of a build", .size = UINT64_MAX}};
	const struct cube_template_order o = {.name = name, .source = "/", .fd = c->dir};
	int rc;

	cube_template_config_init(&t.config);
	rc = cube_local_template_over(b, c->rec.template, &t, err);
	if (rc == 0)
		rc = cube_local_import_tmp_begin(b, &o, tmp, ret_root, err);
	if (rc == 0)
		rc = cube_file_remove_tree(tmp->dir, "tree");
	if (rc == 0)
		rc = layer_take(b, c, name, err);
	if (rc == 0)
		rc = cube_local_template_write(tmp->dir, &t, err);
	if (rc == 0)
		rc = cube_local_import_tmp_name(b, tmp, err);
	cube_local_template_done(&t);
	return rc;
}

int cube_local_template_commit(struct cube_backend *base, const char *id, const char *name,
			       struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_local_import_tmp tmp = CUBE_LOCAL_IMPORT_TMP;
	cube_auto_fd root = -1;
	struct local_cube *c;
	int rc;

	if (faccessat(b->templates, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	rc = cube_local_cube_get(b, id, &c, err);
	if (rc < 0)
		return rc;
	if (c->damaged || c->rec.stage != CUBE_STAGE_STOPPED)
		return cube_fail(err, -EBUSY, "sandbox %s is not stopped", id);
	if (cube_cancel_fired(cancel))
		return cube_fail(err, -EINTR, "interrupted");
	rc = layer_make(b, c, name, &tmp, &root, err);
	if (rc < 0)
		cube_local_import_tmp_drop(b, &tmp, false);
	cube_local_import_tmp_end(&tmp);
	return rc;
}

/* ---- derive ---- */

static bool derive_same(const struct cube_local_template *a, const struct cube_local_template *b)
{
	if (strcmp(a->t.fingerprint, b->t.fingerprint) != 0 || a->n_below != b->n_below)
		return false;
	for (unsigned i = 0; i < a->n_below; i++)
		if (strcmp(a->below[i], b->below[i]) != 0)
			return false;
	return true;
}

static bool derive_is_there(struct cube_local *b, const struct cube_local_template *t)
{
	struct cube_local_template old;
	bool same = cube_local_template_read(b->templates, t->t.name, &old) && derive_same(&old, t);

	cube_local_template_done(&old);
	return same;
}

static int derive_write(struct cube_local *b, const struct cube_local_template *t, struct cube_err *err)
{
	struct cube_local_import_tmp tmp = CUBE_LOCAL_IMPORT_TMP;
	const struct cube_template_order o = {.name = t->t.name, .source = "/", .fd = b->templates};
	cube_auto_fd root = -1;
	int rc = cube_local_import_tmp_begin(b, &o, &tmp, &root, err);

	if (rc == 0)
		rc = cube_file_remove_tree(tmp.dir, "tree");
	if (rc == 0)
		rc = cube_local_template_write(tmp.dir, t, err);
	if (rc == 0)
		rc = cube_local_import_tmp_name(b, &tmp, err);
	if (rc < 0)
		cube_local_import_tmp_drop(b, &tmp, false);
	cube_local_import_tmp_end(&tmp);
	return rc;
}

void cube_local_template_reason(struct cube_local *b, const char *base, struct cube_local_template *t)
{
	struct cube_local_template old;

	if (strcmp(base, CUBE_LOCAL_TEMPLATE_HOST) == 0)
		return;
	if (cube_local_template_read(b->templates, base, &old))
		memcpy(t->t.reason, old.t.reason, sizeof(t->t.reason));
	cube_local_template_done(&old);
}

int cube_local_template_derive(struct cube_backend *backend, const char *base, const struct cube_template *t,
			       const struct cube_template_config *config, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(backend);
	struct cube_local_template made = {.t = *t};
	int rc;

	if (strcmp(t->name, CUBE_LOCAL_TEMPLATE_HOST) == 0 || strcmp(t->name, base) == 0)
		return cube_fail(err, -EINVAL, "template %s cannot be built of %s", t->name, base);
	rc = cube_template_config_copy(&made.config, config);
	if (rc < 0)
		return cube_fail(err, rc, "out of memory");
	rc = cube_local_template_over(b, base, &made, err);
	cube_local_template_reason(b, base, &made);
	if (rc == 0 && !derive_is_there(b, &made))
		rc = derive_write(b, &made, err);
	cube_local_template_done(&made);
	return rc;
}
