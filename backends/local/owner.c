/* SPDX-License-Identifier: Apache-2.0 */
/* Labels on disk, and adoption. A sandbox's directory is its mark: all that is in the state directory was made by
 * cubefs, and belongs to the one daemon that holds it. */
#include "backends/local/owner.h"

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/local/local_priv.h"

#include <errno.h>
#include <fcntl.h>

#define OWNER_LABELS "labels"
#define OWNER_MAX    ((size_t)1 << 20)

static int labels_file(int dir, const struct cube_buf *text)
{
	cube_auto_fd fd =
		openat(dir, OWNER_LABELS, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : cube_file_write_all(fd, text->data, text->len);
}

int cube_local_labels_write(int dir, const struct cube_spec *spec, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(OWNER_MAX);
	int rc = cube_spec_labels(spec, &text);

	if (rc == 0 && text.len > 0)
		rc = labels_file(dir, &text);
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "cannot write its labels: %s", cube_errno_text(rc)) : 0;
}

void cube_local_labels_read(int dir, struct cube_buf *out)
{
	if (cube_file_read(dir, OWNER_LABELS, out) < 0)
		cube_buf_reset(out);
}

int cube_local_adopt(struct cube_backend *base, const char *id, const char *uid, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct local_cube *c;
	int rc = cube_local_cube_get(b, id, &c, err);

	(void)uid, (void)cancel;
	if (rc < 0)
		return rc;
	if (c->damaged)
		return cube_fail(err, -EIO, "the record of sandbox %s is damaged: it can only be destroyed",
				 id);
	if (c->rec.stage == CUBE_STAGE_STARTING)
		return cube_fail(err, -EIO, "sandbox %s was never finished: it can only be destroyed", id);
	return 0;
}

int cube_local_let_go(struct cube_backend *base, const char *id, struct cube_err *err)
{
	(void)base, (void)id, (void)err;
	return 0;
}
