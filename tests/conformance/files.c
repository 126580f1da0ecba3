/* SPDX-License-Identifier: Apache-2.0 */
/* The directories of a sandbox on this machine. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

/* The descriptor of /workspace. */
static int workspace(const struct cube_root *root)
{
	for (unsigned i = 0; i < root->n_mounts; i++) {
		if (strcmp(root->mounts[i].path, "/workspace") == 0)
			return root->mounts[i].fd;
	}
	fail_msg("no /workspace");
	return -1;
}

static void directories(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root = expect_root(s, id);
	struct stat st;

	assert_int_equal(fstat(root.fd, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(fstatat(root.fd, "workspace", &st, 0), 0);
	assert_int_equal(fstat(workspace(&root), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_true((fcntl(root.fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(workspace(&root), F_GETFD) & FD_CLOEXEC) != 0);
	cube_root_close(&root);
	assert_int_equal(root.fd, -1);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void from_outside(struct subject *s)
{
	struct bed b = bed_open(s);
	struct cube_root root = expect_root(s, b.id);

	put_file(workspace(&root), "w", "in the workspace\n");
	put_file(root.fd, "tmp/t", "in the root\n");
	expect_output(&b, 0, "cat /workspace/w", "in the workspace\n");
	expect_output(&b, 0, "cat /tmp/t", "in the root\n");
	cube_root_close(&root);
	bed_close(&b);
}

static void make_inside(struct bed *b, const char *path)
{
	const struct dialect *d = b->subject->dialect;
	cube_auto_str text = cube_asprintf("%s%s%s", d->make_file, path, d->make_inside);

	expect_output(b, 0, text, "");
}

static void from_inside(struct subject *s)
{
	struct bed b = bed_open(s);
	struct cube_root root = expect_root(s, b.id);
	struct stat st;

	make_inside(&b, "/workspace/w");
	make_inside(&b, "/tmp/t");
	expect_file(workspace(&root), "w", "inside\n");
	expect_file(root.fd, "tmp/t", "inside\n");
	assert_int_equal(fstatat(workspace(&root), "w", &st, 0), 0);
	assert_int_equal(st.st_uid, root.uid_base); /* made by the root inside */
	assert_int_equal(st.st_gid, root.gid_base);
	cube_root_close(&root);
	bed_close(&b);
}

static void stopped(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL);
	struct cube_root root = expect_root(s, id);
	uint64_t generation = root.generation;

	put_file(workspace(&root), "kept", "kept\n");
	put_file(root.fd, "tmp/kept", "too\n");
	cube_root_close(&root);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	root = expect_root(s, id);
	expect_file(workspace(&root), "kept", "kept\n");
	expect_file(root.fd, "tmp/kept", "too\n");
	put_file(workspace(&root), "more", "more\n");
	cube_root_close(&root);
	assert_int_equal(cube_backend_start(s->stage.b, id, NULL, NULL), 0);
	root = expect_root(s, id);
	expect_file(workspace(&root), "more", "more\n");
	expect_file(root.fd, "tmp/kept", "too\n");
	assert_int_equal(root.generation, generation);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void apart(struct subject *s)
{
	char *first = stage_create(&s->stage, NULL);
	char *second = stage_create(&s->stage, NULL);
	struct cube_root a = expect_root(s, first), b = expect_root(s, second);

	put_file(a.fd, "mine", "x");
	put_file(workspace(&a), "mine", "x");
	assert_int_equal(faccessat(b.fd, "mine", F_OK, 0), -1);
	assert_int_equal(faccessat(workspace(&b), "mine", F_OK, 0), -1);
	cube_root_close(&a);
	cube_root_close(&b);
	assert_int_equal(cube_backend_destroy(s->stage.b, first, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, second, NULL), 0);
	cube_free(first);
	cube_free(second);
}

static void not_there(struct subject *s)
{
	struct cube_root root;
	struct cube_err err;

	expect_failure(cube_backend_root(s->stage.b, "no-such-sandbox", &root, &err), -ENOENT, &err);
}

const struct check checks_files[] = {
	{"directories of a sandbox", CUBE_CAP_FILES, 0, directories},
	{"files from outside are inside", CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, from_outside},
	{"files from inside are outside", CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, from_inside},
	{"files of a stopped sandbox", CUBE_CAP_FILES | CUBE_CAP_STOP, 0, stopped},
	{"files of two sandboxes", CUBE_CAP_FILES, 0, apart},
	{"files of what is not there", CUBE_CAP_FILES, 0, not_there},
	{.name = NULL},
};
