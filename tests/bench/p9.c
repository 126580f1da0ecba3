/* SPDX-License-Identifier: Apache-2.0 */
/* Measures a 9P server (9P2000.L) at a unix socket, ours or another one.
 *
 *     p9 SOCKET ANAME read PATH COUNT     read a file from beginning to end COUNT times: MiB/s of the best
 *     p9 SOCKET ANAME stat PATH COUNT     Tgetattr: p50 p90 max in microseconds
 *     p9 SOCKET ANAME walk PATH COUNT     Twalk from the root and Tclunk: the same
 *     p9 SOCKET ANAME crowd PATH CLIENTS  each with its connection, 2000 Tgetattr each: all of them, per second
 *     p9 SOCKET ANAME idle PATH CLIENTS   that many attached connections, until stdin ends; prints a line when ready
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/buf.h"
#include "backends/base/p9.h"
#include "tests/bench/sample.h"

enum { MSIZE = 131072, EACH = 2000, ROOT = 1, FILE_FID = 2, STEP_FID = 3 };

struct link {
	int fd;
	uint32_t msize;
	struct cube_buf out;
	char in[MSIZE];
};

static const char *g_socket, *g_aname;

__attribute__((noreturn)) static void die(const char *what)
{
	(void)fprintf(stderr, "bench-p9: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* One whole answer: there is no second one under way that could come with it. */
static uint32_t take(struct link *l)
{
	uint32_t size = CUBE_P9_HEAD;
	size_t have = 0;

	while (have < size) {
		ssize_t n = recv(l->fd, l->in + have, sizeof(l->in) - have, 0);

		if (n <= 0)
			die("the server's answer");
		have += (size_t)n;
		if (have >= CUBE_P9_HEAD)
			size = cube_p9_size(l->in);
		if (size < CUBE_P9_HEAD || size > sizeof(l->in))
			die("size of an answer");
	}
	return size;
}

/* One message and its answer, which lies in l->in. Any error ends the program: nothing measured is expected to fail. */
static void ask(struct link *l, struct cube_p9_msg *m, struct cube_p9_msg *ret)
{
	uint32_t size;

	cube_buf_reset(&l->out);
	if (cube_p9_encode(m, CUBE_P9_2000L, &l->out) < 0 ||
	    send(l->fd, l->out.data, l->out.len, MSG_NOSIGNAL) != (ssize_t)l->out.len)
		die(cube_p9_name(m->type));
	size = take(l);
	if (cube_p9_decode(l->in, size, CUBE_P9_2000L, ret) < 0)
		die("an answer");
	if (ret->type != m->type + 1) {
		errno = (int)ret->error;
		die(cube_p9_name(m->type));
	}
}

static struct cube_p9_str str(const char *s)
{
	return (struct cube_p9_str){s, (uint16_t)strlen(s)};
}

static struct link *dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct link *l = calloc(1, sizeof(*l));
	struct cube_p9_msg m = {.type = CUBE_P9_TVERSION, .tag = CUBE_P9_NOTAG, .msize = MSIZE}, r;

	if (l == NULL)
		die("memory");
	cube_buf_init(&l->out, MSIZE);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", g_socket);
	l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (l->fd < 0 || connect(l->fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die(g_socket);
	m.name = str("9P2000.L");
	ask(l, &m, &r);
	l->msize = r.msize;
	m = (struct cube_p9_msg){
		.type = CUBE_P9_TATTACH, .fid = ROOT, .newfid = CUBE_P9_NOFID, .uid = (uint32_t)getuid()};
	m.name = str("bench");
	m.second = str(g_aname);
	ask(l, &m, &r);
	return l;
}

static void hang_up(struct link *l)
{
	(void)close(l->fd);
	cube_buf_done(&l->out);
	free(l);
}

static void walk(struct link *l, const char *path, uint32_t fid)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TWALK, .fid = ROOT, .newfid = fid}, r;

	while (*path != '\0' && m.n_names < CUBE_P9_WALK) {
		size_t len = strcspn(path, "/");

		m.names[m.n_names++] = (struct cube_p9_str){path, (uint16_t)len};
		path += len + (path[len] == '/');
	}
	ask(l, &m, &r);
	if (r.n_qids != m.n_names) {
		errno = ENOENT;
		die("the path");
	}
}

static void clunk(struct link *l, uint32_t fid)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TCLUNK, .fid = fid}, r;

	ask(l, &m, &r);
}

static void getattr(struct link *l)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TGETATTR, .fid = FILE_FID, .mask = CUBE_P9_GETATTR_BASIC}, r;

	ask(l, &m, &r);
}

static uint64_t read_through(struct link *l)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TREAD, .fid = FILE_FID, .count = l->msize - CUBE_P9_IO_HEAD},
			   r;

	do {
		ask(l, &m, &r);
		m.offset += r.count;
	} while (r.count > 0);
	return m.offset;
}

static void bench_read(struct link *l, unsigned count)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TLOPEN, .fid = FILE_FID}, r;
	double best = 0;

	ask(l, &m, &r);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = sample_now(), bytes = read_through(l);
		double rate = (double)bytes / 1048576.0 / ((double)(sample_now() - start) / 1e9);

		if (rate > best)
			best = rate;
	}
	(void)printf("%.0f\n", best);
}

static void bench_trips(struct link *l, const char *path, unsigned count, bool walks)
{
	uint64_t *ns = calloc(count, sizeof(*ns));

	if (ns == NULL)
		die("memory");
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = sample_now();

		if (walks) {
			walk(l, path, STEP_FID);
			clunk(l, STEP_FID);
		} else {
			getattr(l);
		}
		ns[i] = sample_now() - start;
	}
	sample_print(ns, count);
	free(ns);
}

static void *one_of_crowd(void *data)
{
	for (unsigned i = 0; i < EACH; i++)
		getattr(data);
	return NULL;
}

struct peer {
	pthread_t thread;
	struct link *link;
};

static void bench_crowd(const char *path, unsigned clients)
{
	struct peer *peers = calloc(clients, sizeof(*peers));
	uint64_t start;

	if (peers == NULL)
		die("memory");
	for (unsigned i = 0; i < clients; i++) {
		peers[i].link = dial();
		walk(peers[i].link, path, FILE_FID);
	}
	start = sample_now();
	for (unsigned i = 0; i < clients; i++)
		if (pthread_create(&peers[i].thread, NULL, one_of_crowd, peers[i].link) != 0)
			die("a thread");
	for (unsigned i = 0; i < clients; i++)
		(void)pthread_join(peers[i].thread, NULL);
	(void)printf("%.0f\n", (double)clients * EACH / ((double)(sample_now() - start) / 1e9));
	for (unsigned i = 0; i < clients; i++)
		hang_up(peers[i].link);
	free(peers);
}

static void bench_idle(unsigned clients)
{
	struct peer *peers = calloc(clients, sizeof(*peers));
	char c;

	if (peers == NULL)
		die("memory");
	for (unsigned i = 0; i < clients; i++)
		peers[i].link = dial();
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	for (unsigned i = 0; i < clients; i++)
		hang_up(peers[i].link);
	free(peers);
}

int main(int argc, char **argv)
{
	unsigned count = argc == 6 ? (unsigned)strtoul(argv[5], NULL, 10) : 0;
	const char *what, *path;
	struct link *l;

	if (count == 0) {
		(void)fprintf(stderr, "usage: bench-p9 SOCKET ANAME read|stat|walk|crowd|idle PATH COUNT\n");
		return 2;
	}
	g_socket = argv[1];
	g_aname = argv[2];
	what = argv[3];
	path = argv[4];
	if (strcmp(what, "crowd") == 0)
		bench_crowd(path, count);
	else if (strcmp(what, "idle") == 0)
		bench_idle(count);
	else {
		l = dial();
		walk(l, path, FILE_FID);
		if (strcmp(what, "read") == 0)
			bench_read(l, count);
		else
			bench_trips(l, path, count, strcmp(what, "walk") == 0);
		hang_up(l);
	}
	return 0;
}
