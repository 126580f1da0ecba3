/* SPDX-License-Identifier: Apache-2.0 */
/* A template of a checkpoint: a copy of its set, as the store copies (a snapshot costs nothing), over what the
 * checkpoint's files lie over. The set gets a name of its own that nobody has had, so that one that was cut off before
 * a template names it is nobody's, and the next start sweeps it. */
#include "backends/local/checkpoint.h"
#include "backends/local/local_priv.h"
#include "backends/local/template_priv.h"

#include "backends/base/file.h"
#include "backends/local/import_tmp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static int keep_name(struct cube_local_template *t, struct cube_err *err)
{
	unsigned long long n;

	if (getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n))
		return cube_fail_errno(err, "random numbers");
	(void)snprintf(t->set, sizeof(t->set), "template-%016llx", n);
	return 0;
}

static bool keep_is_there(struct cube_local *b, const struct cube_template *t)
{
	struct cube_local_template old;
	bool same = cube_local_template_read(b->templates, t->name, &old) &&
		    strcmp(old.t.fingerprint, t->fingerprint) == 0;

	cube_local_template_done(&old);
	return same;
}

/* What the files of the checkpoint lie over, and what that says of its programs. */
static int keep_over(struct cube_local *b, const struct cube_local_checkpoint *cp,
		     struct cube_local_template *t, struct cube_err *err)
{
	int rc = cube_local_template_over(b, cp->template, t, err);

	if (rc == 0)
		rc = cube_local_template_config(&b->base, cp->template, &t->config, err);
	cube_local_template_reason(b, cp->template, t);
	return rc;
}

static int keep_files(struct cube_local *b, const char *cp, struct cube_local_template *t,
		      struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = keep_name(t, err);

	if (rc == 0)
		rc = cube_local_set_copy(&b->store, cp, t->set, cancel, err);
	if (rc == 0)
		rc = cube_local_template_unseed(b, t->set, err);
	return rc;
}

static int keep_make(struct cube_local *b, const char *cp, struct cube_local_template *t,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local_import_tmp tmp = CUBE_LOCAL_IMPORT_TMP;
	const struct cube_template_order o = {.name = t->t.name, .source = "/", .fd = b->templates};
	cube_auto_fd root = -1;
	int rc = cube_local_template_unused(b, t->t.name, err);

	if (rc == 0)
		rc = cube_local_import_tmp_begin(b, &o, &tmp, &root, err);
	if (rc == 0)
		rc = cube_file_remove_tree(tmp.dir, "tree");
	if (rc == 0)
		rc = keep_files(b, cp, t, cancel, err);
	if (rc == 0)
		rc = cube_local_template_write(tmp.dir, t, err);
	if (rc == 0)
		rc = cube_local_import_tmp_name(b, &tmp, err);
	if (rc < 0) {
		cube_local_import_tmp_drop(b, &tmp, false);
		if (*t->set)
			(void)cube_local_set_remove(&b->store, t->set, NULL);
	}
	cube_local_import_tmp_end(&tmp);
	return rc;
}

int cube_local_template_keep(struct cube_backend *base, const char *cp, const struct cube_template *t,
			     struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct cube_local_template made = {.t = *t};
	struct cube_local_checkpoint rec;
	int rc = cube_local_checkpoint_read(b, cp, false, &rec, err);

	if (rc == 0 && strcmp(t->name, CUBE_LOCAL_TEMPLATE_HOST) == 0)
		rc = cube_fail(err, -EBUSY, "the template host is this machine itself: take another name");
	if (rc == 0 && cube_cancel_fired(cancel))
		rc = cube_fail(err, -EINTR, "interrupted");
	if (rc < 0 || keep_is_there(b, t))
		return rc;
	cube_template_config_init(&made.config);
	made.t.size = cube_local_disk_get(b->disk, cp);
	rc = keep_over(b, &rec, &made, err);
	if (rc == 0)
		rc = keep_make(b, cp, &made, cancel, err);
	cube_local_template_done(&made);
	return rc;
}
