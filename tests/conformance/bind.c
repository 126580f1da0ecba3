/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of this machine in a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/conformance/conformance.h"

/* A directory of ours, with the file f in it. */
struct host {
	char path[64];
	int fd;
};

static struct host host_make(void)
{
	struct host h = {.path = "/tmp/conformance.XXXXXX"};

	assert_non_null(mkdtemp(h.path));
	h.fd = open(h.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(h.fd >= 0);
	put_file(h.fd, "f", "of this machine\n");
	return h;
}

static void host_remove(struct host *h)
{
	assert_int_equal(close(h->fd), 0);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, h->path), 0);
}

static int try_bind(struct subject *s, const char *id, const struct host *h, const char *path, bool read_only,
		    struct cube_err *err)
{
	const struct cube_bind bind = {.path = path,
				       .fd = h->fd,
				       .read_only = read_only,
				       .owner_uid = geteuid(),
				       .owner_gid = getegid()};

	return cube_backend_bind(s->stage.b, id, &bind, NULL, err);
}

static void bind_at(struct bed *b, const struct host *h, const char *path, bool read_only)
{
	struct cube_err err;

	if (try_bind(b->subject, b->id, h, path, read_only, &err) < 0)
		fail_msg("bind: %s", err.text);
}

static const char *unbind_at(struct bed *b, const char *path)
{
	static struct cube_err err;

	return cube_backend_unbind(b->subject->stage.b, b->id, path, &err) < 0 ? err.text : NULL;
}

static bool root_has(struct bed *b, const char *path)
{
	struct cube_root root = expect_root(b->subject, b->id);
	bool has = false;

	for (unsigned i = 0; i < root.n_mounts; i++)
		has = has || (strcmp(root.mounts[i].path, path) == 0 && root.mounts[i].shared);
	cube_root_close(&root);
	return has;
}

static void expect_nothing_at(struct bed *b, const char *text)
{
	struct run r;

	run_init(&r, b->ear, text);
	run_start(&r);
	run_wait(&r);
	assert_int_not_equal(r.ended->end.code, 0);
	run_done(&r);
}

/* Both ways, and gone again. */
static void running(struct subject *s)
{
	struct host h = host_make();
	struct bed b = bed_open(s);
	cube_auto_str text = cube_asprintf("%s/mnt/dir/g%s", s->dialect->make_file, s->dialect->make_inside);
	struct stat st;

	bind_at(&b, &h, "/mnt/dir", false);
	bind_at(&b, &h, "/mnt/dir", false);
	expect_output(&b, 0, "cat /mnt/dir/f", "of this machine\n");
	expect_output(&b, 0, text, "");
	expect_file(h.fd, "g", "inside\n");
	assert_int_equal(fstatat(h.fd, "g", &st, 0), 0);
	assert_int_equal(st.st_uid, geteuid()); /* root inside is who asked for it */
	assert_int_equal(st.st_gid, getegid());
	assert_true(root_has(&b, "/mnt/dir"));
	assert_null(unbind_at(&b, "/mnt/dir"));
	assert_false(root_has(&b, "/mnt/dir"));
	expect_nothing_at(&b, "cat /mnt/dir/f");
	assert_null(unbind_at(&b, "/mnt/dir"));
	bed_close(&b);
	expect_file(h.fd, "f", "of this machine\n");
	host_remove(&h);
}

static void read_only(struct subject *s)
{
	struct host h = host_make();
	struct bed b = bed_open(s);
	cube_auto_str text = cube_asprintf("%s/mnt/g%s", s->dialect->make_file, s->dialect->make_inside);

	bind_at(&b, &h, "/mnt", true);
	expect_output(&b, 0, "cat /mnt/f", "of this machine\n");
	expect_nothing_at(&b, text);
	assert_int_equal(faccessat(h.fd, "g", F_OK, 0), -1);
	bed_close(&b);
	host_remove(&h);
}

static void over_a_stop(struct subject *s)
{
	struct host h = host_make(), other = host_make();
	struct bed b = bed_open(s);

	put_file(other.fd, "f", "of another\n");
	bind_at(&b, &h, "/a", false);
	ear_close(b.ear);
	assert_int_equal(cube_backend_stop(s->stage.b, b.id, 0, NULL, NULL), 0);
	bind_at(&b, &other, "/b", false);
	assert_true(root_has(&b, "/a") && root_has(&b, "/b"));
	assert_int_equal(cube_backend_start(s->stage.b, b.id, NULL, NULL), 0);
	b.ear = ear_open(&s->stage, b.id);
	expect_output(&b, 0, "cat /a/f", "of this machine\n");
	expect_output(&b, 0, "cat /b/f", "of another\n");
	ear_close(b.ear);
	assert_int_equal(cube_backend_stop(s->stage.b, b.id, 0, NULL, NULL), 0);
	assert_null(unbind_at(&b, "/a"));
	bind_at(&b, &h, "/b", false); /* in the place of the other */
	assert_int_equal(cube_backend_start(s->stage.b, b.id, NULL, NULL), 0);
	b.ear = ear_open(&s->stage, b.id);
	expect_nothing_at(&b, "cat /a/f");
	expect_output(&b, 0, "cat /b/f", "of this machine\n");
	bed_close(&b);
	host_remove(&h);
	host_remove(&other);
}

static void refused(struct subject *s)
{
	static const char *const paths[] = {"",    "relative", "/",      "/a/..",
					    "//a", "/proc",    "/sys/x", "/dev/shm"};
	struct host h = host_make();
	struct bed b = bed_open(s);
	struct cube_root root = expect_root(s, b.id);
	struct cube_err err;

	for (size_t i = 0; i < CUBE_COUNT(paths); i++)
		expect_failure(try_bind(s, b.id, &h, paths[i], false, &err), -EINVAL, &err);
	expect_failure(try_bind(s, "no-such-sandbox", &h, "/a", false, &err), -ENOENT, &err);
	assert_int_equal(symlinkat("/etc", root.fd, "astray"), 0);
	expect_failure(try_bind(s, b.id, &h, "/astray", false, &err), -ELOOP, &err);
	expect_failure(try_bind(s, b.id, &h, "/astray/x", false, &err), -ELOOP, &err);
	assert_false(root_has(&b, "/astray"));
	cube_root_close(&root);
	bed_close(&b);
	host_remove(&h);
}

#define WITH_FILES (CUBE_CAP_BIND | CUBE_CAP_FILES | CUBE_CAP_EXEC)

const struct check checks_bind[] = {
	{"bind of a running sandbox", WITH_FILES, 0, running},
	{"bind read only", WITH_FILES, 0, read_only},
	{"binds over a stop", WITH_FILES | CUBE_CAP_STOP, 0, over_a_stop},
	{"binds that cannot be", WITH_FILES, 0, refused},
	{.name = NULL},
};
