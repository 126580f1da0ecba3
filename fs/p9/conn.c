/* SPDX-License-Identifier: Apache-2.0 */
/* A connection: bytes become messages, replies become bytes, and what is left when it ends. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "fs/p9/priv.h"

#define CONN_READ     4096        /* at a time, when nothing is known of what comes */
#define CONN_READ_MAX (256 << 10) /* and at most: a large size that is only announced costs nothing */
#define CONN_ROUNDS   8           /* reads until others have their turn */
#define CONN_HELLO_MS 30000       /* until it has attached */
#define CONN_STUCK_MS 60000       /* for the rest of a message; for a reply to be taken */

static uint64_t conn_now(void)
{
	return cube_clock_mono() / 1000000;
}

/* ---- keeping ---- */

void cube_p9_conn_ref_locked(struct p9_conn *c)
{
	c->refs++;
}

static void conn_free(struct p9_conn *c)
{
	struct cube_p9 *s = c->server;

	cube_tree_client_ends(s->o.tree, c->by.client);
	if (c->view != NULL)
		cube_tree_view_end(s->o.tree, c->view);
	cube_p9_io_close(&c->io);
	cube_p9_owners_free(c);
	cube_buf_done(&c->in);
	cube_imap_free(c->calls);
	cube_imap_free(c->fids);
	(void)pthread_mutex_destroy(&c->lock);
	cube_free(c->token);
	cube_free(c);
	cube_p9_server_gone(s);
}

void cube_p9_conn_unref(struct p9_conn *c)
{
	bool last;

	(void)pthread_mutex_lock(&c->lock);
	last = --c->refs == 0;
	(void)pthread_mutex_unlock(&c->lock);
	if (last)
		conn_free(c);
}

static void conn_posted(struct cube_post *post);

void cube_p9_conn_post_locked(struct p9_conn *c)
{
	if (c->posted)
		return;
	c->posted = true;
	c->refs++;
	c->post.fn = conn_posted;
	cube_loop_post(c->server->o.loop, &c->post);
}

/* ---- sending ---- */

static void conn_flush_locked(struct p9_conn *c, struct cube_list *sent)
{
	while (!cube_list_empty(&c->out)) {
		struct p9_call *first = cube_list_entry(c->out.next, struct p9_call, link);
		ssize_t n =
			cube_p9_io_send(&c->io, first->data.data + c->out_at, first->data.len - c->out_at);

		if (n < 0) {
			c->broken |= n != -EAGAIN;
			return;
		}
		c->stuck_out = 0;
		c->out_at += (size_t)n;
		if (c->out_at < first->data.len)
			continue;
		c->out_bytes -= first->data.len;
		c->out_at = 0;
		cube_list_remove(&first->link);
		cube_list_push(sent, &first->link);
	}
}

void cube_p9_conn_send_locked(struct p9_conn *c, struct p9_call *call, struct cube_list *sent)
{
	bool first = cube_list_empty(&c->out);

	c->out_bytes += call->data.len;
	cube_list_push(&c->out, &call->link);
	if (first)
		conn_flush_locked(c, sent);
	if (!cube_list_empty(&c->out))
		cube_p9_conn_post_locked(c);
}

/* ---- receiving ---- */

static size_t conn_most_bytes(const struct p9_conn *c)
{
	return 4 * (size_t)(c->msize > CUBE_P9_MSIZE_MIN ? c->msize : CUBE_P9_MSIZE_MIN);
}

/* So much is under way that no more is read until some has been answered. Those that wait do not count: they may
 * wait for ever, and what ends them must get in. */
static bool conn_full_locked(const struct p9_conn *c)
{
	return c->n_calls - c->n_parked >= c->server->o.limits.tags ||
	       c->call_bytes - c->parked_bytes + c->out_bytes > conn_most_bytes(c);
}

bool cube_p9_conn_waits_too_much(struct p9_conn *c)
{
	bool much;

	(void)pthread_mutex_lock(&c->lock);
	much = c->n_parked >= c->server->o.limits.tags || c->parked_bytes > conn_most_bytes(c);
	(void)pthread_mutex_unlock(&c->lock);
	return much;
}

/* 1: a message is there, and its size in *ret; 0: not yet; -EPROTO. */
static int conn_message(const struct p9_conn *c, size_t at, uint32_t *ret)
{
	uint32_t max = c->dialect != 0 ? c->msize : CUBE_P9_MSIZE_MIN;

	if (c->in.len - at < 4)
		return 0;
	*ret = cube_p9_size(c->in.data + at);
	if (*ret < CUBE_P9_HEAD || *ret > max)
		return -EPROTO;
	return c->in.len - at >= *ret;
}

/* The message at @at, in memory of its own, with a byte to spare. */
static char *conn_take(struct p9_conn *c, size_t at, uint32_t size)
{
	char *bytes;

	if (at == 0 && c->in.len == size && size > CONN_READ)
		return cube_buf_steal(&c->in, NULL);
	bytes = cube_malloc((size_t)size + 1);
	if (bytes != NULL)
		memcpy(bytes, c->in.data + at, size);
	return bytes;
}

static void conn_parse(struct p9_conn *c)
{
	uint32_t size = 0;
	size_t at = 0;
	int there = 0;

	while (!c->cut) {
		bool full;
		char *bytes;

		(void)pthread_mutex_lock(&c->lock);
		full = c->paused = conn_full_locked(c);
		(void)pthread_mutex_unlock(&c->lock);
		there = full ? 0 : conn_message(c, at, &size);
		if (there <= 0)
			break;
		bytes = conn_take(c, at, size);
		if (bytes == NULL) {
			cube_p9_conn_cut(c, "out of memory");
			return;
		}
		at = c->in.len == 0 ? 0 : at + size;
		cube_p9_call_arrived(c, bytes, size);
	}
	if (there < 0)
		cube_p9_conn_cut(c, "it broke the protocol: a message of a size that none has");
	cube_buf_drop(&c->in, at);
	c->stuck_in = c->in.len == 0 || c->paused ? 0 : c->stuck_in != 0 ? c->stuck_in : conn_now();
	if (c->in.len == 0 && c->in.cap > CONN_READ + 1)
		cube_buf_done(&c->in);
}

static size_t conn_wanted(const struct p9_conn *c)
{
	uint32_t size;

	if (c->in.len < 4)
		return CONN_READ;
	size = cube_p9_size(c->in.data);
	if (size <= c->in.len)
		return CONN_READ;
	return size - c->in.len < CONN_READ_MAX ? size - c->in.len : CONN_READ_MAX;
}

/* False: no more for now. */
static bool conn_read(struct p9_conn *c)
{
	size_t want = conn_wanted(c);
	char why[160];
	char *to = cube_buf_reserve(&c->in, want);
	ssize_t n;

	if (to == NULL) {
		cube_p9_conn_cut(c, "out of memory");
		return false;
	}
	(void)pthread_mutex_lock(&c->lock);
	n = cube_p9_io_recv(&c->io, to, want);
	(void)pthread_mutex_unlock(&c->lock);
	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		(void)snprintf(why, sizeof(why), "%s", n < 0 ? cube_p9_io_why(&c->io, (int)n) : "");
		cube_p9_conn_cut(c, n < 0 ? why : NULL);
		return false;
	}
	c->in.len += (size_t)n;
	conn_parse(c);
	return !c->cut && !c->paused && ((size_t)n == want || c->io.tls != NULL);
}

/* ---- on the loop ---- */

static void conn_watch(struct p9_conn *c)
{
	unsigned in = c->paused ? 0 : CUBE_WATCH_IN, out;

	(void)pthread_mutex_lock(&c->lock);
	out = cube_list_empty(&c->out) && !cube_p9_io_wants_out(&c->io) ? 0 : CUBE_WATCH_OUT;
	if (!cube_list_empty(&c->out) && c->stuck_out == 0)
		c->stuck_out = conn_now();
	(void)pthread_mutex_unlock(&c->lock);
	if (c->watch_out != NULL) {
		cube_watch_set(c->watch_in, in);
		cube_watch_set(c->watch_out, out);
	} else {
		cube_watch_set(c->watch_in, in | out);
	}
}

static void conn_write(struct p9_conn *c)
{
	struct cube_list sent = CUBE_LIST_INIT(sent);

	(void)pthread_mutex_lock(&c->lock);
	conn_flush_locked(c, &sent);
	(void)pthread_mutex_unlock(&c->lock);
	cube_p9_calls_sent(&sent);
}

static bool conn_pending(struct p9_conn *c)
{
	bool pending;

	(void)pthread_mutex_lock(&c->lock);
	pending = cube_p9_io_pending(&c->io);
	(void)pthread_mutex_unlock(&c->lock);
	return pending;
}

static bool conn_broken(struct p9_conn *c)
{
	bool broken;

	(void)pthread_mutex_lock(&c->lock);
	broken = c->broken;
	(void)pthread_mutex_unlock(&c->lock);
	return broken;
}

/* What the connection needs after something changed. The caller has a reference. */
static void conn_go_on(struct p9_conn *c)
{
	if (c->cut)
		return;
	if (conn_broken(c)) {
		cube_p9_conn_cut(c, NULL);
		return;
	}
	if (c->paused)
		conn_parse(c);
	while (!c->cut && !c->paused && conn_pending(c))
		(void)conn_read(c);
	if (!c->cut)
		conn_watch(c);
}

static void conn_posted(struct cube_post *post)
{
	struct p9_conn *c = cube_container_of(post, struct p9_conn, post);
	bool stop, nag;

	(void)pthread_mutex_lock(&c->lock);
	c->posted = false;
	stop = c->stop;
	c->stop = false;
	(void)pthread_mutex_unlock(&c->lock);
	if (stop)
		cube_p9_calls_stop(c);
	(void)pthread_mutex_lock(&c->lock);
	nag = c->nag;
	c->nag = false;
	(void)pthread_mutex_unlock(&c->lock);
	if (nag)
		cube_p9_server_again(c);
	conn_go_on(c);
	cube_p9_conn_unref(c);
}

static void conn_ready(void *ctx, unsigned events)
{
	struct p9_conn *c = ctx;

	(void)pthread_mutex_lock(&c->lock);
	c->refs++;
	(void)pthread_mutex_unlock(&c->lock);
	if (events & CUBE_WATCH_OUT)
		conn_write(c);
	if (c->io.tls != NULL && !c->paused)
		events |= CUBE_WATCH_IN; /* it may have waited to send */
	for (unsigned i = 0; (events & CUBE_WATCH_IN) && i < CONN_ROUNDS; i++)
		if (!conn_read(c))
			break;
	conn_go_on(c);
	cube_p9_conn_unref(c);
}

/* ---- beginning and end ---- */

static struct p9_conn *conn_alloc(struct cube_p9 *s)
{
	struct p9_conn *c = cube_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->server = s;
	c->refs = 1;
	c->born = conn_now();
	cube_list_init(&c->link);
	cube_list_init(&c->nagging);
	cube_list_init(&c->out);
	cube_list_init(&c->all);
	cube_list_init(&c->unclosed);
	cube_buf_init(&c->in, s->o.limits.msize + CONN_READ_MAX);
	(void)pthread_mutex_init(&c->lock, NULL);
	c->calls = cube_imap_new();
	c->fids = cube_imap_new();
	return c;
}

struct p9_conn *cube_p9_conn_new(struct cube_p9 *s, int in, int out, const struct cube_p9_peer *peer)
{
	struct p9_conn *c = conn_alloc(s);

	if (c == NULL) {
		cube_p9_server_gone(s);
		return NULL;
	}
	c->by = (struct cube_caller){.pid = peer->local ? peer->pid : 0,
				     .uid = peer->local ? peer->uid : s->o.files.uid,
				     .gid = peer->local ? peer->gid : s->o.files.gid,
				     .client = ++s->next_client,
				     .local = peer->local,
				     .owner = !peer->local || peer->uid == s->o.files.uid};
	c->io = (struct p9_io){.in = -1, .out = -1};
	if (peer->tls != NULL)
		c->io.tls = cube_p9_tls_new(peer->tls, in);
	(void)snprintf(c->name, sizeof(c->name), "%s", peer->name);
	c->token = peer->token != NULL ? cube_strdup(peer->token) : NULL;
	if (c->calls == NULL || c->fids == NULL || (peer->token != NULL && c->token == NULL) ||
	    (peer->tls != NULL && c->io.tls == NULL))
		goto fail;
	c->watch_in = cube_watch_new(s->o.loop, in, CUBE_WATCH_IN, conn_ready, c);
	if (c->watch_in == NULL)
		goto fail;
	if (in != out) {
		c->watch_out = cube_watch_new(s->o.loop, out, 0, conn_ready, c);
		if (c->watch_out == NULL)
			goto fail;
	}
	c->io.in = in;
	c->io.out = out;
	return c;
fail:
	cube_watch_free(c->watch_in);
	cube_p9_conn_unref(c);
	return NULL;
}

void cube_p9_conn_cut(struct p9_conn *c, const char *why)
{
	struct cube_list left = CUBE_LIST_INIT(left), *i;

	if (c->cut)
		return;
	c->cut = true;
	if (why != NULL)
		cube_log(CUBE_LOG_WARNING, "9p", "%s: cut: %s", c->name, why);
	cube_watch_free(c->watch_in);
	cube_watch_free(c->watch_out);
	cube_list_remove(&c->link);
	c->server->n_conns--;
	(void)pthread_mutex_lock(&c->lock);
	c->dead = true;
	while ((i = cube_list_pop(&c->out)) != NULL)
		cube_list_push(&left, i);
	cube_p9_io_close(&c->io);
	(void)pthread_mutex_unlock(&c->lock);
	cube_p9_calls_sent(&left);
	cube_p9_calls_abort(c);
	cube_p9_fids_drop_all(c);
	if (c->ended != NULL)
		c->ended(c->ctx);
	cube_p9_conn_unref(c);
}

/* A peer that does nothing holds no thread, but what it holds it shall not hold for ever. One that has attached
 * and asks for nothing is a mount, and stays. */
void cube_p9_conn_check(struct p9_conn *c, uint64_t now)
{
	struct pollfd p = {.fd = c->io.in, .events = POLLRDHUP};
	bool late, taken;

	(void)pthread_mutex_lock(&c->lock);
	late = !c->attached && now - c->born > CONN_HELLO_MS;
	taken = c->stuck_out == 0 || now - c->stuck_out <= CONN_STUCK_MS;
	(void)pthread_mutex_unlock(&c->lock);
	if (c->paused && poll(&p, 1, 0) == 1)
		cube_p9_conn_cut(c, NULL); /* nobody reads, and so nobody would see it */
	else if (late)
		cube_p9_conn_cut(c, "it has not attached");
	else if (!taken)
		cube_p9_conn_cut(c, "it takes no replies");
	else if (c->stuck_in != 0 && now - c->stuck_in > CONN_STUCK_MS)
		cube_p9_conn_cut(c, "the rest of a message did not come");
}

int cube_p9_conn_files(struct p9_conn *c)
{
	struct cube_files_space *files;

	if (c->view != NULL)
		return 0;
	files = cube_files_space_new(&c->server->o.files);
	if (files == NULL)
		return -ENOMEM;
	c->view = cube_tree_view_new(c->server->o.tree, files);
	if (c->view == NULL) {
		cube_files_space_free(files);
		return -ENOMEM;
	}
	c->files = files;
	return 0;
}
