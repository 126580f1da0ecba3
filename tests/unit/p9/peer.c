/* SPDX-License-Identifier: Apache-2.0 */
/* The client of the tests. */
#include "tests/unit/p9/peer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"

#define PEER_WAIT_MS 10000
#define PEER_FID     900 /* of those that are gone when a call returns */

struct cube_p9 *server;
struct cube_p9_limits limits;
static const char *wanted_token;

/* ---- on the loop's thread ---- */

struct peer_post {
	struct cube_post post;
	int fd; /* -1: stop */
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool over;
};

static atomic_uint connected;

static void ended(void *ctx)
{
	(void)ctx;
	atomic_fetch_sub(&connected, 1);
}

static void posted(struct cube_post *post)
{
	struct peer_post *p = cube_container_of(post, struct peer_post, post);
	struct cube_p9_peer who = {.local = true,
				   .pid = getpid(),
				   .uid = getuid(),
				   .gid = getgid(),
				   .token = wanted_token,
				   .name = "test"};
	struct cube_err err;

	if (p->fd < 0)
		cube_p9_stop(server);
	else if (cube_p9_serve(server, p->fd, p->fd, &who, ended, NULL, &err) < 0)
		(void)close(p->fd);
	else
		atomic_fetch_add(&connected, 1);
	(void)pthread_mutex_lock(&p->lock);
	p->over = true;
	(void)pthread_cond_signal(&p->done);
	(void)pthread_mutex_unlock(&p->lock);
}

static void on_loop(int fd)
{
	struct peer_post p = {.post.fn = posted,
			      .fd = fd,
			      .lock = PTHREAD_MUTEX_INITIALIZER,
			      .done = PTHREAD_COND_INITIALIZER};

	cube_loop_post(rig.loop, &p.post);
	(void)pthread_mutex_lock(&p.lock);
	while (!p.over)
		(void)pthread_cond_wait(&p.done, &p.lock);
	(void)pthread_mutex_unlock(&p.lock);
}

int peer_up(void **state)
{
	struct cube_p9_options o = {.files = {.uid = getuid(), .gid = getgid()}};
	struct cube_err err;

	if (limits.tags == 0)
		limits = cube_p9_limits_default;
	if (rig_up(state) != 0)
		return -1;
	o.loop = rig.loop;
	o.tree = rig.tree;
	o.limits = limits;
	return cube_p9_new(&o, &server, &err);
}

int peer_down(void **state)
{
	on_loop(-1);
	assert_true(cube_p9_idle(server, PEER_WAIT_MS));
	cube_p9_free(server);
	return rig_down(state);
}

/* ---- a connection ---- */

void peer_token(const char *token)
{
	wanted_token = token;
}

static int attach(struct peer *p, const char *aname)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TATTACH,
				.fid = 0,
				.newfid = CUBE_P9_NOFID,
				.second = {aname, (uint16_t)strlen(aname)},
				.uid = CUBE_P9_NOUID};

	return peer_rpc(p, &m);
}

void peer_open(struct peer *p, const char *version, uint32_t msize, const char *aname)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TVERSION, .msize = msize};
	int pair[2];

	*p = (struct peer){.dialect = CUBE_P9_2000L, .tag = 1};
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	p->fd = pair[0];
	on_loop(pair[1]);
	if (version == NULL)
		return;
	m.name = (struct cube_p9_str){version, (uint16_t)strlen(version)};
	assert_int_equal(peer_rpc(p, &m), 0);
	if (strcmp(version, "9P2000") == 0)
		p->dialect = CUBE_P9_2000;
	if (strcmp(version, "9P2000.u") == 0)
		p->dialect = CUBE_P9_2000U;
	if (aname != NULL)
		assert_int_equal(attach(p, aname), 0);
}

void peer_close(struct peer *p)
{
	(void)close(p->fd);
	cube_free(p->bytes);
	p->bytes = NULL;
}

void peer_hang_up(struct peer *p)
{
	peer_close(p);
	for (int ms = 0; atomic_load(&connected) > 0; ms++) {
		assert_in_range(ms, 0, PEER_WAIT_MS);
		(void)poll(NULL, 0, 1);
	}
}

void peer_raw(struct peer *p, const void *bytes, size_t len)
{
	assert_int_equal(send(p->fd, bytes, len, MSG_NOSIGNAL), len);
}

uint16_t peer_send(struct peer *p, struct cube_p9_msg *m)
{
	struct cube_buf b = CUBE_BUF(2u << 20);

	m->tag = m->type == CUBE_P9_TVERSION ? CUBE_P9_NOTAG : p->tag++;
	assert_int_equal(cube_p9_encode(m, p->dialect, &b), 0);
	peer_raw(p, b.data, b.len);
	cube_buf_done(&b);
	return m->tag;
}

bool peer_quiet(struct peer *p, int ms)
{
	struct pollfd f = {.fd = p->fd, .events = POLLIN};

	return poll(&f, 1, ms) == 0;
}

/* False: the end. */
static bool receive(struct peer *p, char *to, size_t len)
{
	while (len > 0) {
		ssize_t n;

		if (peer_quiet(p, PEER_WAIT_MS))
			fail_msg("no reply");
		n = recv(p->fd, to, len, 0);
		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
	}
	return true;
}

int peer_next(struct peer *p)
{
	char head[4];
	uint32_t size;

	if (!receive(p, head, 4))
		return -1;
	size = cube_p9_size(head);
	assert_in_range(size, CUBE_P9_HEAD, 2u << 20);
	cube_free(p->bytes);
	p->bytes = cube_malloc(size);
	assert_non_null(p->bytes);
	memcpy(p->bytes, head, 4);
	if (!receive(p, p->bytes + 4, size - 4))
		return -1;
	assert_int_equal(cube_p9_decode(p->bytes, size, p->dialect, &p->r), 0);
	return p->r.tag;
}

int peer_rpc(struct peer *p, struct cube_p9_msg *m)
{
	uint16_t tag = peer_send(p, m);

	assert_int_equal(peer_next(p), tag);
	if (p->r.type == CUBE_P9_RLERROR)
		return -(int)p->r.error;
	if (p->r.type == CUBE_P9_RERROR)
		return -EREMOTEIO;
	assert_int_equal(p->r.type, m->type + 1);
	return 0;
}

/* ---- messages ---- */

int peer_walk(struct peer *p, uint32_t fid, uint32_t newfid, const char *path)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TWALK, .fid = fid, .newfid = newfid};
	int code;

	while (*(path += strspn(path, "/")) != '\0') {
		size_t len = strcspn(path, "/");

		m.names[m.n_names++] = (struct cube_p9_str){path, (uint16_t)len};
		path += len;
	}
	code = peer_rpc(p, &m);
	return code == 0 && p->r.n_qids < m.n_names ? -ENOENT : code;
}

int peer_lopen(struct peer *p, uint32_t fid, uint32_t flags)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TLOPEN, .fid = fid, .flags = flags};

	return peer_rpc(p, &m);
}

int peer_read(struct peer *p, uint32_t fid, uint64_t offset, uint32_t count)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TREAD, .fid = fid, .offset = offset, .count = count};
	int code = peer_rpc(p, &m);

	return code < 0 ? code : (int)p->r.count;
}

int peer_write(struct peer *p, uint32_t fid, uint64_t offset, const char *text)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TWRITE,
				.fid = fid,
				.offset = offset,
				.count = (uint32_t)strlen(text),
				.data = text};
	int code = peer_rpc(p, &m);

	return code < 0 ? code : (int)p->r.count;
}

int peer_fid(struct peer *p, unsigned type, uint32_t fid)
{
	struct cube_p9_msg m = {.type = (uint8_t)type, .fid = fid, .mask = CUBE_P9_GETATTR_ALL};

	return peer_rpc(p, &m);
}

int peer_named(struct peer *p, unsigned type, uint32_t fid, const char *name, uint32_t mode)
{
	struct cube_p9_msg m = {.type = (uint8_t)type,
				.fid = fid,
				.name = {name, (uint16_t)strlen(name)},
				.mode = mode,
				.flags = mode};

	return peer_rpc(p, &m);
}

const char *peer_cat(struct peer *p, const char *path)
{
	static char text[65536];
	size_t len = 0;
	int n = 0;

	assert_int_equal(peer_walk(p, 0, PEER_FID, path), 0);
	assert_int_equal(peer_lopen(p, PEER_FID, 0), 0);
	while (len < sizeof(text) - 1 && (n = peer_read(p, PEER_FID, len, 4096)) > 0) {
		memcpy(text + len, p->r.data, (size_t)n);
		len += (size_t)n;
	}
	assert_int_equal(n, 0);
	text[len] = '\0';
	assert_int_equal(peer_fid(p, CUBE_P9_TCLUNK, PEER_FID), 0);
	return text;
}

int peer_echo(struct peer *p, const char *text, const char *path)
{
	int code = peer_walk(p, 0, PEER_FID, path), closed;

	if (code == 0)
		code = peer_lopen(p, PEER_FID, 1 | CUBE_P9_OPEN_TRUNC);
	else
		return code;
	if (code == 0)
		code = peer_write(p, PEER_FID, 0, text);
	closed = peer_fid(p, CUBE_P9_TCLUNK, PEER_FID);
	return code < 0 ? code : closed;
}
