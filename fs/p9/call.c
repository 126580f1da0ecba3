/* SPDX-License-Identifier: Apache-2.0 */
/* A message on its way: arrived, carried out in steps, answered once. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "fs/p9/priv.h"

/* ---- beginning and end ---- */

static struct p9_call *call_new(struct p9_conn *conn, char *bytes, size_t size)
{
	struct p9_call *c = cube_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->conn = conn;
	c->bytes = bytes;
	c->size = size;
	cube_list_init(&c->link);
	cube_list_init(&c->flush_link);
	cube_list_init(&c->flushes);
	(void)pthread_mutex_lock(&conn->lock);
	cube_p9_conn_ref_locked(conn);
	c->dialect = conn->dialect != 0 ? conn->dialect : CUBE_P9_2000L;
	c->msize = conn->dialect != 0 ? conn->msize : CUBE_P9_MSIZE_MIN;
	cube_list_push(&conn->all, &c->link);
	conn->n_calls++;
	conn->call_bytes += size;
	(void)pthread_mutex_unlock(&conn->lock);
	return c;
}

struct p9_call *cube_p9_call_new(struct p9_conn *conn)
{
	struct p9_call *c = call_new(conn, NULL, 0);

	if (c != NULL)
		c->silent = true;
	return c;
}

/* Not in any list any more. */
static void call_free(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;

	cube_req_fini(&c->r);
	cube_buf_done(&c->data);
	cube_buf_done(&c->ids);
	cube_free(c->bytes);
	cube_free(c);
	cube_p9_conn_unref(conn);
}

/* Before the answer is on its way: the client may use the fids for something else then. */
static void call_let_go(struct p9_call *c)
{
	struct p9_fid *f;

	(void)pthread_mutex_lock(&c->conn->lock); /* cube_p9_calls_of looks at it */
	f = cube_steal(c->fid);
	(void)pthread_mutex_unlock(&c->conn->lock);
	cube_p9_fid_put(c->conn, f);
	cube_p9_fid_put(c->conn, cube_steal(c->fid2));
	cube_p9_place_unref(c->conn, cube_steal(c->place));
	cube_p9_place_unref(c->conn, cube_steal(c->to));
}

/* A clunk that was called off has closed its fid all the same, and comes again. */
static void call_note_retry(struct p9_conn *conn, const struct p9_call *c)
{
	if (c->m.type != CUBE_P9_TCLUNK)
		return;
	if (conn->n_retries == P9_RETRIES)
		memmove(conn->retries, conn->retries + 1, --conn->n_retries * sizeof(conn->retries[0]));
	conn->retries[conn->n_retries++] = c->m.fid;
}

/* Then what waited for this end is answered. */
static void call_send(struct p9_call *c, bool quiet)
{
	struct p9_conn *conn = c->conn;
	struct cube_list flushes = CUBE_LIST_INIT(flushes), done = CUBE_LIST_INIT(done), *i;

	call_let_go(c);
	(void)pthread_mutex_lock(&conn->lock);
	cube_list_remove(&c->link);
	cube_list_remove(&c->flush_link);
	conn->n_calls--;
	conn->call_bytes -= c->size + c->need;
	if (c->tagged)
		cube_imap_take(conn->calls, c->m.tag);
	else
		quiet = true; /* its session is over */
	if (quiet && c->tagged)
		call_note_retry(conn, c);
	if (!quiet && c->data.len == 0) { /* no memory even for an error: the peer would wait for ever */
		quiet = conn->broken = true;
		cube_p9_conn_post_locked(conn);
	}
	while ((i = cube_list_pop(&c->flushes)) != NULL)
		cube_list_push(&flushes, i);
	if (quiet || conn->dead)
		cube_list_push(&done, &c->link);
	else
		cube_p9_conn_send_locked(conn, c, &done);
	if (conn->paused)
		cube_p9_conn_post_locked(conn); /* there may be room for more */
	(void)pthread_mutex_unlock(&conn->lock);
	while ((i = cube_list_pop(&flushes)) != NULL)
		cube_p9_reply(cube_list_entry(i, struct p9_call, flush_link));
	cube_p9_calls_sent(&done);
}

static void call_all_told(void *arg)
{
	call_send(arg, false);
}

/* The reply is in c->data, or (@quiet) there is none. Where a mount beside us keeps names and attributes of real files,
 * whoever gets the reply must not find there what was changed, or is said to be. */
static void call_finish(struct p9_call *c, bool quiet)
{
	struct cube_tree *t = c->conn->server->o.tree;

	if (quiet || !cube_tree_keeps(t) || !cube_tree_behind(t, call_all_told, c))
		call_send(c, quiet);
}

void cube_p9_calls_sent(struct cube_list *done)
{
	struct cube_list *i;

	while ((i = cube_list_pop(done)) != NULL)
		call_free(cube_list_entry(i, struct p9_call, link));
}

static int call_encode(struct p9_call *c)
{
	int code;

	cube_buf_done(&c->data);
	cube_buf_init(&c->data, c->msize);
	c->reply.tag = c->m.tag;
	code = cube_p9_encode(&c->reply, c->dialect, &c->data);
	if (code < 0)
		cube_buf_done(&c->data);
	return code;
}

void cube_p9_reply(struct p9_call *c)
{
	int code = 0;

	if (c->reply.type == 0)
		c->reply.type = c->m.type + 1;
	if (!c->silent)
		code = call_encode(c);
	if (code < 0)
		cube_p9_fail(c, code);
	else
		call_finish(c, c->silent);
}

bool cube_p9_data(struct p9_call *c, size_t len)
{
	cube_buf_init(&c->data, CUBE_P9_DATA_HEAD + len);
	if (cube_buf_reserve(&c->data, CUBE_P9_DATA_HEAD + len) == NULL) {
		cube_p9_fail(c, -ENOMEM);
		return false;
	}
	c->data.len = CUBE_P9_DATA_HEAD;
	return true;
}

void cube_p9_reply_data(struct p9_call *c)
{
	cube_p9_data_head(c->m.type + 1u, c->m.tag, (uint32_t)(c->data.len - CUBE_P9_DATA_HEAD),
			  c->data.data);
	call_finish(c, false);
}

static void call_sentence(struct p9_call *c, int code)
{
	const char *text = c->r.err.code == code ? c->r.err.text : cube_errno_text(code);

	c->reply.type = CUBE_P9_RERROR;
	c->reply.name = (struct cube_p9_str){.s = text, .len = (uint16_t)strlen(text)};
}

void cube_p9_fail(struct p9_call *c, int code)
{
	bool stopped;

	(void)pthread_mutex_lock(&c->conn->lock);
	stopped = c->unwanted && !cube_list_empty(&c->flushes) && code == -EINTR;
	(void)pthread_mutex_unlock(&c->conn->lock);
	if (!c->silent && !stopped) {
		c->reply.error = (uint32_t)-code;
		c->reply.type = CUBE_P9_RLERROR;
		if (c->dialect != CUBE_P9_2000L)
			call_sentence(c, code);
		(void)call_encode(c);
	}
	call_finish(c, c->silent || stopped);
}

void cube_p9_end(struct p9_call *c, int result)
{
	if (result < 0)
		cube_p9_fail(c, result);
	else
		cube_p9_reply(c);
}

/* ---- steps ---- */

void cube_p9_begin(struct p9_call *c)
{
	cube_req_fini(&c->r);
	memset(&c->r, 0, sizeof(c->r));
}

static void call_park(struct p9_call *c, bool parked)
{
	struct p9_conn *conn = c->conn;

	(void)pthread_mutex_lock(&conn->lock);
	if (parked != c->parked) {
		conn->n_parked += parked ? 1 : -1U;
		conn->parked_bytes += parked ? c->size : -c->size;
		conn->call_bytes += parked ? -c->need : c->need;
	}
	c->parked = parked;
	c->key = c->r.key;
	if (parked && c->unwanted)
		conn->stop = true;
	if (parked && (c->unwanted || conn->paused))
		cube_p9_conn_post_locked(conn);
	(void)pthread_mutex_unlock(&conn->lock);
}

/* A mount beside us may have names in its cache that went: whoever is told that it is done must not find them. */
static bool call_takes_names(enum cube_req_op op)
{
	return op == CUBE_REQ_RMDIR || op == CUBE_REQ_RENAME || op == CUBE_REQ_WRITE || op == CUBE_REQ_FLUSH;
}

static void call_told(void *arg)
{
	struct p9_call *c = arg;

	c->next(c, c->code_asked);
}

static void call_asked(struct cube_req *r, int result)
{
	struct p9_call *c = cube_container_of(r, struct p9_call, r);

	call_park(c, false);
	c->on_pool = false;
	c->code_asked = result;
	if (call_takes_names(r->op) && cube_tree_behind(c->conn->server->o.tree, call_told, c))
		return;
	c->next(c, result);
}

static void call_real(struct cube_req *r)
{
	struct p9_call *c = cube_container_of(r, struct p9_call, r);

	call_park(c, false);
	c->node = r->real_id;
	if (r->real_new_id != 0)
		c->new_node = r->real_new_id;
	c->shown_ino = r->entry.st.st_ino;
	c->on_pool = false;
	cube_p9_block(c, c->real);
}

/* Under the domain's lock. */
static void call_parked(struct cube_req *r)
{
	call_park(cube_container_of(r, struct p9_call, r), true);
}

static bool call_is_real(const struct p9_call *c)
{
	bool second = c->r.op == CUBE_REQ_RENAME || c->r.op == CUBE_REQ_LINK;

	return (c->r.node & CUBE_FILES_ID) && (!second || (c->r.new_parent & CUBE_FILES_ID));
}

void cube_p9_go(struct p9_call *c, enum cube_req_op op, uint64_t node, void (*next)(struct p9_call *, int),
		void (*real)(struct p9_call *))
{
	c->r.op = op;
	c->r.node = node;
	c->node = node;
	c->new_node = c->r.new_parent;
	c->shown_ino = 0;
	c->next = next;
	c->real = real;
	if (c->r.handle == NULL && call_is_real(c)) {
		cube_p9_block(c, real);
		return;
	}
	c->r.caller = c->conn->by;
	c->r.files_view = c->conn->view;
	c->r.done = call_asked;
	c->r.real = call_real;
	c->r.parked = call_parked;
	cube_tree_submit(c->conn->server->o.tree, &c->r);
}

static void call_work(struct cube_work *w)
{
	struct p9_call *c = cube_container_of(w, struct p9_call, work);

	c->on_pool = true;
	c->real(c);
}

void cube_p9_block(struct p9_call *c, void (*real)(struct p9_call *))
{
	c->real = real;
	if (c->on_pool) {
		real(c);
		return;
	}
	c->work = (struct cube_work){.run = call_work};
	cube_pool_submit(c->conn->server->pool, &c->work);
}

/* ---- arriving ---- */

/* Strings lie between numbers that have been read by now, and behind the last there is one byte more. */
static void call_end_string(const struct cube_p9_str *s)
{
	if (s->s != NULL)
		((char *)(uintptr_t)s->s)[s->len] = '\0';
}

static void call_end_strings(struct p9_call *c)
{
	call_end_string(&c->m.name);
	call_end_string(&c->m.second);
	call_end_string(&c->m.lock.client);
	call_end_string(&c->m.stat.name);
	call_end_string(&c->m.stat.uid);
	call_end_string(&c->m.stat.gid);
	call_end_string(&c->m.stat.muid);
	call_end_string(&c->m.stat.extension);
	for (unsigned i = 0; i < c->m.n_names; i++)
		call_end_string(&c->m.names[i]);
}

int cube_p9_name_check(const struct cube_p9_str *s)
{
	if (s->len > P9_NAME_MAX)
		return -ENAMETOOLONG;
	if (s->len == 0 || memchr(s->s, '/', s->len) != NULL || memchr(s->s, '\0', s->len) != NULL)
		return s->len == 0 ? -ENOENT : -EINVAL;
	return strcmp(s->s, ".") == 0 || strcmp(s->s, "..") == 0 ? -EINVAL : 0;
}

static int call_needs(struct p9_call *c, const struct p9_op *op)
{
	int code = 0;

	if (c->conn->dialect == 0 && !(op->needs & P9_ANY_STATE))
		return cube_fail(&c->r.err, -EPROTO, "Tversion comes first");
	if (!(op->needs & P9_ALWAYS) && cube_p9_conn_waits_too_much(c->conn))
		return cube_fail(&c->r.err, -EAGAIN, "too many requests of this connection wait already");
	if (op->needs & P9_NEEDS_FID) {
		c->fid = cube_p9_fid_use(c->conn, c->m.fid);
		if (c->fid == NULL)
			return cube_fail(&c->r.err, -EBADF, "fid %u is not known", c->m.fid);
	}
	if (op->needs & P9_NEEDS_FID2) {
		c->fid2 = cube_p9_fid_use(c->conn, c->m.newfid);
		if (c->fid2 == NULL)
			return cube_fail(&c->r.err, -EBADF, "fid %u is not known", c->m.newfid);
	}
	if (op->needs & P9_NEEDS_NAME)
		code = cube_p9_name_check(&c->m.name);
	if (code == 0 && (op->needs & P9_NEEDS_NAME2))
		code = cube_p9_name_check(&c->m.second);
	return code;
}

static void call_start(struct p9_call *c)
{
	const struct p9_op *op = &cube_p9_ops[c->m.type];
	int code;

	call_end_strings(c);
	code = op->start == NULL ? -EOPNOTSUPP : call_needs(c, op);
	if (code < 0)
		cube_p9_fail(c, code);
	else
		op->start(c);
}

/* Memory for a reply is asked for when there is one; that it will be is known before. */
static void call_count(struct p9_call *c)
{
	if (c->m.type != CUBE_P9_TREAD && c->m.type != CUBE_P9_TREADDIR)
		return;
	c->need = c->m.count < c->msize ? c->m.count : c->msize;
	(void)pthread_mutex_lock(&c->conn->lock);
	c->conn->call_bytes += c->need;
	(void)pthread_mutex_unlock(&c->conn->lock);
}

/* False: two at once with one tag, or a reply where a request should be. */
static bool call_tag(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;
	bool ok = c->m.type % 2 == 0 && c->m.type != 0;

	(void)pthread_mutex_lock(&conn->lock);
	if (ok && cube_imap_get(conn->calls, c->m.tag) == NULL &&
	    cube_imap_put(conn->calls, c->m.tag, c) == 0)
		c->tagged = true;
	(void)pthread_mutex_unlock(&conn->lock);
	return c->tagged;
}

void cube_p9_call_arrived(struct p9_conn *conn, char *bytes, size_t size)
{
	struct p9_call *c = call_new(conn, bytes, size);
	int code;

	if (c == NULL) {
		cube_free(bytes);
		cube_p9_conn_cut(conn, "out of memory");
		return;
	}
	code = cube_p9_decode(bytes, size, conn->dialect != 0 ? conn->dialect : CUBE_P9_2000L, &c->m);
	if (!call_tag(c)) {
		c->silent = true;
		cube_p9_fail(c, -EPROTO);
		cube_p9_conn_cut(conn, "it broke the protocol: a tag twice at once, or no request");
		return;
	}
	if (code == -EBADMSG) {
		cube_fail(&c->r.err, -EPROTO, "malformed %s", cube_p9_name(c->m.type));
		cube_p9_fail(c, -EPROTO);
	} else if (code < 0) {
		cube_fail(&c->r.err, code, "message %u is not of this dialect", c->m.type);
		cube_p9_fail(c, code);
	} else {
		call_count(c);
		call_start(c);
	}
}

/* ---- being called off ---- */

void cube_p9_flush(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;
	struct p9_call *old;

	(void)pthread_mutex_lock(&conn->lock);
	old = cube_imap_get(conn->calls, c->m.oldtag);
	if (old != NULL && old != c && c->tagged) {
		cube_list_push(&old->flushes, &c->flush_link);
		old->unwanted = true;
	} else {
		old = NULL;
	}
	(void)pthread_mutex_unlock(&conn->lock);
	if (old == NULL)
		cube_p9_reply(c);
	else
		cube_p9_calls_stop(conn);
}

void cube_p9_calls_abort(struct p9_conn *conn)
{
	(void)pthread_mutex_lock(&conn->lock);
	cube_list_each (i, &conn->all) {
		struct p9_call *c = cube_list_entry(i, struct p9_call, link);

		c->unwanted = !c->silent;
		if (c->tagged)
			cube_imap_take(conn->calls, c->m.tag);
		c->tagged = false;
	}
	(void)pthread_mutex_unlock(&conn->lock);
	cube_p9_calls_stop(conn);
}

void cube_p9_calls_of(struct p9_conn *conn, const struct p9_fid *f)
{
	bool any = false;

	(void)pthread_mutex_lock(&conn->lock);
	cube_list_each (i, &conn->all) {
		struct p9_call *c = cube_list_entry(i, struct p9_call, link);

		if (c->fid == f && c->m.type == CUBE_P9_TREAD)
			c->unwanted = any = true;
	}
	(void)pthread_mutex_unlock(&conn->lock);
	if (any)
		cube_p9_calls_stop(conn);
}

#define CALL_STOP 32 /* at a time */

/* One that is being served this moment may yet wait: the rest is tried again. */
void cube_p9_calls_stop(struct p9_conn *conn)
{
	uint64_t keys[CALL_STOP];
	bool again = false;
	unsigned n;

	conn->round++;
	do {
		n = 0;
		(void)pthread_mutex_lock(&conn->lock);
		cube_list_each (i, &conn->all) {
			struct p9_call *c = cube_list_entry(i, struct p9_call, link);

			if (c->unwanted && c->parked && c->round != conn->round && n < CALL_STOP) {
				c->round = conn->round;
				keys[n++] = c->key;
			}
		}
		(void)pthread_mutex_unlock(&conn->lock);
		for (unsigned i = 0; i < n; i++)
			if (!cube_tree_cancel(conn->server->o.tree, keys[i]))
				again = true;
	} while (n == CALL_STOP);
	if (again) {
		(void)pthread_mutex_lock(&conn->lock);
		conn->nag = true;
		cube_p9_conn_post_locked(conn);
		(void)pthread_mutex_unlock(&conn->lock);
	}
}
