/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes: directories that outlive sandboxes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

#define ONE   "00000000000000a1"
#define OTHER "00000000000000a2"

static void volume_make(struct subject *s, const char *uid)
{
	struct cube_err err;

	if (cube_backend_volume_make(s->stage.b, uid, "kept", NULL, &err) < 0)
		fail_msg("volume_make: %s", err.text);
}

static void volume_gone(struct subject *s, const char *uid)
{
	struct cube_err err;

	if (cube_backend_volume_remove(s->stage.b, uid, &err) < 0)
		fail_msg("volume_remove: %s", err.text);
}

static struct cube_root volume_root(struct subject *s, const char *uid)
{
	struct cube_root root;
	struct cube_err err;

	if (cube_backend_volume_root(s->stage.b, uid, &root, &err) < 0)
		fail_msg("volume_root: %s", err.text);
	return root;
}

/* A sandbox with these volumes. */
static struct bed bed_with(struct subject *s, const struct cube_spec_volume *volumes, size_t n)
{
	char uid[17];
	struct cube_spec spec = stage_spec(uid);
	struct bed b = {.subject = s};
	struct cube_err err;

	spec.volumes = volumes;
	spec.n_volumes = n;
	if (cube_backend_create(s->stage.b, &spec, NULL, &b.id, &err) < 0)
		fail_msg("create: %s", err.text);
	b.ear = ear_open(&s->stage, b.id);
	return b;
}

static int mount_at(const struct cube_root *root, const char *path)
{
	for (unsigned i = 0; i < root->n_mounts; i++)
		if (strcmp(root->mounts[i].path, path) == 0)
			return (int)i;
	fail_msg("nothing at %s", path);
	return -1;
}

struct seen {
	const char *uid;
	unsigned n;
};

static void see(void *ctx, const struct cube_volume *v)
{
	struct seen *seen = ctx;

	if (strcmp(v->uid, seen->uid) == 0)
		seen->n++;
}

static unsigned listed(struct subject *s, const char *uid)
{
	struct seen seen = {.uid = uid};

	assert_int_equal(cube_backend_volume_list(s->stage.b, see, &seen, NULL), 0);
	return seen.n;
}

static void life(struct subject *s)
{
	struct cube_err err;

	assert_int_equal(listed(s, ONE), 0);
	volume_make(s, ONE);
	volume_make(s, ONE);
	assert_int_equal(listed(s, ONE), 1);
	volume_gone(s, ONE);
	assert_int_equal(listed(s, ONE), 0);
	volume_gone(s, ONE);
	expect_failure(cube_backend_volume_make(s->stage.b, "../x", "kept", NULL, &err), -EINVAL, &err);
	expect_failure(cube_backend_volume_remove(s->stage.b, "no", &err), -EINVAL, &err);
}

static void files(struct subject *s)
{
	struct cube_root root;
	struct cube_err err;
	struct stat st;

	expect_failure(cube_backend_volume_root(s->stage.b, ONE, &root, &err), -ENOENT, &err);
	volume_make(s, ONE);
	root = volume_root(s, ONE);
	put_file(root.fd, "f", "kept\n");
	assert_int_equal(fstat(root.fd, &st), 0);
	assert_int_equal(st.st_uid, root.uid_base);
	assert_int_equal(root.n_mounts, 0);
	cube_root_close(&root);
	volume_make(s, ONE); /* again: what is in it stays */
	root = volume_root(s, ONE);
	expect_file(root.fd, "f", "kept\n");
	cube_root_close(&root);
	volume_gone(s, ONE);
	volume_make(s, ONE); /* another one */
	root = volume_root(s, ONE);
	assert_int_equal(faccessat(root.fd, "f", F_OK, 0), -1);
	cube_root_close(&root);
	volume_gone(s, ONE);
}

/* Two sandboxes and the outside see one thing; the end of a sandbox is nothing to it. */
static void shared(struct subject *s)
{
	static const struct cube_spec_volume at_workspace = {.volume = ONE, .path = "/workspace"};
	static const struct cube_spec_volume elsewhere[] = {
		{.volume = ONE, .path = "/made/for it"},
		{.volume = OTHER, .path = "/srv"},
	};
	struct bed a, b;
	struct cube_root root;

	volume_make(s, ONE);
	volume_make(s, OTHER);
	a = bed_with(s, &at_workspace, 1);
	b = bed_with(s, elsewhere, 2);
	root = volume_root(s, ONE);
	put_file(root.fd, "f", "from outside\n");
	expect_output(&a, 0, "cat /workspace/f", "from outside\n");
	expect_output(&b, 0, "cat '/made/for it/f'", "from outside\n");
	put_file(root.fd, "f", "changed\n");
	expect_output(&b, 0, "cat '/made/for it/f'", "changed\n");
	bed_close(&a);
	bed_close(&b);
	expect_file(root.fd, "f", "changed\n");
	cube_root_close(&root);
	volume_gone(s, ONE);
	volume_gone(s, OTHER);
}

static void shown(struct subject *s)
{
	static const struct cube_spec_volume volumes[] = {
		{.volume = ONE, .path = "/workspace"},
		{.volume = OTHER, .path = "/data", .read_only = true},
	};
	struct bed b;
	struct cube_root root, own;
	int i;

	volume_make(s, ONE);
	volume_make(s, OTHER);
	own = volume_root(s, OTHER);
	put_file(own.fd, "f", "f\n");
	b = bed_with(s, volumes, 2);
	root = expect_root(s, b.id);
	i = mount_at(&root, "/workspace");
	assert_true(root.mounts[i].shared && !root.mounts[i].read_only);
	put_file(root.mounts[i].fd, "w", "w\n");
	expect_output(&b, 0, "cat /workspace/w", "w\n");
	i = mount_at(&root, "/data");
	assert_true(root.mounts[i].shared && root.mounts[i].read_only);
	expect_file(root.mounts[i].fd, "f", "f\n");
	cube_root_close(&root);
	cube_root_close(&own);
	bed_close(&b);
	volume_gone(s, ONE);
	volume_gone(s, OTHER);
}

static void read_only(struct subject *s)
{
	static const struct cube_spec_volume volume = {.volume = ONE, .path = "/data", .read_only = true};
	const struct dialect *d = s->dialect;
	cube_auto_str text = cube_asprintf("%s/data/f%s", d->make_file, d->make_inside);
	struct cube_root root;
	struct bed b;
	struct run r;

	volume_make(s, ONE);
	b = bed_with(s, &volume, 1);
	run_init(&r, b.ear, text);
	run_start(&r);
	run_wait(&r);
	assert_int_equal(r.ended->end.how, CUBE_END_EXIT);
	assert_int_not_equal(r.ended->end.code, 0);
	run_done(&r);
	root = volume_root(s, ONE);
	assert_int_equal(faccessat(root.fd, "f", F_OK, 0), -1);
	cube_root_close(&root);
	bed_close(&b);
	volume_gone(s, ONE);
}

static void in_use(struct subject *s)
{
	static const struct cube_spec_volume volume = {.volume = ONE, .path = "/data"};
	struct cube_err err;
	struct bed b;

	volume_make(s, ONE);
	b = bed_with(s, &volume, 1);
	expect_failure(cube_backend_volume_remove(s->stage.b, ONE, &err), -EBUSY, &err);
	assert_int_equal(listed(s, ONE), 1);
	bed_close(&b);
	volume_gone(s, ONE);
}

static void over_a_stop(struct subject *s)
{
	static const struct cube_spec_volume volume = {.volume = ONE, .path = "/data"};
	struct cube_root root;
	struct bed b;
	int i;

	volume_make(s, ONE);
	b = bed_with(s, &volume, 1);
	ear_close(b.ear);
	assert_int_equal(cube_backend_stop(s->stage.b, b.id, 0, NULL, NULL), 0);
	root = expect_root(s, b.id);
	i = mount_at(&root, "/data");
	put_file(root.mounts[i].fd, "f", "while stopped\n");
	cube_root_close(&root);
	assert_int_equal(cube_backend_start(s->stage.b, b.id, NULL, NULL), 0);
	b.ear = ear_open(&s->stage, b.id);
	expect_output(&b, 0, "cat /data/f", "while stopped\n");
	bed_close(&b);
	volume_gone(s, ONE);
}

/* Whatever is wrong with one, there is no sandbox. */
static void refused(struct subject *s)
{
	static const struct {
		struct cube_spec_volume volumes[2];
		size_t n;
		int code;
	} cases[] = {
		{{{.volume = OTHER, .path = "/data"}}, 1, -ENOENT},
		{{{.volume = ONE, .path = "data"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/a/../b"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/a//b"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/a/"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/proc/1"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/dev"}}, 1, -EINVAL},
		{{{.volume = "nonsense", .path = "/data"}}, 1, -EINVAL},
		{{{.volume = ONE, .path = "/data"}, {.volume = OTHER, .path = "/data"}}, 2, -EINVAL},
	};

	volume_make(s, ONE);
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		char uid[17];
		struct cube_spec spec = stage_spec(uid);
		struct cube_err err;
		char *id = NULL;

		spec.volumes = cases[i].volumes;
		spec.n_volumes = cases[i].n;
		expect_failure(cube_backend_create(s->stage.b, &spec, NULL, &id, &err), cases[i].code, &err);
		assert_null(id);
	}
	volume_gone(s, ONE);
}

const struct check checks_volume[] = {
	{"life of a volume", CUBE_CAP_VOLUMES, 0, life},
	{"files of a volume", CUBE_CAP_VOLUMES | CUBE_CAP_FILES, 0, files},
	{"a volume is shared", CUBE_CAP_VOLUMES | CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, shared},
	{"volumes in the files of a sandbox", CUBE_CAP_VOLUMES | CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, shown},
	{"a volume read only", CUBE_CAP_VOLUMES | CUBE_CAP_FILES | CUBE_CAP_EXEC, 0, read_only},
	{"a volume in use", CUBE_CAP_VOLUMES | CUBE_CAP_EXEC, 0, in_use},
	{"a volume over a stop", CUBE_CAP_VOLUMES | CUBE_CAP_FILES | CUBE_CAP_EXEC | CUBE_CAP_STOP, 0,
	 over_a_stop},
	{"volumes that cannot be", CUBE_CAP_VOLUMES, 0, refused},
	{.name = NULL},
};
