/* SPDX-License-Identifier: Apache-2.0 */
/* net=open: what is reached, what is not, and that the helper ends with its sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/local/host.h"
#include "tests/unit/backends/den.h"

static struct stage stage;
static char path_before[4096];

static int open_stage(void **state)
{
	(void)state;
	(void)snprintf(path_before, sizeof(path_before), "%s",
		       getenv("PATH")); /* NOLINT(concurrency-mt-unsafe) */
	den_open(&stage, NULL);
	return 0;
}

static int close_stage(void **state)
{
	(void)state;
	stage_close(&stage);
	return 0;
}

/* NULL: this machine has no network to open. */
static char *create_open(void)
{
	struct cube_spec spec = den_spec();
	struct cube_err err = {0};
	char *id = NULL;

	if (!(stage.b->caps & CUBE_CAP_NET_OPEN)) {
		print_message("%s\n", stage.b->missing[6]);
		return NULL;
	}
	spec.net = CUBE_NET_OPEN;
	if (cube_backend_create(stage.b, &spec, NULL, &id, &err) < 0) {
		print_message("%s\n", err.text);
		assert_int_equal(err.code, -EIO);
		assert_false(den_left(&stage, spec.uid));
	}
	return id;
}

/* Somebody listens on this machine's loopback; the port, in *ret_fd the listener. */
static unsigned listen_here(int *ret_fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_fd = fd;
	return ntohs(a.sin_port);
}

static bool helper_runs(const char *name)
{
	char command[128];

	(void)snprintf(command, sizeof(command),
		       "ps -eo uid,stat,args | grep -v defunct | grep -q '^ *%u .*%s.* /proc/self/fd/3'",
		       cube_local_host()->ids.uid, name);
	return den_host(command) == 0;
}

static void opened(const char *helper, const char *resolver)
{
	char *id = create_open(), text[400];
	unsigned port;
	int fd;

	if (id == NULL)
		skip();
	den_says(&stage, id,
		 "cat /sys/class/net/*/operstate | grep -vc nothing; ls /sys/class/net | grep -v lo | wc -l",
		 "2\n1\n");
	den_says(&stage, id, "grep -c 00000000 /proc/net/route | grep -q 0 || echo routed", "routed\n");
	(void)snprintf(text, sizeof(text), "nameserver %s\n", resolver);
	den_says(&stage, id, "cat /etc/resolv.conf", text);
	assert_true(helper_runs(helper));
	/* Neither by its own name for itself nor by the router's. */
	port = listen_here(&fd);
	(void)snprintf(
		text, sizeof(text),
		"for a in 127.0.0.1 $(perl -ane 'print join(\".\", reverse map hex, $F[2] =~ /../g), \"\\n\" "
		"if $F[1] eq \"00000000\"' /proc/net/route); do "
		"timeout 2 bash -c \"echo >/dev/tcp/$a/%u\" 2>/dev/null; done; true",
		port);
	den_says(&stage, id, text, "");
	assert_int_equal(accept(fd, NULL, NULL), -1); /* nobody came */
	assert_int_equal(close(fd), 0);
	assert_int_equal(cube_backend_stop(stage.b, id, 1, NULL, NULL), 0);
	assert_false(helper_runs(helper));
	assert_int_equal(cube_backend_start(stage.b, id, NULL, NULL), 0);
	assert_true(helper_runs(helper));
	assert_int_equal(cube_backend_destroy(stage.b, id, NULL), 0);
	assert_false(helper_runs(helper));
	assert_false(den_left(&stage, id));
	cube_free(id);
}

static void by_pasta(void **state)
{
	(void)state;
	opened("pasta", "169.254.1.1");
}

/* A directory of links to all programs that are needed but pasta. */
static void by_slirp(void **state)
{
	char dir[] = "/tmp/cubefs-path.XXXXXX", command[300];

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0); /* the helper is nobody */
	(void)snprintf(command, sizeof(command),
		       "for p in crun slirp4netns ps grep sh; do ln -s \"$(command -v $p)\" %s/$p; done; "
		       "test -x %s/slirp4netns",
		       dir, dir);
	if (den_host(command) == 0) {
		assert_int_equal(setenv("PATH", dir, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
		den_reopen(&stage);
		opened("slirp4netns", "10.0.2.3");
		assert_int_equal(setenv("PATH", path_before, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	}
	assert_int_equal(den_remove(dir), 0);
}

/* A helper that does not get along is a sentence, and nothing is left. */
static void helper_fails(void **state)
{
	char dir[] = "/tmp/cubefs-path.XXXXXX", command[300], path[4200];
	struct cube_spec spec = den_spec();
	struct cube_err err = {0};
	char *id = NULL;

	(void)state;
	if (!(stage.b->caps & CUBE_CAP_NET_OPEN))
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0); /* the helper is nobody */
	(void)snprintf(command, sizeof(command),
		       "printf '#!/bin/sh\\necho no luck today >&5\\nexit 1\\n' >%s/pasta; "
		       "chmod 755 %s %s/pasta",
		       dir, dir, dir);
	assert_int_equal(den_host(command), 0);
	(void)snprintf(path, sizeof(path), "%s:%s", dir, path_before);
	assert_int_equal(setenv("PATH", path, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	den_reopen(&stage);
	spec.net = CUBE_NET_OPEN;
	assert_int_equal(cube_backend_create(stage.b, &spec, NULL, &id, &err), -EIO);
	assert_non_null(strstr(err.text, "no luck today"));
	assert_false(den_left(&stage, spec.uid));
	assert_int_equal(setenv("PATH", path_before, 1), 0); /* NOLINT(concurrency-mt-unsafe) */
	assert_int_equal(den_remove(dir), 0);
	den_reopen(&stage);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_pasta),
		cmocka_unit_test(by_slirp),
		cmocka_unit_test(helper_fails),
	};

	if (geteuid() != 0)
		return den_skip("root's: /dev/net/tun may be closed to others");
	if (!den_agent())
		return den_skip("cube-init is not built");
	return cmocka_run_group_tests(tests, open_stage, close_stage);
}
