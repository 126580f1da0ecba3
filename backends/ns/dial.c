/* SPDX-License-Identifier: Apache-2.0 */
/* A connection into a sandbox: a socket of its network namespace, or of its files. */
#include "backends/ns/ns.h"

#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define DIAL_MOMENT_MS 200 /* for which the answer of its loopback device is waited for */

/* ---- a socket of its network ---- */

struct dial_call {
	int ns, domain;
	int fd; /* or -errno */
};

/* A thread of its own: it ends in the namespace that it entered. */
static void *dial_thread(void *ctx)
{
	struct dial_call *r = ctx;

	r->fd = setns(r->ns, CLONE_NEWNET) < 0
			? -errno
			: socket(r->domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->fd == -1)
		r->fd = -errno;
	return NULL;
}

static int dial_socket(int ns, int domain)
{
	struct dial_call r = {.ns = ns, .domain = domain, .fd = -EIO};
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, dial_thread, &r);

	if (rc != 0)
		return -rc;
	(void)pthread_join(thread, NULL);
	return r.fd;
}

/* 0: connected, or still under way after a moment. */
static int dial_connect(int fd, const struct sockaddr *a, socklen_t len, struct cube_cancel *cancel)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLOUT}, {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	socklen_t size = sizeof(int);
	int code = 0;

	if (connect(fd, a, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(p, CUBE_COUNT(p), DIAL_MOMENT_MS) <= 0)
		return 0;
	if (p[1].revents)
		return -EINTR;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) < 0)
		return -errno;
	return -code;
}

static int dial_new(int ns, int domain, const struct sockaddr *a, socklen_t len, struct cube_cancel *cancel)
{
	cube_auto_fd fd = dial_socket(ns, domain);
	int rc = fd < 0 ? fd : dial_connect(fd, a, len, cancel);

	return rc < 0 ? rc : cube_steal_fd(&fd);
}

static int dial_tcp(int ns, const struct cube_target *t, struct cube_cancel *cancel)
{
	const struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(t->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	const struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(t->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = dial_new(ns, AF_INET, (const struct sockaddr *)&a, sizeof(a), cancel);

	if (fd != -ECONNREFUSED)
		return fd;
	fd = dial_new(ns, AF_INET6, (const struct sockaddr *)&a6, sizeof(a6), cancel);
	return fd < 0 && fd != -EINTR ? -ECONNREFUSED : fd;
}

static int dial_abstract(int ns, const struct cube_target *t, struct cube_cancel *cancel)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t len = strlen(t->path);

	memcpy(a.sun_path + 1, t->path, len);
	return dial_new(ns, AF_UNIX, (const struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len), cancel);
}

/* ---- a socket of its files ---- */

/* Seen from process 1's root, with what is mounted inside; links are those of the inside and end there. The
 * socket is then named by its descriptor, so that what is renamed meanwhile changes nothing. */
static int dial_unix(int proc, const struct cube_target *t, struct cube_cancel *cancel)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	cube_auto_fd root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cube_auto_fd at = -1, fd = -1;
	int rc;

	if (root < 0)
		return -errno;
	at = (int)syscall(SYS_openat2, root, t->path, &how, sizeof(how));
	if (at < 0)
		return errno == ENOENT ? -ECONNREFUSED : -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", at);
	rc = dial_connect(fd, (const struct sockaddr *)&a, sizeof(a), cancel);
	return rc < 0 ? rc : cube_steal_fd(&fd);
}

/* ---- the operation ---- */

static int dial_any(int proc, const struct cube_target *t, struct cube_cancel *cancel)
{
	cube_auto_fd ns = -1;

	if (t->kind == CUBE_TARGET_UNIX)
		return dial_unix(proc, t, cancel);
	ns = openat(proc, "ns/net", O_RDONLY | O_CLOEXEC);
	if (ns < 0)
		return -errno;
	return t->kind == CUBE_TARGET_TCP ? dial_tcp(ns, t, cancel) : dial_abstract(ns, t, cancel);
}

static int dial_failed(const char *id, const struct cube_target *t, int code, struct cube_err *err)
{
	char what[CUBE_TARGET_PATH + 32];

	if (t->kind == CUBE_TARGET_TCP)
		(void)snprintf(what, sizeof(what), "port %u", t->port);
	else
		(void)snprintf(what, sizeof(what), "%s socket %s",
			       t->kind == CUBE_TARGET_UNIX ? "unix" : "abstract", t->path);
	if (code == -ECONNREFUSED)
		return cube_fail(err, code, "nothing listens at %s in sandbox %s", what, id);
	return cube_fail(err, code, "cannot connect to %s in sandbox %s: %s", what, id,
			 cube_errno_text(code));
}

int cube_ns_dial(int proc, const char *id, const struct cube_target *target, struct cube_cancel *cancel,
		 int *ret_fd, struct cube_err *err)
{
	int rc = dial_any(proc, target, cancel);

	if (rc < 0)
		return dial_failed(id, target, rc, err);
	*ret_fd = rc;
	return 0;
}
