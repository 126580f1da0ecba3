/* SPDX-License-Identifier: Apache-2.0 */
/* Two files that tell one state of a sandbox from another, and the checkpoints of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/states.h"

void states_take(struct subject *s, const char *id, const char *cp)
{
	const struct cube_take what = {.cp = cp, .files = true};
	uint32_t still;
	struct cube_err err;

	if (cube_backend_checkpoint(s->stage.b, id, &what, NULL, &still, &err) < 0)
		fail_msg("checkpoint: %s", err.text);
}

void states_drop(struct subject *s, const char *cp)
{
	struct cube_err err;

	if (cube_backend_checkpoint_remove(s->stage.b, cp, &err) < 0)
		fail_msg("checkpoint_remove: %s", err.text);
}

int states_workspace(const struct cube_root *root)
{
	for (unsigned i = 0; i < root->n_mounts; i++)
		if (strcmp(root->mounts[i].path, "/workspace") == 0)
			return root->mounts[i].fd;
	fail_msg("no /workspace");
	return -1;
}

void states_put(struct subject *s, const char *id, const char *text)
{
	struct cube_root root = expect_root(s, id);

	put_file(root.fd, "tmp/state", text);
	put_file(states_workspace(&root), "state", text);
	cube_root_close(&root);
}

void states_expect(struct subject *s, const char *id, const char *text)
{
	struct cube_root root = expect_root(s, id);

	expect_file(root.fd, "tmp/state", text);
	expect_file(states_workspace(&root), "state", text);
	cube_root_close(&root);
}

static void differ(void *ctx, char kind, const char *path)
{
	struct cube_buf *out = ctx;

	(void)cube_buf_printf(out, "%c %s\n", kind, path);
}

void states_expect_changes(struct subject *s, const char *id, const char *cp, const char *base,
			   const char *expected)
{
	struct cube_buf out = CUBE_BUF(65536);
	const struct cube_changes what = {.id = id, .cp = cp, .base = base, .each = differ, .ctx = &out};
	struct cube_err err;

	if (cube_backend_changes(s->stage.b, &what, NULL, &err) < 0)
		fail_msg("changes: %s", err.text);
	assert_string_equal(cube_buf_str(&out), expected);
	cube_buf_done(&out);
}
