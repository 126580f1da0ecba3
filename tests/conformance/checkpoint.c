/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints, what is made from them, reset, and what differs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

#define ONE   "00000000000000c1"
#define TWO   "00000000000000c2"
#define THREE "00000000000000c3"

static void take(struct subject *s, const char *id, const char *cp)
{
	const struct cube_take what = {.cp = cp, .files = true};
	uint32_t still;
	struct cube_err err;

	if (cube_backend_checkpoint(s->stage.b, id, &what, NULL, &still, &err) < 0)
		fail_msg("checkpoint: %s", err.text);
}

static void drop(struct subject *s, const char *cp)
{
	struct cube_err err;

	if (cube_backend_checkpoint_remove(s->stage.b, cp, &err) < 0)
		fail_msg("checkpoint_remove: %s", err.text);
}

static void restore(struct subject *s, const char *id, const char *cp)
{
	struct cube_err err;

	if (cube_backend_restore(s->stage.b, id, cp, NULL, &err) < 0)
		fail_msg("restore: %s", err.text);
}

static int workspace(const struct cube_root *root)
{
	for (unsigned i = 0; i < root->n_mounts; i++)
		if (strcmp(root->mounts[i].path, "/workspace") == 0)
			return root->mounts[i].fd;
	fail_msg("no /workspace");
	return -1;
}

static void put_both(struct subject *s, const char *id, const char *text)
{
	struct cube_root root = expect_root(s, id);

	put_file(root.fd, "tmp/state", text);
	put_file(workspace(&root), "state", text);
	cube_root_close(&root);
}

static void expect_both(struct subject *s, const char *id, const char *text)
{
	struct cube_root root = expect_root(s, id);

	expect_file(root.fd, "tmp/state", text);
	expect_file(workspace(&root), "state", text);
	cube_root_close(&root);
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
	expect_file(workspace(&root), "state", text);
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
	put_both(s, id, "first\n");
	take(s, id, ONE);
	put_both(s, id, "second\n");
	take(s, id, ONE); /* an answer that was lost: the same checkpoint */
	assert_int_equal(cube_backend_checkpoint_list(s->stage.b, see, &seen, NULL), 0);
	assert_int_equal(seen.n, 1);
	assert_string_equal(seen.of, id);
	expect_view(s, ONE, "first\n");
	drop(s, ONE);
	drop(s, ONE);
	expect_failure(cube_backend_checkpoint_root(s->stage.b, ONE, &root, &err), -ENOENT, &err);
	expect_failure(cube_backend_restore(s->stage.b, id, ONE, NULL, &err), -ENOENT, &err);
	expect_failure(cube_backend_checkpoint(s->stage.b, id, &bad, NULL, &still, &err), -EINVAL, &err);
	expect_failure(cube_backend_checkpoint(s->stage.b, "none", &good, NULL, &still, &err), -ENOENT, &err);
	expect_both(s, id, "second\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* Nothing can be written to a view, by whoever. */
static void read_only(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;

	put_both(s, id, "first\n");
	take(s, id, ONE);
	root = view(s, ONE);
	assert_true(root.read_only);
	assert_true(root.mounts[0].read_only);
	cube_root_close(&root);
	drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void restored(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;
	uint64_t generation;
	struct bed b;

	put_both(s, id, "first\n");
	take(s, id, ONE);
	put_both(s, id, "second\n");
	take(s, id, TWO);
	root = expect_root(s, id);
	generation = root.generation;
	cube_root_close(&root);
	restore(s, id, ONE);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	root = expect_root(s, id);
	assert_true(root.generation != generation);
	cube_root_close(&root);
	expect_both(s, id, "first\n");
	b = (struct bed){.subject = s, .id = id};
	b.ear = ear_open(&s->stage, id);
	expect_output(&b, 0, "cat /tmp/state", "first\n");
	expect_output(&b, 0, "cat /workspace/state", "first\n");
	put_both(s, id, "third\n");
	expect_view(s, ONE, "first\n");
	drop(s, ONE);
	expect_both(s, id, "third\n");
	restore(s, id, TWO);
	expect_both(s, id, "second\n");
	drop(s, TWO);
	bed_close(&b);
}

/* One that is stopped stays so. */
static void restored_stopped(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);

	put_both(s, id, "first\n");
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	take(s, id, ONE);
	put_both(s, id, "second\n");
	restore(s, id, ONE);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_STOPPED);
	expect_both(s, id, "first\n");
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	expect_both(s, id, "first\n");
	drop(s, ONE);
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
	put_both(s, parent, "parent\n");
	take(s, parent, ONE);
	child = made_from(s, ONE);
	expect_both(s, child, "parent\n");
	put_both(s, child, "child\n");
	expect_both(s, parent, "parent\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, parent, NULL), 0);
	expect_view(s, ONE, "parent\n");
	take(s, child, TWO);
	drop(s, ONE);
	expect_view(s, TWO, "child\n");
	grandchild = made_from(s, TWO);
	assert_int_equal(cube_backend_destroy(s->stage.b, child, NULL), 0);
	drop(s, TWO);
	expect_both(s, grandchild, "child\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, grandchild, NULL), 0);
	cube_free(parent);
	cube_free(child);
	cube_free(grandchild);
}

/* The checkpoint of one sandbox in another. */
static void restored_elsewhere(struct subject *s)
{
	char *a = stage_create(&s->stage, NULL), *b = stage_create(&s->stage, NULL);

	put_both(s, a, "of a\n");
	put_both(s, b, "of b\n");
	take(s, a, ONE);
	restore(s, b, ONE);
	expect_both(s, b, "of a\n");
	put_both(s, b, "of b again\n");
	expect_both(s, a, "of a\n");
	drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, a, NULL), 0);
	expect_both(s, b, "of b again\n");
	assert_int_equal(cube_backend_destroy(s->stage.b, b, NULL), 0);
	cube_free(a);
	cube_free(b);
}

static void reset(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;
	struct cube_err err;

	put_both(s, id, "mine\n");
	if (cube_backend_reset(s->stage.b, id, NULL, &err) < 0)
		fail_msg("reset: %s", err.text);
	assert_int_equal(stage_state(&s->stage, id), CUBE_IS_RUNNING);
	root = expect_root(s, id);
	assert_int_equal(faccessat(root.fd, "tmp/state", F_OK, 0), -1);
	assert_int_equal(faccessat(root.fd, "tmp", F_OK, 0), 0);
	expect_file(workspace(&root), "state", "mine\n");
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
	put_both(s, id, "mine\n");
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
	drop(s, ONE);
	drop(s, TWO);
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

static void differ(void *ctx, char kind, const char *path)
{
	struct cube_buf *out = ctx;

	(void)cube_buf_printf(out, "%c %s\n", kind, path);
}

static void expect_changes(struct subject *s, const char *id, const char *cp, const char *base,
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

static void changes(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root = expect_root(s, id);

	expect_changes(s, id, NULL, NULL, "");
	put_file(workspace(&root), "a", "1\n");
	assert_int_equal(mkdirat(root.fd, "tmp/d", 0755), 0);
	put_file(root.fd, "tmp/d/x", "x\n");
	expect_changes(s, id, NULL, NULL, "A /tmp/d\nA /tmp/d/x\nA /workspace/a\n");
	take(s, id, ONE);
	expect_changes(s, NULL, ONE, NULL, "A /tmp/d\nA /tmp/d/x\nA /workspace/a\n");
	expect_changes(s, id, NULL, ONE, "");
	put_file(workspace(&root), "a", "2\n");
	assert_int_equal(unlinkat(root.fd, "tmp/d/x", 0), 0);
	assert_int_equal(symlinkat("nowhere", root.fd, "tmp/d/x"), 0);
	put_file(root.fd, "tmp/new\nline", "n\n");
	expect_changes(s, id, NULL, ONE, "T /tmp/d/x\nA /tmp/new\nline\nM /workspace/a\n");
	assert_int_equal(unlinkat(root.fd, "tmp/d/x", 0), 0);
	assert_int_equal(unlinkat(root.fd, "tmp/d", AT_REMOVEDIR), 0);
	expect_changes(s, id, NULL, ONE, "D /tmp/d\nA /tmp/new\nline\nM /workspace/a\n");
	cube_root_close(&root);
	take(s, id, TWO);
	expect_changes(s, NULL, TWO, ONE, "D /tmp/d\nA /tmp/new\nline\nM /workspace/a\n");
	restore(s, id, ONE);
	drop(s, ONE);
	expect_changes(s, id, NULL, NULL, "");
	root = expect_root(s, id);
	put_file(workspace(&root), "b", "b\n");
	cube_root_close(&root);
	expect_changes(s, id, NULL, NULL, "A /workspace/b\n");
	drop(s, TWO);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

#define DISK_LIMIT (UINT64_C(16) << 20)

/* As much as it takes; the limit must stop it. */
static void expect_full(struct subject *s, const char *id)
{
	static const char block[1u << 20];
	struct cube_root root = expect_root(s, id);
	int fd = openat(workspace(&root), "full", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), rc = 0;
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
	put_both(s, id, "first\n");
	take(s, id, ONE);
	expect_full(s, id);
	restore(s, id, ONE);
	expect_both(s, id, "first\n");
	expect_full(s, id);
	spec = stage_spec(uid);
	spec.limits.disk = DISK_LIMIT;
	spec.from = ONE;
	if (cube_backend_create(s->stage.b, &spec, NULL, &fork, &err) < 0)
		fail_msg("create from a checkpoint: %s", err.text);
	expect_both(s, fork, "first\n");
	expect_full(s, fork);
	drop(s, ONE);
	assert_int_equal(cube_backend_destroy(s->stage.b, fork, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(fork);
	cube_free(id);
}

/* ---- a template of one ---- */

static void keep(struct subject *s, const char *cp, const char *name, const char *fingerprint)
{
	struct cube_template t = {.source = "sandbox:a/b", .size = UINT64_MAX};
	struct cube_err err;

	(void)snprintf(t.name, sizeof(t.name), "%s", name);
	(void)snprintf(t.fingerprint, sizeof(t.fingerprint), "%s", fingerprint);
	if (cube_backend_template_keep(s->stage.b, cp, &t, NULL, &err) < 0)
		fail_msg("template_keep: %s", err.text);
}

struct listed {
	const char *name;
	unsigned n;
	struct cube_template t;
};

static void list_one(void *ctx, const struct cube_template *t)
{
	struct listed *l = ctx;

	if (strcmp(t->name, l->name) != 0)
		return;
	l->n++;
	l->t = *t;
}

static struct listed listed(struct subject *s, const char *name)
{
	struct listed l = {.name = name};

	assert_int_equal(cube_backend_template_list(s->stage.b, list_one, &l, NULL), 0);
	return l;
}

static void let_template_go(struct subject *s, const char *name)
{
	struct cube_err err;

	if (cube_backend_template_remove(s->stage.b, name, &err) < 0)
		fail_msg("template_remove: %s", err.text);
	assert_int_equal(listed(s, name).n, 0);
}

static void destroy(struct subject *s, char *id)
{
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* Neither the sandbox nor the checkpoint is needed any more; what is made of it is nobody else's. */
static void kept(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL), *first, *second;
	struct listed l;

	put_both(s, id, "kept\n");
	take(s, id, ONE);
	put_both(s, id, "later\n");
	keep(s, ONE, "kept", "cp:1");
	keep(s, ONE, "kept", "cp:1");
	l = listed(s, "kept");
	assert_int_equal(l.n, 1);
	assert_string_equal(l.t.state, "ready");
	assert_string_equal(l.t.source, "sandbox:a/b");
	assert_string_equal(l.t.fingerprint, "cp:1");
	destroy(s, id);
	drop(s, ONE);
	first = stage_create(&s->stage, "kept");
	expect_both(s, first, "kept\n");
	put_both(s, first, "first\n");
	second = stage_create(&s->stage, "kept");
	expect_both(s, second, "kept\n");
	expect_both(s, first, "first\n");
	destroy(s, first);
	destroy(s, second);
	let_template_go(s, "kept");
}

static void kept_refused(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL), *of;
	struct cube_template t = {.name = "kept", .fingerprint = "cp:1"};
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_err err;

	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, NULL, &err), -ENOENT, &err);
	expect_failure(cube_backend_template_keep(s->stage.b, "../x", &t, NULL, &err), -EINVAL, &err);
	put_both(s, id, "one\n");
	take(s, id, ONE);
	(void)snprintf(t.name, sizeof(t.name), "a/b");
	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, NULL, &err), -EINVAL, &err);
	(void)snprintf(t.name, sizeof(t.name), "kept");
	cube_cancel_fire(cancel);
	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, cancel, &err), -EINTR, &err);
	assert_int_equal(listed(s, "kept").n, 0);
	keep(s, ONE, "kept", "cp:1");
	put_both(s, id, "two\n");
	take(s, id, TWO);
	of = stage_create(&s->stage, "kept");
	(void)snprintf(t.fingerprint, sizeof(t.fingerprint), "cp:2");
	expect_failure(cube_backend_template_keep(s->stage.b, TWO, &t, NULL, &err), -EBUSY, &err);
	expect_both(s, of, "one\n");
	destroy(s, of);
	keep(s, TWO, "kept", "cp:2"); /* in its place */
	of = stage_create(&s->stage, "kept");
	expect_both(s, of, "two\n");
	destroy(s, of);
	drop(s, ONE);
	drop(s, TWO);
	let_template_go(s, "kept");
	destroy(s, id);
	cube_cancel_unref(cancel);
}

/* A template of what was made of a template; the lower one is needed then. */
static void kept_again(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL), *child;
	struct cube_root root;
	struct cube_err err;
	int code;

	put_both(s, id, "one\n");
	take(s, id, ONE);
	keep(s, ONE, "lower", "cp:1");
	drop(s, ONE);
	destroy(s, id);
	id = stage_create(&s->stage, "lower");
	root = expect_root(s, id);
	put_file(root.fd, "tmp/more", "more\n");
	assert_int_equal(unlinkat(workspace(&root), "state", 0), 0);
	put_file(workspace(&root), "other", "other\n");
	cube_root_close(&root);
	take(s, id, TWO);
	keep(s, TWO, "upper", "cp:2");
	drop(s, TWO);
	destroy(s, id);
	code = cube_backend_template_remove(s->stage.b, "lower", &err);
	assert_true(code == -EBUSY || code == 0); /* 0: templates are whole copies there */
	child = stage_create(&s->stage, "upper");
	root = expect_root(s, child);
	expect_file(root.fd, "tmp/state", "one\n");
	expect_file(root.fd, "tmp/more", "more\n");
	assert_int_equal(faccessat(workspace(&root), "state", F_OK, 0), -1);
	expect_file(workspace(&root), "other", "other\n");
	cube_root_close(&root);
	destroy(s, child);
	let_template_go(s, "upper");
	if (code == -EBUSY)
		let_template_go(s, "lower");
}

static void kept_changes(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root;

	put_both(s, id, "one\n");
	take(s, id, ONE);
	keep(s, ONE, "kept", "cp:1");
	drop(s, ONE);
	destroy(s, id);
	id = stage_create(&s->stage, "kept");
	expect_changes(s, id, NULL, NULL, "");
	root = expect_root(s, id);
	put_file(root.fd, "tmp/state", "two\n");
	assert_int_equal(unlinkat(workspace(&root), "state", 0), 0);
	put_file(workspace(&root), "w", "w\n");
	cube_root_close(&root);
	expect_changes(s, id, NULL, NULL, "M /tmp/state\nD /workspace/state\nA /workspace/w\n");
	assert_int_equal(cube_backend_reset(s->stage.b, id, NULL, NULL), 0);
	root = expect_root(s, id);
	expect_file(root.fd, "tmp/state", "one\n");
	expect_file(workspace(&root), "w", "w\n"); /* /workspace stays as it is */
	assert_int_equal(faccessat(workspace(&root), "state", F_OK, 0), -1);
	cube_root_close(&root);
	take(s, id, TWO);
	expect_changes(s, NULL, TWO, NULL, "D /workspace/state\nA /workspace/w\n");
	drop(s, TWO);
	destroy(s, id);
	let_template_go(s, "kept");
}

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
	{"template of a checkpoint", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept},
	{"template of a checkpoint refused", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept_refused},
	{"template of a checkpoint again", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept_again},
	{"template of a checkpoint changes",
	 CUBE_CAP_KEEP | CUBE_CAP_FILES | CUBE_CAP_CHANGES | CUBE_CAP_RESET, 0, kept_changes},
	{"reset", CUBE_CAP_RESET | CUBE_CAP_FILES, 0, reset},
	{"changes", CUBE_CAP_CHANGES | CUBE_CAP_CHECKPOINTS | CUBE_CAP_FILES, 0, changes},
	{.name = NULL},
};
