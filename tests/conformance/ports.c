/* SPDX-License-Identifier: Apache-2.0 */
/* Connections into a sandbox. What listens is a socket that the test puts into its files. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "tests/conformance/conformance.h"

/* A listener at @name below the directory @dir. */
static int listen_at(int dir, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dir, name);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static int dial_path(struct subject *s, const char *id, const char *path, int *ret, struct cube_err *err)
{
	struct cube_target t = {.kind = CUBE_TARGET_UNIX};

	(void)snprintf(t.path, sizeof(t.path), "%s", path);
	return cube_backend_dial(s->stage.b, id, &t, NULL, ret, err);
}

static int accepted(int listener)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int fd;

	assert_int_equal(poll(&p, 1, 10000), 1);
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void socket_in_its_files(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL), data[8] = "";
	struct cube_root root;
	int listener, out = -1, in;

	assert_int_equal(cube_backend_root(s->stage.b, id, &root, NULL), 0);
	listener = listen_at(root.fd, "tmp/sock");
	assert_int_equal(dial_path(s, id, "/tmp/sock", &out, NULL), 0);
	assert_true((fcntl(out, F_GETFD) & FD_CLOEXEC) != 0);
	assert_true((fcntl(out, F_GETFL) & O_NONBLOCK) != 0);
	in = accepted(listener);
	assert_int_equal(write(out, "there", 5), 5);
	assert_int_equal(read(in, data, sizeof(data)), 5);
	assert_string_equal(data, "there");
	(void)close(in);
	(void)close(out);
	(void)close(listener);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

/* A link to a socket of this machine leads nowhere; one to a socket inside leads there. */
static void links_stay_inside(struct subject *s)
{
	char *id = stage_create(&s->stage, NULL), dir[] = "/tmp/cubefs-ports-XXXXXX", path[64];
	struct cube_root root;
	struct cube_err err;
	int out = -1, own, outside, inside, in;

	assert_non_null(mkdtemp(dir));
	own = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside = listen_at(own, "sock");
	(void)snprintf(path, sizeof(path), "%s/sock", dir);
	assert_int_equal(cube_backend_root(s->stage.b, id, &root, NULL), 0);
	assert_int_equal(symlinkat(path, root.fd, "tmp/out"), 0);
	expect_failure(dial_path(s, id, "/tmp/out", &out, &err), -ECONNREFUSED, &err);
	expect_failure(dial_path(s, id, path, &out, &err), -ECONNREFUSED, &err);
	inside = listen_at(root.fd, "tmp/sock");
	assert_int_equal(symlinkat("/tmp/sock", root.fd, "tmp/in"), 0);
	assert_int_equal(dial_path(s, id, "/tmp/in", &out, &err), 0);
	in = accepted(inside);
	(void)close(in);
	(void)close(out);
	(void)close(inside);
	(void)close(outside);
	assert_int_equal(unlinkat(own, "sock", 0), 0);
	(void)close(own);
	assert_int_equal(rmdir(dir), 0);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void nobody_listens(struct subject *s)
{
	struct cube_target tcp = {.kind = CUBE_TARGET_TCP, .port = 8080}, nothing = {.port = 0};
	struct cube_target name = {.kind = CUBE_TARGET_ABSTRACT, .path = "nobody"};
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;
	int fd = -1;

	expect_failure(cube_backend_dial(s->stage.b, id, &tcp, NULL, &fd, &err), -ECONNREFUSED, &err);
	expect_failure(cube_backend_dial(s->stage.b, id, &name, NULL, &fd, &err), -ECONNREFUSED, &err);
	expect_failure(dial_path(s, id, "/tmp/nobody", &fd, &err), -ECONNREFUSED, &err);
	expect_failure(dial_path(s, id, "relative", &fd, &err), -EINVAL, &err);
	expect_failure(cube_backend_dial(s->stage.b, id, &nothing, NULL, &fd, &err), -EINVAL, &err);
	assert_int_equal(fd, -1);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
}

static void count_one(void *ctx, const struct cube_listener *l)
{
	(void)l;
	++*(unsigned *)ctx;
}

static void stopped(struct subject *s)
{
	struct cube_target tcp = {.kind = CUBE_TARGET_TCP, .port = 8080};
	char *id = stage_create(&s->stage, NULL);
	struct cube_err err;
	unsigned n = 0;
	int fd = -1;

	assert_int_equal(cube_backend_listening(s->stage.b, id, count_one, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 0, NULL, NULL), 0);
	expect_failure(cube_backend_dial(s->stage.b, id, &tcp, NULL, &fd, &err), -EHOSTDOWN, &err);
	expect_failure(cube_backend_listening(s->stage.b, id, count_one, &n, &err), -EHOSTDOWN, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	expect_failure(cube_backend_dial(s->stage.b, id, &tcp, NULL, &fd, &err), -ENOENT, &err);
	cube_free(id);
}

const struct check checks_ports[] = {
	{"a connection to a socket in its files", CUBE_CAP_PORTS | CUBE_CAP_FILES, 0, socket_in_its_files},
	{"links to sockets stay inside", CUBE_CAP_PORTS | CUBE_CAP_FILES, 0, links_stay_inside},
	{"a connection where nobody listens", CUBE_CAP_PORTS, 0, nobody_listens},
	{"ports of a stopped sandbox", CUBE_CAP_PORTS | CUBE_CAP_STOP, 0, stopped},
	{.name = NULL},
};
