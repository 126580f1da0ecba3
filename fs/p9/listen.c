/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that are listened on, and who is let in. */
#include "fs/p9/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/heir.h"
#include "backends/base/log.h"
#include "backends/base/num.h"
#include "fs/p9/priv.h"

#define LISTEN_BACKLOG   64
#define LISTEN_TOKEN_MIN 16 /* bytes: one that cannot be guessed */

struct p9_listener {
	struct cube_list link; /* server.listeners */
	struct cube_p9 *server;
	int fd;
	struct cube_watch *watch;
	bool local; /* a unix socket: its peers are processes of this machine */
	char *path; /* of a unix socket: removed in the end */
	dev_t dev;  /* ... if it is still this one */
	ino_t ino;
	char *token;
	struct p9_tls_server *tls;
	char address[80]; /* for the log */
};

static void listener_free(struct p9_listener *l)
{
	struct stat st;

	cube_list_remove(&l->link);
	cube_watch_free(l->watch);
	if (l->fd >= 0)
		(void)close(l->fd);
	if (l->path != NULL && lstat(l->path, &st) == 0 && st.st_dev == l->dev && st.st_ino == l->ino)
		(void)unlink(l->path);
	cube_free(l->path);
	cube_free(l->token);
	cube_p9_tls_server_free(l->tls);
	cube_free(l);
}

void cube_p9_listeners_stop(struct cube_p9 *s)
{
	cube_list_each (i, &s->listeners)
		listener_free(cube_list_entry(i, struct p9_listener, link));
}

/* ---- who comes ---- */

/* In a user namespace of the daemon's own, the numbers are those that are seen in there, as its own is. */
static int listener_peer_local(struct p9_listener *l, int fd, struct cube_p9_peer *peer, struct cube_err *err)
{
	const struct cube_files_options *o = &l->server->o.files;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return cube_fail_errno(err, "peer credentials");
	(void)snprintf(peer->name, sizeof(peer->name), "unix pid %d", cred.pid);
	if (cred.uid != geteuid())
		return cube_fail(err, -EACCES, "user %u is not the one whose daemon this is", cred.uid);
	peer->local = true;
	peer->pid = cred.pid;
	peer->uid = o->uid;
	peer->gid = o->gid;
	return 0;
}

static void listener_peer_name(const struct sockaddr_storage *a, socklen_t len, struct cube_p9_peer *peer)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo((const struct sockaddr *)a, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		(void)snprintf(peer->name, sizeof(peer->name), "%.50s port %.8s", host, port);
}

static void listener_let_in(struct p9_listener *l, int fd, const struct sockaddr_storage *a, socklen_t len)
{
	struct cube_p9_peer peer = {.token = l->token, .tls = l->tls};
	struct cube_err err = {0};
	int code = 0;

	(void)snprintf(peer.name, sizeof(peer.name), "%s", l->address);
	if (l->local)
		code = listener_peer_local(l, fd, &peer, &err);
	else
		listener_peer_name(a, len, &peer);
	if (code == 0)
		code = cube_p9_serve(l->server, fd, fd, &peer, NULL, NULL, &err);
	if (code < 0) {
		cube_log(CUBE_LOG_WARNING, "9p", "%s: refused: %s", peer.name, err.text);
		(void)close(fd);
	}
}

/* Where there are no descriptors left, the server's timer tries again. */
static void listener_ready(void *ctx, unsigned events)
{
	struct p9_listener *l = ctx;
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	int fd = accept4(l->fd, (struct sockaddr *)&a, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd >= 0) {
		listener_let_in(l, fd, &a, len);
		return;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
		return;
	cube_log(CUBE_LOG_WARNING, "9p", "%s: nobody can come in just now: %s", l->address,
		 cube_errno_text(errno));
	cube_watch_set(l->watch, 0);
}

void cube_p9_listeners_go_on(struct cube_p9 *s)
{
	cube_list_each (i, &s->listeners)
		cube_watch_set(cube_list_entry(i, struct p9_listener, link)->watch, CUBE_WATCH_IN);
}

/* ---- unix: ---- */

/* A socket that nobody listens on is left over from somebody who was killed. */
static int unix_clear(const struct sockaddr_un *a, struct cube_err *err)
{
	cube_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return cube_fail(err, -EEXIST,
				 "--9p unix:%s: there is something else: remove it, or take another path",
				 a->sun_path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno != ECONNREFUSED)
		return cube_fail(err, -EADDRINUSE, "--9p unix:%s: somebody listens there already",
				 a->sun_path);
	if (unlink(a->sun_path) < 0)
		return cube_fail_errno(err, "--9p unix:%s: what is left there cannot be removed",
				       a->sun_path);
	return 0;
}

/* Made with mode 0600: it is nobody else's for no moment. */
static int unix_bind(int fd, const struct sockaddr_un *a)
{
	mode_t mask = umask(0177);
	int r = bind(fd, (const struct sockaddr *)a, sizeof(*a));

	(void)umask(mask);
	return r;
}

static int unix_make(struct p9_listener *l, const struct sockaddr_un *a, struct cube_err *err)
{
	int r = unix_clear(a, err);

	if (r < 0)
		return r;
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0 || unix_bind(l->fd, a) < 0)
		return cube_fail_errno(err, "--9p unix:%s", a->sun_path);
	return 0;
}

/* That of the worker before, if its name still leads there; -1. */
static int unix_heir(const struct sockaddr_un *a)
{
	cube_auto_fd fd = cube_heir_take((const struct sockaddr *)a);
	struct stat st;

	return fd >= 0 && lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) ? cube_steal_fd(&fd) : -1;
}

static int unix_open(struct p9_listener *l, const char *path, const struct cube_p9_access *access,
		     struct cube_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat st;
	int r;

	(void)access;
	if (path[0] != '/')
		return cube_fail(err, -EINVAL, "--9p unix:%s: the path must be absolute", path);
	if (strlen(path) >= sizeof(a.sun_path))
		return cube_fail(err, -ENAMETOOLONG, "--9p unix:%s: a socket's path has at most %zu bytes",
				 path, sizeof(a.sun_path) - 1);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	l->local = true;
	l->fd = unix_heir(&a);
	r = l->fd < 0 ? unix_make(l, &a, err) : 0;
	if (r < 0)
		return r;
	if (lstat(path, &st) < 0 || (l->path = cube_strdup(path)) == NULL) {
		(void)unlink(path);
		return cube_fail(err, -ENOMEM, "out of memory");
	}
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return 0;
}

/* ---- tcp: ---- */

static bool inet_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)a;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* "HOST:PORT" or "[HOST]:PORT", cut apart in @copy. */
static int inet_split(char *copy, const char **host, const char **port, struct cube_err *err)
{
	char *colon = strrchr(copy, ':');
	uint64_t number;

	if (colon == NULL || colon == copy || cube_num_u64(colon + 1, 65535, &number) < 0)
		return cube_fail(err, -EINVAL, "--9p %s: wants HOST:PORT, as in tcp:127.0.0.1:564", copy);
	*colon = '\0';
	*port = colon + 1;
	*host = copy;
	if (copy[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		*host = copy + 1;
	}
	return 0;
}

static int inet_bind(struct p9_listener *l, const struct addrinfo *a)
{
	int one = 1;

	l->fd = cube_heir_take(a->ai_addr);
	if (l->fd >= 0)
		return 0;
	l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	(void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* a small reply waits for nothing; those that are accepted have it too */
	(void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return bind(l->fd, a->ai_addr, a->ai_addrlen) < 0 ? -errno : 0;
}

static int inet_open(struct p9_listener *l, const char *place, bool guarded, struct cube_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *all = NULL;
	cube_auto_str copy = cube_strdup(place);
	const char *host = NULL, *port = NULL;
	int r = copy == NULL ? cube_fail(err, -ENOMEM, "out of memory") : inet_split(copy, &host, &port, err);

	if (r < 0)
		return r;
	r = getaddrinfo(host, port, &hints, &all);
	if (r != 0)
		return cube_fail(err, -EINVAL, "--9p %s: no such host: %s", place, gai_strerror(r));
	if (!guarded && !inet_loopback(all->ai_addr))
		r = cube_fail(err, -EACCES,
			      "--9p tcp:%s: whoever reaches this port has every sandbox: use 127.0.0.1, "
			      "--9p-token-file, or tls:",
			      place);
	else if ((r = inet_bind(l, all)) < 0)
		r = cube_fail(err, r, "--9p %s: %s", place, cube_errno_text(r));
	freeaddrinfo(all);
	return r;
}

/* The first word of the file. */
static int token_read(const char *file, char **ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(4096);
	int r = cube_file_read(AT_FDCWD, file, &text);
	size_t len = strcspn(cube_buf_str(&text), " \t\r\n");

	if (r < 0)
		r = cube_fail(err, r, "--9p-token-file %s: %s", file, cube_errno_text(r));
	else if (len < LISTEN_TOKEN_MIN || len > P9_NAME_MAX || memchr(text.data, '/', len) != NULL)
		r = cube_fail(err, -EINVAL,
			      "--9p-token-file %s: wants a word of %d to %d bytes without a slash", file,
			      LISTEN_TOKEN_MIN, P9_NAME_MAX);
	else if ((*ret = cube_strndup(text.data, len)) == NULL)
		r = cube_fail(err, -ENOMEM, "out of memory");
	cube_buf_done(&text);
	return r;
}

int cube_p9_token_check(const char *file, struct cube_err *err)
{
	cube_auto_str token = NULL;

	return token_read(file, &token, err);
}

/* ---- all ---- */

static int tcp_open(struct p9_listener *l, const char *place, const struct cube_p9_access *access,
		    struct cube_err *err)
{
	int r = access->token_file != NULL ? token_read(access->token_file, &l->token, err) : 0;

	return r < 0 ? r : inet_open(l, place, l->token != NULL, err);
}

/* The address alone guards nothing here: who comes proves himself by a certificate, or a token. */
static int tls_open(struct p9_listener *l, const char *place, const struct cube_p9_access *access,
		    struct cube_err *err)
{
	int r = 0;

	if (access->ca == NULL && access->token_file == NULL)
		return cube_fail(
			err, -EACCES,
			"--9p tls:%s: whoever reaches this port has every sandbox: --9p-token-file, or "
			"'ca' in section [9p] of the configuration, says who may",
			place);
	if (access->token_file != NULL)
		r = token_read(access->token_file, &l->token, err);
	if (r == 0)
		r = cube_p9_tls_server_new(access, &l->tls, err);
	return r < 0 ? r : inet_open(l, place, true, err);
}

static const struct {
	const char *begins;
	int (*open)(struct p9_listener *l, const char *place, const struct cube_p9_access *access,
		    struct cube_err *err);
} listen_kinds[] = {{"unix:", unix_open}, {"tcp:", tcp_open}, {"tls:", tls_open}};

static int listener_open(struct p9_listener *l, const char *address, const struct cube_p9_access *access,
			 struct cube_err *err)
{
	int r;

	for (size_t i = 0; i < CUBE_COUNT(listen_kinds); i++) {
		size_t len = strlen(listen_kinds[i].begins);

		if (strncmp(address, listen_kinds[i].begins, len) != 0)
			continue;
		r = listen_kinds[i].open(l, address + len, access, err);
		if (r == 0 && listen(l->fd, LISTEN_BACKLOG) < 0)
			r = cube_fail_errno(err, "--9p %s", address);
		return r;
	}
	return cube_fail(err, -EINVAL, "--9p %s: wants unix:PATH, tcp:HOST:PORT, tls:HOST:PORT or stdio",
			 address);
}

static struct p9_listener *listener_new(struct cube_p9 *s, const char *address)
{
	struct p9_listener *l = cube_calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->server = s;
	l->fd = -1;
	cube_list_init(&l->link);
	(void)snprintf(l->address, sizeof(l->address), "%s", address);
	return l;
}

/* What came in and goes out by the descriptors that this process was started with. */
static int listen_stdio(struct cube_p9 *s, void (*ended)(void *ctx), void *ctx, struct cube_err *err)
{
	struct cube_p9_peer peer = {.name = "stdio"};
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int r;

	if (in < 0 || out < 0)
		r = cube_fail_errno(err, "--9p stdio");
	else
		r = cube_p9_serve(s, in, out, &peer, ended, ctx, err);
	if (r < 0) {
		cube_close_auto(&in);
		cube_close_auto(&out);
		return cube_fail_in(err, "--9p stdio");
	}
	return 0;
}

int cube_p9_listen(struct cube_p9 *s, const char *address, const struct cube_p9_access *access,
		   void (*ended)(void *ctx), void *ctx, struct cube_err *err)
{
	struct p9_listener *l;
	int r;

	if (strcmp(address, "stdio") == 0)
		return listen_stdio(s, ended, ctx, err);
	l = listener_new(s, address);
	if (l == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = listener_open(l, address, access, err);
	if (r == 0)
		l->watch = cube_watch_new(s->o.loop, l->fd, CUBE_WATCH_IN, listener_ready, l);
	if (r == 0 && l->watch == NULL)
		r = cube_fail(err, -ENOMEM, "out of memory");
	if (r < 0) {
		listener_free(l);
		return r;
	}
	cube_list_push(&s->listeners, &l->link);
	cube_log(CUBE_LOG_INFO, "9p", "listening on %s", address);
	return 0;
}

int cube_p9_listen_try(const char *address, const struct cube_p9_access *access, struct cube_err *err)
{
	struct p9_listener *l;
	int r;

	if (strcmp(address, "stdio") == 0)
		return 0;
	l = listener_new(NULL, address);
	if (l == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	r = listener_open(l, address, access, err);
	listener_free(l);
	return r;
}
