/* SPDX-License-Identifier: Apache-2.0 */
/* A whole session of 9P, over a socket pair, on a tree with the mem backend. The input is a list of requests whose
 * fields are chosen from small sets, so that most of them are meant for something; some are any bytes. What must
 * hold: one reply for each tag, of the type asked for or an error, none for a tag that nobody waits for; Tversion
 * is answered at the end, whatever waits, and then no fid is left; nothing is left of the connection when it has hung
 * up; no file of this machine that a name may lead to is touched. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/p9.h"
#include "ctl/cube.h"
#include "fs/p9/priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MSIZE = 8192, FIDS = 8, TAGS = 24, REQUESTS = 64, WAIT_MS = 20000 };

/* One for all inputs: to make it takes long. */
static struct {
	char top[64], dir[80]; /* the state is in the first */
	pthread_t thread;
	struct cube_loop *loop;
	struct cube_domain *domain;
	struct cube_tree *tree;
	struct cube_p9 *server;
	int canary; /* of the directory with the file that nobody may touch */
} g;

/* A connection that the loop's thread is to take, and its end. */
struct join {
	struct cube_post post;
	int fd;
	pthread_mutex_t lock;
	pthread_cond_t some;
	bool ended;
};

struct peer {
	int fd;
	enum cube_p9_dialect dialect;
	uint8_t waits[TAGS]; /* type of what was asked with this tag; 0: nothing */
	bool any[TAGS];      /* it was no whole request: any answer or none */
	bool version, cut;
	size_t have;
	char in[2 * MSIZE];
};

/* How many fids connections have: asked on the loop's thread, whose connections they are. */
struct count {
	struct cube_post post;
	pthread_mutex_t lock;
	pthread_cond_t some;
	unsigned fids;
	bool done;
};

/* What of the input is not used yet; zeros behind its end. */
struct food {
	const uint8_t *at;
	size_t left;
};

#define must(holds) must_hold(holds, #holds, __LINE__)

static void must_hold(bool holds, const char *what, int line)
{
	if (holds)
		return;
	(void)fprintf(stderr, "line %d: this does not hold: %s\n", line, what);
	abort();
}

static uint8_t bite(struct food *f)
{
	if (f->left == 0)
		return 0;
	f->left--;
	return *f->at++;
}

/* ---- the server ---- */

static void *run_loop(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

/* What the process has goes with it; files do not. */
static void end(void)
{
	cube_tree_shutdown(g.tree);
	cube_domain_shutdown(g.domain, 5000);
	cube_loop_stop(g.loop);
	(void)pthread_join(g.thread, NULL);
	must(cube_file_remove_tree(AT_FDCWD, g.top) == 0);
}

static void begin(void)
{
	static const char conf[] = "[backend mem]\nkind = mem\n";
	struct cube_domain_options o = {.uid = getuid(), .gid = getgid()};
	struct cube_tree_options to = {0};
	struct cube_p9_options po = {.limits = cube_p9_limits_default};
	struct cube_err err = {0};
	struct cube_conf *c = NULL;
	int fd;

	cube_log_setup(STDERR_FILENO, CUBE_LOG_ERROR);
	(void)snprintf(g.top, sizeof(g.top), "/tmp/cubefs-fuzz-XXXXXX");
	must(mkdtemp(g.top) != NULL && cube_conf_parse(conf, strlen(conf), "fuzz", &c, &err) == 0);
	g.canary = open(g.top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = openat(g.canary, "canary", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	must(fd >= 0 && mkdirat(g.canary, "state", 0700) == 0);
	(void)close(fd);
	(void)snprintf(g.dir, sizeof(g.dir), "%s/state", g.top);
	g.loop = cube_loop_new();
	o.state_dir = g.dir;
	o.conf = c;
	o.loop = g.loop;
	must(cube_domain_open(&o, &g.domain, &err) == 0);
	po.files = (struct cube_files_options){.uid = getuid(), .gid = getgid()};
	to.domain = g.domain;
	to.files = cube_files_space_new(&po.files);
	g.tree = cube_tree_new(&to);
	must(g.tree != NULL && cube_domain_start(g.domain, &err) == 0);
	po.loop = g.loop;
	po.tree = g.tree;
	must(cube_p9_new(&po, &g.server, &err) == 0);
	must(pthread_create(&g.thread, NULL, run_loop, g.loop) == 0);
	must(atexit(end) == 0);
}

static void ended(void *ctx)
{
	struct join *j = ctx;

	(void)pthread_mutex_lock(&j->lock);
	j->ended = true;
	(void)pthread_cond_broadcast(&j->some);
	(void)pthread_mutex_unlock(&j->lock);
}

static void joined(struct cube_post *post)
{
	struct join *j = cube_container_of(post, struct join, post);
	struct cube_p9_peer who = {
		.local = true, .pid = getpid(), .uid = getuid(), .gid = getgid(), .name = "fuzz"};
	struct cube_err err = {0};

	must(cube_p9_serve(g.server, j->fd, j->fd, &who, ended, j, &err) == 0);
}

/* ---- answers ---- */

static uint8_t error_of(enum cube_p9_dialect d)
{
	return d == CUBE_P9_2000L ? CUBE_P9_RLERROR : CUBE_P9_RERROR;
}

static void answer(struct peer *p, const char *bytes, uint32_t size)
{
	struct cube_p9_msg m;
	enum cube_p9_dialect d = p->dialect;

	must(cube_p9_decode(bytes, size, d, &m) == 0);
	if (m.tag == CUBE_P9_NOTAG) {
		must(p->version && (m.type == CUBE_P9_RVERSION || m.type == error_of(d)));
		p->version = false;
		return;
	}
	must(m.tag < TAGS && p->waits[m.tag] != 0);
	must(p->any[m.tag] || m.type == p->waits[m.tag] + 1 || m.type == error_of(d));
	p->waits[m.tag] = 0;
}

/* What is there; waits for the first byte if @ms. False: nothing came. */
static bool hear(struct peer *p, int ms)
{
	struct pollfd wait = {.fd = p->fd, .events = POLLIN};
	ssize_t n;

	do
		n = poll(&wait, 1, ms);
	while (n < 0 && errno == EINTR); /* the fuzzer's own alarm */
	if (n <= 0)
		return false;
	n = recv(p->fd, p->in + p->have, sizeof(p->in) - p->have, 0);
	if (n <= 0) {
		p->cut = true;
		return false;
	}
	p->have += (size_t)n;
	while (p->have >= CUBE_P9_HEAD) {
		uint32_t size = cube_p9_size(p->in);

		must(size >= CUBE_P9_HEAD && size <= MSIZE);
		if (p->have < size)
			break;
		answer(p, p->in, size);
		p->have -= size;
		memmove(p->in, p->in + size, p->have);
	}
	return true;
}

/* ---- requests ---- */

static struct cube_p9_str word(struct food *f)
{
	static const char *const words[] = {
		"",         ".",           "..",           "README",   "ctl",    "a",
		"b",        "exec",        "exit",         "jobs",     "cmd",    "output",
		"status",   "events",      "error",        "env",      "clone",  "sessions",
		"main",     "checkpoints", "list",         "backends", "mem",    "volumes",
		"files",    "workspace",   "../../canary", "/tmp",     "canary", "user.x",
		"9P2000.L", "/a"};
	const char *s = words[bite(f) % (sizeof(words) / sizeof(*words))];

	return (struct cube_p9_str){s, (uint16_t)strlen(s)};
}

static struct cube_p9_str text(struct food *f)
{
	static const char *const texts[] = {"create a\n", "destroy a\n",      "create b\n",     "echo x\n",
					    "pause\n",    "resume\n",         "kill\n",         "x",
					    "A=1\n",      "sleep 1000\n",     "stop\n",         "start\n",
					    "run true\n", "wait running 1\n", "checkpoint c\n", "rename b\n"};
	const char *s = texts[bite(f) % (sizeof(texts) / sizeof(*texts))];

	return (struct cube_p9_str){s, (uint16_t)strlen(s)};
}

static uint32_t a_fid(struct food *f)
{
	uint8_t b = bite(f);

	return b == 255 ? CUBE_P9_NOFID : b % FIDS;
}

static uint64_t a_number(struct food *f)
{
	static const uint64_t numbers[] = {0, 1, 2, 10, 4000, MSIZE, UINT32_MAX, INT64_MAX, UINT64_MAX};

	return numbers[bite(f) % (sizeof(numbers) / sizeof(*numbers))];
}

/* Fills all that a message of its type may have; the codec takes what it has. */
static void fill(struct food *f, struct cube_p9_msg *m)
{
	struct cube_p9_str data;

	m->fid = a_fid(f);
	m->newfid = a_fid(f);
	m->name = word(f);
	m->second = word(f);
	m->n_names = bite(f) % 5;
	for (unsigned i = 0; i < m->n_names; i++)
		m->names[i] = word(f);
	m->offset = a_number(f);
	m->flags = bite(f) % 4 | (uint32_t)(bite(f) % 16) << 6;
	m->open_mode = bite(f);
	m->mode = (uint32_t)bite(f) << 4 | (bite(f) % 2 != 0 ? CUBE_P9_DMDIR : 0);
	m->mask = m->size = a_number(f);
	m->lock.type = bite(f) % 4;
	m->lock.length = a_number(f);
	m->stat.name = word(f);
	m->stat.length = m->attr.size = a_number(f);
	m->stat.mode = m->stat.mtime = m->stat.atime = UINT32_MAX;
	m->oldtag = bite(f) % TAGS;
	m->msize = MSIZE;
	m->count = (uint32_t)a_number(f);
	m->datasync = bite(f) % 2;
	if (m->type == CUBE_P9_TWRITE) {
		data = text(f);
		m->data = data.s;
		m->count = data.len;
	}
}

static int free_tag(const struct peer *p)
{
	for (int tag = 0; tag < TAGS; tag++)
		if (p->waits[tag] == 0)
			return tag;
	return -1;
}

static void say(struct peer *p, const void *data, size_t len)
{
	while (len > 0 && !p->cut) {
		ssize_t n = send(p->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN) {
			must(hear(p, WAIT_MS) ||
			     p->cut); /* it stops to listen only when it has something to say */
			continue;
		}
		p->cut = n < 0;
		data = (const char *)data + (n > 0 ? n : 0);
		len -= n > 0 ? (size_t)n : 0;
	}
}

/* A flush that is answered takes what it was about along, answered or not. */
static void flushed(struct peer *p, const struct cube_p9_msg *m)
{
	if (m->type == CUBE_P9_TFLUSH && m->oldtag != m->tag)
		p->any[m->oldtag] = true;
}

static void request(struct peer *p, struct food *f)
{
	struct cube_buf b = CUBE_BUF(MSIZE);
	struct cube_p9_msg m = {0};
	uint8_t kind = bite(f);
	int tag = free_tag(p);

	if (tag < 0)
		return;
	m.tag = (uint16_t)tag;
	m.type = (uint8_t)(8 + 2 * (kind % ((CUBE_P9_TYPES - 8) / 2)));
	if (m.type == CUBE_P9_TVERSION)
		return; /* it ends everything: the last request */
	fill(f, &m);
	if (cube_p9_encode(&m, p->dialect, &b) == 0) {
		p->waits[tag] = m.type;
		p->any[tag] = false;
		if (kind >= 200 && b.len > CUBE_P9_HEAD) { /* a byte of it is another one */
			b.data[CUBE_P9_HEAD + bite(f) % (b.len - CUBE_P9_HEAD)] = (char)bite(f);
			p->any[tag] = true;
		}
		flushed(p, &m);
		say(p, b.data, b.len);
	}
	cube_buf_done(&b);
}

static void version(struct peer *p, enum cube_p9_dialect d)
{
	static const char *const names[] = {
		[CUBE_P9_2000] = "9P2000", [CUBE_P9_2000U] = "9P2000.u", [CUBE_P9_2000L] = "9P2000.L"};
	struct cube_p9_msg m = {.type = CUBE_P9_TVERSION, .tag = CUBE_P9_NOTAG, .msize = MSIZE};
	struct cube_buf b = CUBE_BUF(MSIZE);

	m.name = (struct cube_p9_str){names[d], (uint16_t)strlen(names[d])};
	must(cube_p9_encode(&m, d, &b) == 0);
	p->version = true;
	say(p, b.data, b.len);
	cube_buf_done(&b);
	while (p->version && !p->cut)
		must(hear(p, WAIT_MS) || p->cut);
}

static void attach(struct peer *p)
{
	struct cube_p9_msg m = {.type = CUBE_P9_TATTACH, .newfid = CUBE_P9_NOFID, .uid = CUBE_P9_NOUID};
	struct cube_buf b = CUBE_BUF(MSIZE);

	must(cube_p9_encode(&m, p->dialect, &b) == 0);
	p->waits[0] = CUBE_P9_TATTACH;
	say(p, b.data, b.len);
	cube_buf_done(&b);
	while (p->waits[0] != 0)
		must(hear(p, WAIT_MS));
}

/* ---- one session ---- */

static void counted(struct cube_post *post)
{
	struct count *n = cube_container_of(post, struct count, post);

	(void)pthread_mutex_lock(&n->lock);
	cube_list_each (i, &g.server->conns) {
		struct p9_conn *c = cube_list_entry(i, struct p9_conn, link);

		(void)pthread_mutex_lock(&c->lock);
		n->fids += c->n_fids;
		(void)pthread_mutex_unlock(&c->lock);
	}
	n->done = true;
	(void)pthread_cond_signal(&n->some);
	(void)pthread_mutex_unlock(&n->lock);
}

static unsigned fids(void)
{
	struct count n = {
		.post.fn = counted, .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

	cube_loop_post(g.loop, &n.post);
	(void)pthread_mutex_lock(&n.lock);
	while (!n.done)
		(void)pthread_cond_wait(&n.some, &n.lock);
	(void)pthread_mutex_unlock(&n.lock);
	return n.fids;
}

/* Those that are still being closed end soon. */
static void no_fid_left(void)
{
	struct timespec now;
	time_t until;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	until = now.tv_sec + WAIT_MS / 1000;
	while (fids() != 0) {
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		must(now.tv_sec < until);
	}
}

static void nothing_left(void)
{
	struct timespec until;
	int r = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_MS / 1000;
	(void)pthread_mutex_lock(&g.server->lock);
	while (g.server->live > 0 && r == 0)
		r = pthread_cond_clockwait(&g.server->idle, &g.server->lock, CLOCK_MONOTONIC, &until);
	must(r == 0);
	(void)pthread_mutex_unlock(&g.server->lock);
}

static void untouched(void)
{
	struct stat st;
	DIR *dir;
	int n = 0;

	must(fstatat(g.canary, "canary", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == 0 &&
	     (st.st_mode & 07777) == 0600 && st.st_nlink == 1);
	dir = fdopendir(openat(g.canary, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	must(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	must(n == 4); /* itself, above, the canary, the state */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum cube_p9_dialect dialects[] = {CUBE_P9_2000L, CUBE_P9_2000L, CUBE_P9_2000U,
							CUBE_P9_2000};
	struct join j = {
		.post.fn = joined, .lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};
	struct food f = {data, size};
	struct peer p = {0};
	int pair[2];

	if (g.server == NULL)
		begin();
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	j.fd = pair[0];
	p.fd = pair[1];
	p.dialect = dialects[bite(&f) % 4];
	cube_loop_post(g.loop, &j.post);
	version(&p, p.dialect);
	attach(&p);
	for (int i = 0; i < REQUESTS && f.left > 0 && !p.cut; i++) {
		request(&p, &f);
		while (hear(&p, 0))
			;
	}
	if (!p.cut)
		version(&p, p.dialect);
	no_fid_left();
	(void)close(p.fd);
	(void)pthread_mutex_lock(&j.lock);
	while (!j.ended)
		(void)pthread_cond_wait(&j.some, &j.lock);
	(void)pthread_mutex_unlock(&j.lock);
	nothing_left();
	untouched();
	return 0;
}
