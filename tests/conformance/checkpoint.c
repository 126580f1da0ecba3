/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints, sandboxes that are made from them, reset, and what differs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/states.h"

static void restore(struct subject *s, const char *id, const char *cp)
{
	struct cube_err err;

	if (cube_backend_restore(s->stage.b, id, cp, NULL, &err) < 0)
		fail_msg("restore: %s", err.text);
}

static struct cube_root view(struct subject *s, const char *cp)
{
	struct cube_root root;
	struct cube_err err;

	if (cube_backend_checkpoint_root(s->stage.b, cp, &root, &err) < 0)
		fail_msg("checkpoint_root: %s", err.text);
	return root;
}

static void expect_view(struct subject *s, const char *cp, const char *text)
{
	struct cube_root root = view(s, cp);

	expect_file(root.fd, "tmp/state", text);
	expect_file(states_workspace(&root), "state", text);
	cube_root_close(&root);
}

struct seen {
	const char *cp;
	unsigned n;
	char of[CUBE_ID_MAX + 1];
};

static void see(void *ctx, const struct cube_checkpoint *c)
{
	struct seen *seen = ctx;

	if (strcmp(c->id, seen->cp) != 0)
		return;
	seen->n++;
	assert_string_equal(c->reason, "");
	(void)snprintf(seen->of, sizeof(seen->of), "%s", c->of);
}

static void life(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	const struct cube_take bad = {.cp = "../x", .files = true}, good = {.cp = ONE, .files = true};
	struct seen seen = {.cp = ONE};
	struct cube_root root;
	struct cube_err err;
	uint32_t still;

	assert_int_equal(cube_backend_checkpoint_list(s->stage.b, see, &seen, NULL), 0);
	assert_int_equal(seen.n, 0);
	states_put(s, id, "first\n");
	states_take(s, id, ONE);
	states_put(s, id, "second\n");
	states_take(s, id, ONE); /* an answer that was lost: the same checkpoint */
	assert_int_equal(cube_backend_checkpoint_list(s->stage.b, see, &seen, NULL), 0);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.of, id);
	expect_view(s, ONE, "first\n");
	states_drop(s, ONE);
	states_drop(s, ONE);
	expect_failure(cube_backend_checkpoint_root(s->stage.b, ONE, &root, &err), -ENOENT, &err);
	expect_failure(cube_backend_restore(s->stage.b, id, ONE, NULL, &err), -ENOENT, &err);
	expect_failure(cube_backend_checkpoint(s->stage.b, id, &bad, NULL, &still, &err), -EINVAL, &err);
	expect_failure(cube_backend_checkpoint(s->stage.b, "none", &good, NULL, &still, &err), -ENOENT, &err);
	states_expect(s, id, "second\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* Nothing can be written to a view, by whoever. */
static void read_only(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;

	states_put(s, id, "first\n");
	states_take(s, id, ONE);
	root = view(s, ONE);
	assert_true(root.read_only);
	assert_true(root.mounts[0].read_only);
	cube_root_close(&root);
	states_drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void restored(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;
	uint64_t generation;
	struct bed b;

	states_put(s, id, "first\n");
	states_take(s, id, ONE);
	states_put(s, id, "second\n");
	states_take(s, id, TWO);
	root = expect_root(s, id);
	generation = root.generation;
	cube_root_close(&root);
	restore(s, id, ONE);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	root = expect_root(s, id);
	assert_true(root.generation != generation);
	cube_root_close(&root);
	states_expect(s, id, "first\n");
	b = (struct bed){.subject = s, .id = id};
	b.ear = ear_open(&s->stage, id);
	expect_output(&b, 0, "cat /tmp/state", "first\n");
	expect_output(&b, 0, "cat /workspace/state", "first\n");
	states_put(s, id, "third\n");
	expect_view(s, ONE, "first\n");
	states_drop(s, ONE);
	states_expect(s, id, "third\n");
	restore(s, id, TWO);
	states_expect(s, id, "second\n");
	states_drop(s, TWO);
	bed_close(&b);
}

/* One that is stopped stays so. */
static void restored_stopped(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	states_put(s, id, "first\n");
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	states_take(s, id, ONE);
	states_put(s, id, "second\n");
	restore(s, id, ONE);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_STOPPED);
	states_expect(s, id, "first\n");
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	states_expect(s, id, "first\n");
	states_drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static char *made_from(struct subject *s, const char *cp)
{
	char uid[17], *id;
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;

	spec.from = cp;
	if (cube_backend_create(s->stage.b, &spec, NULL, &id, &err) < 0)
		fail_msg("create from: %s", err.text);
	return id;
}

/* Any link of the line can go: parent, checkpoint, child. */
static void forked(struct subject *s)
{
	char *parent = stage_create(&s->stage, NULL), *child, *grandchild;
	char uid[17], *id;
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;

	spec.from = THREE;
	expect_failure(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), -ENOENT, &err);
	states_put(s, parent, "parent\n");
	states_take(s, parent, ONE);
	child = made_from(s, ONE);
	states_expect(s, child, "parent\n");
	states_put(s, child, "child\n");
	states_expect(s, parent, "parent\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, parent, NULL), 0);
	expect_view(s, ONE, "parent\n");
	states_take(s, child, TWO);
	states_drop(s, ONE);
	expect_view(s, TWO, "child\n");
	grandchild = made_from(s, TWO);
	assert_int_equal(cube_backend_destroy(s->stage.b, child, NULL), 0);
	states_drop(s, TWO);
	states_expect(s, grandchild, "child\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, grandchild, NULL), 0);
	cube_free(parent);
	cube_free(child);
	cube_free(grandchild);
}

/* The checkpoint of one sandbox in another. */
static void restored_elsewhere(struct subject *s)
{
	char *a = stage_create(&s->stage, NULL), *b = stage_create(&s->stage, NULL);

	states_put(s, a, "of a\n");
	states_put(s, b, "of b\n");
	states_take(s, a, ONE);
	restore(s, b, ONE);
	states_expect(s, b, "of a\n");
	states_put(s, b, "of b again\n");
	states_expect(s, a, "of a\n");
	states_drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, a, NULL), 0);
	states_expect(s, b, "of b again\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, b, NULL), 0);
	cube_free(a);
	cube_free(b);
}

static void reset(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;
	struct cube_err err;

	states_put(s, id, "mine\n");
	if (cube_backend_reset(s->stage.b, id, NULL, &err) < 0)
		fail_msg("reset: %s", err.text);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	root = expect_root(s, id);
	assert_int_equal(faccessat(root.fd, "tmp/state", F_OK, 0), -1);
	assert_int_equal(faccessat(root.fd, "tmp", F_OK, 0), 0);
	expect_file(states_workspace(&root), "state", "mine\n");
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* ---- volumes ---- */

#define VOLUME "00000000000000d1"
#define COPY   "00000000000000d2"
#define AGAIN  "00000000000000d3"

static void put_volume(struct subject *s, const char *uid, const char *text)
{
	struct cube_root root;

	assert_int_equal(cube_backend_volume_root(s->stage.b, uid, &root, NULL), 0);
	put_file(root.fd, "state", text);
	cube_root_close(&root);
}

static void expect_volume(struct subject *s, const char *uid, const char *text)
{
	struct cube_root root;

	assert_int_equal(cube_backend_volume_root(s->stage.b, uid, &root, NULL), 0);
	expect_file(root.fd, "state", text);
	cube_root_close(&root);
}

static void copy_volume(struct subject *s, const char *cp, const char *to)
{
	struct cube_err err;

	if (cube_backend_volume_copy(s->stage.b, cp, VOLUME, to, NULL, &err) < 0)
		fail_msg("volume_copy: %s", err.text);
}

/* A copy has what the volume had when the checkpoint was taken, and is nobody else's; with the sandbox's own files in
 * the checkpoint or without. */
static void volumes_copied(struct subject *s)
{
	static const char *const uids[] = {VOLUME};
	struct cube_take what = {.cp = ONE, .volumes = uids, .n_volumes = 1, .files = true};
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;
	struct cube_err err;
	uint32_t still;

	assert_int_equal(cube_backend_volume_make(s->stage.b, VOLUME, "v", NULL, NULL), 0);
	put_volume(s, VOLUME, "one\n");
	states_put(s, id, "mine\n");
	assert_int_equal(cube_backend_checkpoint(s->stage.b, id, &what, NULL, &still, &err), 0);
	expect_view(s, ONE, "mine\n");
	what.cp = TWO;
	what.files = false;
	put_volume(s, VOLUME, "two\n");
	assert_int_equal(cube_backend_checkpoint(s->stage.b, id, &what, NULL, &still, &err), 0);
	assert_int_equal(cube_backend_checkpoint(s->stage.b, id, &what, NULL, &still, &err), 0);
	put_volume(s, VOLUME, "three\n");
	copy_volume(s, ONE, COPY);
	copy_volume(s, ONE, COPY);
	copy_volume(s, TWO, AGAIN);
	expect_volume(s, COPY, "one\n");
	expect_volume(s, AGAIN, "two\n");
	put_volume(s, COPY, "own\n");
	expect_volume(s, VOLUME, "three\n");
	expect_failure(cube_backend_volume_copy(s->stage.b, ONE, COPY, "00000000000000d4", NULL, &err),
		       -ENOENT, &err);
	expect_failure(cube_backend_checkpoint_root(s->stage.b, TWO, &root, &err), -ENOENT, &err);
	expect_failure(cube_backend_restore(s->stage.b, id, TWO, NULL, &err), -ENOENT, &err);
	states_drop(s, ONE);
	states_drop(s, TWO);
	expect_failure(cube_backend_volume_copy(s->stage.b, ONE, VOLUME, "00000000000000d4", NULL, &err),
		       -ENOENT, &err);
	assert_int_equal(cube_backend_volume_remove(s->stage.b, VOLUME, NULL), 0);
	expect_volume(s, COPY, "own\n");
	assert_int_equal(cube_backend_volume_remove(s->stage.b, COPY, NULL), 0);
	assert_int_equal(cube_backend_volume_remove(s->stage.b, AGAIN, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* ---- what differs ---- */

static void changes(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root = expect_root(s, id);

	states_expect_changes(s, id, NULL, NULL, "");
	put_file(states_workspace(&root), "a", "1\n");
	assert_int_equal(mkdirat(root.fd, "tmp/d", 0755), 0);
	put_file(root.fd, "tmp/d/x", "x\n");
	states_expect_changes(s, id, NULL, NULL, "A /tmp/d\nA /tmp/d/x\nA /workspace/a\n");
	states_take(s, id, ONE);
	states_expect_changes(s, NULL, ONE, NULL, "A /tmp/d\nA /tmp/d/x\nA /workspace/a\n");
	states_expect_changes(s, id, NULL, ONE, "");
	put_file(states_workspace(&root), "a", "2\n");
	assert_int_equal(unlinkat(root.fd, "tmp/d/x", 0), 0);
	assert_int_equal(symlinkat("nowhere", root.fd, "tmp/d/x"), 0);
	put_file(root.fd, "tmp/new\nline", "n\n");
	states_expect_changes(s, id, NULL, ONE, "T /tmp/d/x\nA /tmp/new\nline\nM /workspace/a\n");
	assert_int_equal(unlinkat(root.fd, "tmp/d/x", 0), 0);
	assert_int_equal(unlinkat(root.fd, "tmp/d", AT_REMOVEDIR), 0);
	states_expect_changes(s, id, NULL, ONE, "D /tmp/d\nA /tmp/new\nline\nM /workspace/a\n");
	cube_root_close(&root);
	states_take(s, id, TWO);
	states_expect_changes(s, NULL, TWO, ONE, "D /tmp/d\nA /tmp/new\nline\nM /workspace/a\n");
	restore(s, id, ONE);
	states_drop(s, ONE);
	states_expect_changes(s, id, NULL, NULL, "");
	root = expect_root(s, id);
	put_file(states_workspace(&root), "b", "b\n");
	cube_root_close(&root);
	states_expect_changes(s, id, NULL, NULL, "A /workspace/b\n");
	states_drop(s, TWO);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

#define DISK_LIMIT (UINT64_C(16) << 20)

/* As much as it takes; the limit must stop it. */
static void expect_full(struct subject *s, const char *id)
{
	static const char block[1u << 20];
	struct cube_root root = expect_root(s, id);
	int fd = openat(states_workspace(&root), "full", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
	    rc = 0;
	uint64_t done = 0;

	assert_true(fd >= 0);
	while (rc == 0 && done < 4 * DISK_LIMIT) {
		ssize_t n = write(fd, block, sizeof(block));

		rc = n < 0 || fsync(fd) < 0 ? -errno : 0;
		done += n > 0 ? (uint64_t)n : 0;
	}
	assert_true(rc == -EDQUOT || rc == -ENOSPC);
	assert_in_range(done, DISK_LIMIT / 2, DISK_LIMIT);
	(void)close(fd);
	cube_root_close(&root);
}

/* Whatever files it gets, its limit stays; a checkpoint has none and takes nothing of it. */
static void limited(struct subject *s)
{
	char uid[17], *id = NULL, *fork = NULL;
	struct cube_spec spec = stage_spec(uid);
	struct cube_err err;

	spec.limits.disk = DISK_LIMIT;
	if (cube_backend_create(s->stage.b, &spec, NULL, &id, &err) < 0)
		fail_msg("create: %s", err.text);
	states_put(s, id, "first\n");
	states_take(s, id, ONE);
	expect_full(s, id);
	restore(s, id, ONE);
	states_expect(s, id, "first\n");
	expect_full(s, id);
	spec = stage_spec(uid);
	spec.limits.disk = DISK_LIMIT;
	spec.from = ONE;
	if (cube_backend_create(s->stage.b, &spec, NULL, &fork, &err) < 0)
		fail_msg("create from a checkpoint: %s", err.text);
	states_expect(s, fork, "first\n");
	expect_full(s, fork);
	states_drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, fork, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(fork);
	cube_free(id);
}

/* ---- a template of one ---- */

const struct check checks_checkpoint[] = {
	{"checkpoint life", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, life},
	{"checkpoint read only", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, read_only},
	{"checkpoint restored", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, restored},
	{"checkpoint restored while stopped", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES | CUBE_CAP_STOP, 0,
	 restored_stopped},
	{"checkpoint forked", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, forked},
	{"checkpoint restored elsewhere", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, restored_elsewhere},
	{"checkpoint limited", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES | CUBE_CAP_DISK, 0, limited},
	{"checkpoint of volumes", CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES | CUBE_CAP_VOLUMES, 0,
	 volumes_copied},
	{"reset", CUBE_CAP_RESET | CUBE_CAP_FILES, 0, reset},
	{"changes", CUBE_CAP_CHANGES | CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, changes},
	{.name = NULL},
};
