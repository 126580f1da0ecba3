/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of checkpoints. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/cancel.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "tests/conformance/states.h"

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

	states_put(s, id, "kept\n");
	states_take(s, id, ONE);
	states_put(s, id, "later\n");
	keep(s, ONE, "kept", "cp:1");
	keep(s, ONE, "kept", "cp:1");
	l = listed(s, "kept");
	assert_int_equal(l.n, 1);
	assert_string_equal(l.t.state, "ready");
	assert_string_equal(l.t.source, "sandbox:a/b");
	assert_string_equal(l.t.fingerprint, "cp:1");
	destroy(s, id);
	states_drop(s, ONE);
	first = stage_create(&s->stage, "kept");
	states_expect(s, first, "kept\n");
	states_put(s, first, "first\n");
	second = stage_create(&s->stage, "kept");
	states_expect(s, second, "kept\n");
	states_expect(s, first, "first\n");
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
	states_put(s, id, "one\n");
	states_take(s, id, ONE);
	(void)snprintf(t.name, sizeof(t.name), "a/b");
	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, NULL, &err), -EINVAL, &err);
	(void)snprintf(t.name, sizeof(t.name), "kept");
	cube_cancel_fire(cancel);
	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, cancel, &err), -EINTR, &err);
	assert_int_equal(listed(s, "kept").n, 0);
	keep(s, ONE, "kept", "cp:1");
	states_put(s, id, "two\n");
	states_take(s, id, TWO);
	of = stage_create(&s->stage, "kept");
	(void)snprintf(t.fingerprint, sizeof(t.fingerprint), "cp:2");
	expect_failure(cube_backend_template_keep(s->stage.b, TWO, &t, NULL, &err), -EBUSY, &err);
	states_expect(s, of, "one\n");
	destroy(s, of);
	keep(s, TWO, "kept", "cp:2"); /* in its place */
	of = stage_create(&s->stage, "kept");
	states_expect(s, of, "two\n");
	destroy(s, of);
	states_drop(s, ONE);
	states_drop(s, TWO);
	let_template_go(s, "kept");
	destroy(s, id);
	cube_cancel_unref(cancel);
}

static void import_say(void *ctx, const char *line)
{
	(void)ctx, (void)line;
}

static void import_progress(void *ctx, unsigned percent)
{
	(void)ctx, (void)percent;
}

/* A directory with a file, at @path from then on, as the template "kept". */
static void import_other(struct subject *s, char *path)
{
	struct cube_template_order o = {
		.name = "kept", .source = path, .log = import_say, .progress = import_progress};
	cube_auto_fd dir = -1;
	struct cube_err err;

	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchmod(dir, 0755), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(mkdirat(dir, ((const char *[]){"tmp", "etc", "bin"})[i], 0755), 0);
	put_file(dir, "etc/other", "other\n");
	put_shell(dir);
	o.fd = dir;
	if (cube_backend_template_import(s->stage.b, &o, NULL, &err) < 0)
		fail_msg("import: %s", err.text);
}

/* Something else in its place has nothing of it; what fails leaves it as it is. */
static void kept_replaced(struct subject *s)
{
	char path[] = "/tmp/cubefs-kept.XXXXXX", *id = stage_create(&s->stage, NULL), *of;
	struct cube_template t = {.name = "kept", .fingerprint = "cp:2"};
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_root root;
	struct cube_err err;

	states_put(s, id, "one\n");
	states_take(s, id, ONE);
	keep(s, ONE, "kept", "cp:1");
	cube_cancel_fire(cancel);
	expect_failure(cube_backend_template_keep(s->stage.b, ONE, &t, cancel, &err), -EINTR, &err);
	of = stage_create(&s->stage, "kept");
	states_expect(s, of, "one\n");
	destroy(s, of);
	import_other(s, path);
	of = stage_create(&s->stage, "kept");
	root = expect_root(s, of);
	expect_file(root.fd, "etc/other", "other\n");
	assert_int_equal(faccessat(root.fd, "tmp/state", F_OK, 0), -1);
	assert_int_equal(faccessat(states_workspace(&root), "state", F_OK, 0), -1);
	cube_root_close(&root);
	destroy(s, of);
	states_drop(s, ONE);
	let_template_go(s, "kept");
	destroy(s, id);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, path), 0);
	cube_cancel_unref(cancel);
}

/* A template of a sandbox's one state, which is all that is left of it. */
static void keep_one(struct subject *s, const char *name)
{
	char *id = stage_create(&s->stage, NULL);

	states_put(s, id, "one\n");
	states_take(s, id, ONE);
	keep(s, ONE, name, "cp:1");
	states_drop(s, ONE);
	destroy(s, id);
}

/* A template of what was made of a template; the lower one is needed then. */
static void kept_again(struct subject *s)
{
	char *id, *child;
	struct cube_root root;
	struct cube_err err;
	int code;

	keep_one(s, "lower");
	id = stage_create(&s->stage, "lower");
	root = expect_root(s, id);
	put_file(root.fd, "tmp/more", "more\n");
	assert_int_equal(unlinkat(states_workspace(&root), "state", 0), 0);
	put_file(states_workspace(&root), "other", "other\n");
	cube_root_close(&root);
	states_take(s, id, TWO);
	keep(s, TWO, "upper", "cp:2");
	states_drop(s, TWO);
	destroy(s, id);
	code = cube_backend_template_remove(s->stage.b, "lower", &err);
	assert_true(code == -EBUSY || code == 0); /* 0: templates are whole copies there */
	child = stage_create(&s->stage, "upper");
	root = expect_root(s, child);
	expect_file(root.fd, "tmp/state", "one\n");
	expect_file(root.fd, "tmp/more", "more\n");
	assert_int_equal(faccessat(states_workspace(&root), "state", F_OK, 0), -1);
	expect_file(states_workspace(&root), "other", "other\n");
	cube_root_close(&root);
	destroy(s, child);
	let_template_go(s, "upper");
	if (code == -EBUSY)
		let_template_go(s, "lower");
}

static void kept_changes(struct subject *s)
{
	char *id;
	struct cube_root root;

	keep_one(s, "kept");
	id = stage_create(&s->stage, "kept");
	states_expect_changes(s, id, NULL, NULL, "");
	root = expect_root(s, id);
	put_file(root.fd, "tmp/state", "two\n");
	assert_int_equal(unlinkat(states_workspace(&root), "state", 0), 0);
	put_file(states_workspace(&root), "w", "w\n");
	cube_root_close(&root);
	states_expect_changes(s, id, NULL, NULL, "M /tmp/state\nD /workspace/state\nA /workspace/w\n");
	assert_int_equal(cube_backend_reset(s->stage.b, id, NULL, NULL), 0);
	root = expect_root(s, id);
	expect_file(root.fd, "tmp/state", "one\n");
	expect_file(states_workspace(&root), "w", "w\n"); /* /workspace stays as it is */
	assert_int_equal(faccessat(states_workspace(&root), "state", F_OK, 0), -1);
	cube_root_close(&root);
	states_take(s, id, TWO);
	states_expect_changes(s, NULL, TWO, NULL, "D /workspace/state\nA /workspace/w\n");
	states_drop(s, TWO);
	destroy(s, id);
	let_template_go(s, "kept");
}

const struct check checks_kept[] = {
	{"template of a checkpoint", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept},
	{"template of a checkpoint refused", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept_refused},
	{"template of a checkpoint replaced", CUBE_CAP_KEEP | CUBE_CAP_FILES | CUBE_CAP_TEMPLATES, 0,
	 kept_replaced},
	{"template of a checkpoint again", CUBE_CAP_KEEP | CUBE_CAP_FILES, 0, kept_again},
	{"template of a checkpoint changes",
	 CUBE_CAP_KEEP | CUBE_CAP_FILES | CUBE_CAP_CHANGES | CUBE_CAP_RESET, 0, kept_changes},
	{.name = NULL},
};
