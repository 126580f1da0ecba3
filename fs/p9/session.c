/* SPDX-License-Identifier: Apache-2.0 */
/* Tversion, Tauth, Tattach, Twalk, Tclunk, Tremove: how a client comes in and where it goes. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/log.h"
#include "fs/p9/priv.h"

/* ---- Tversion ---- */

static const struct {
	const char *name;
	enum cube_p9_dialect dialect;
} session_dialects[] = {
	{"9P2000.L", CUBE_P9_2000L},
	{"9P2000.u", CUBE_P9_2000U},
	{"9P2000", CUBE_P9_2000},
};

/* A dialect that is not known is what stands before the dot; what is no 9P at all: NULL. */
static const char *session_dialect(const char *wanted, enum cube_p9_dialect *ret)
{
	size_t base = strcspn(wanted, ".");

	for (size_t i = 0; i < CUBE_COUNT(session_dialects); i++) {
		const char *name = session_dialects[i].name;

		if (strcmp(name, wanted) == 0 || (strlen(name) == base && strncmp(name, wanted, base) == 0)) {
			*ret = session_dialects[i].dialect;
			return name;
		}
	}
	return NULL;
}

/* The session that was there before ends: nothing of it is answered any more, its fids are clunked. */
static void session_reset(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;

	cube_p9_calls_abort(conn);
	cube_p9_fids_drop_all(conn);
	(void)pthread_mutex_lock(&conn->lock);
	conn->dialect = 0;
	conn->n_retries = 0;
	if (cube_imap_put(conn->calls, c->m.tag, c) == 0)
		c->tagged = true;
	c->unwanted = false;
	(void)pthread_mutex_unlock(&conn->lock);
}

void cube_p9_op_version(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;
	enum cube_p9_dialect dialect = 0;
	const char *name = session_dialect(c->m.name.s, &dialect);
	uint32_t most = conn->server->o.limits.msize;

	session_reset(c);
	if (c->m.msize < CUBE_P9_MSIZE_MIN) {
		cube_fail(&c->r.err, -EMSGSIZE, "a message size of %u is too little: at least %u", c->m.msize,
			  CUBE_P9_MSIZE_MIN);
		cube_p9_fail(c, -EMSGSIZE);
		return;
	}
	(void)pthread_mutex_lock(&conn->lock);
	conn->dialect = dialect;
	conn->msize = c->m.msize < most ? c->m.msize : most;
	(void)pthread_mutex_unlock(&conn->lock);
	if (name == NULL)
		name = "unknown";
	c->reply.msize = conn->msize;
	c->reply.name = (struct cube_p9_str){.s = name, .len = (uint16_t)strlen(name)};
	cube_p9_reply(c);
}

/* Clients that always ask take this as "none is needed". */
void cube_p9_op_auth(struct p9_call *c)
{
	cube_p9_fail(c, cube_fail(&c->r.err, -ENOENT, "no authentication is asked for here"));
}

/* ---- walking ---- */

static void walk_end(struct p9_call *c, int code);
static void walk_step(struct p9_call *c);

static void walk_found(struct p9_call *c, int code, uint64_t id, const struct stat *st)
{
	struct p9_place *next;

	if (code < 0) {
		walk_end(c, code);
		return;
	}
	next = cube_p9_place_new(c->place, id, st, c->m.names[c->step].s);
	if (next == NULL) {
		cube_p9_node_forget(c->conn, id);
		walk_end(c, -ENOMEM);
		return;
	}
	cube_p9_place_unref(c->conn, c->place);
	c->place = next;
	c->reply.qids[c->step++] = next->qid;
	walk_step(c);
}

static void walk_asked(struct p9_call *c, int result)
{
	walk_found(c, result, c->r.entry.id, &c->r.entry.st);
}

static void walk_real(struct p9_call *c)
{
	struct cube_files_entry e = {0};
	int code = cube_files_lookup(c->conn->files, c->node, c->m.names[c->step].s, &e);

	walk_found(c, code, e.id, &e.st);
}

/* Nobody comes above the place where he attached. */
static void walk_up(struct p9_call *c)
{
	struct p9_place *up = NULL;

	(void)pthread_mutex_lock(&c->conn->lock);
	if (c->place->parent != NULL)
		up = cube_p9_place_ref(c->place->parent);
	(void)pthread_mutex_unlock(&c->conn->lock);
	if (up != NULL) {
		cube_p9_place_unref(c->conn, c->place);
		c->place = up;
	}
	c->reply.qids[c->step++] = c->place->qid;
}

static void walk_step(struct p9_call *c)
{
	const struct cube_p9_str *name;
	int code = 0;

	while (code == 0 && c->step < c->m.n_names) {
		name = &c->m.names[c->step];
		if (name->len == 1 && name->s[0] == '.') {
			c->reply.qids[c->step++] = c->place->qid;
		} else if (!S_ISDIR(c->place->mode)) {
			code = -ENOTDIR;
		} else if (strcmp(name->s, "..") == 0 && name->len == 2) {
			walk_up(c);
		} else {
			code = cube_p9_name_check(name);
			if (code < 0)
				break;
			cube_p9_begin(c);
			c->r.name = name->s;
			cube_p9_go(c, CUBE_REQ_LOOKUP, c->place->id, walk_asked, walk_real);
			return;
		}
	}
	walk_end(c, code);
}

/* ---- Tattach ---- */

static void attach_done(struct p9_call *c, int code)
{
	struct p9_place *root = c->place;

	if (code == 0 && !S_ISDIR(root->mode))
		code = -ENOTDIR;
	if (code == 0) {
		/* What is above it is not the client's. */
		cube_p9_place_unref(c->conn, cube_steal(root->parent));
		c->reply.qid = root->qid;
		code = cube_p9_fid_add(c, c->m.fid, root, NULL);
	}
	if (code == 0) {
		c->place = NULL;
		(void)pthread_mutex_lock(&c->conn->lock);
		c->conn->attached = true;
		(void)pthread_mutex_unlock(&c->conn->lock);
	}
	cube_p9_end(c, code);
}

/* As long for any that is wrong. */
static bool attach_same(const char *token, const char *given)
{
	size_t len = strlen(token), n = strlen(given);
	unsigned differs = len != n;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)given[i] ^ (unsigned char)token[len > 0 ? i % len : 0];
	return differs == 0;
}

/* "TOKEN/NAME": true, and *aname is what is behind the token. */
static bool attach_token(const struct p9_conn *conn, const char **aname)
{
	size_t len = strcspn(*aname, "/");
	char given[P9_NAME_MAX + 1];

	if (conn->token == NULL)
		return true;
	if (len >= sizeof(given))
		return false;
	memcpy(given, *aname, len);
	given[len] = '\0';
	*aname += len;
	return attach_same(conn->token, given);
}

/* The names in it, where a walk looks for them. */
static int attach_path(struct p9_call *c, const char *aname)
{
	c->m.n_names = 0;
	while (*(aname += strspn(aname, "/")) != '\0') {
		size_t len = strcspn(aname, "/");

		if (c->m.n_names == CUBE_P9_WALK)
			return -ENAMETOOLONG;
		c->m.names[c->m.n_names++] = (struct cube_p9_str){.s = aname, .len = (uint16_t)len};
		aname += len;
	}
	for (unsigned i = 0; i < c->m.n_names; i++) {
		struct cube_p9_str *s = &c->m.names[i];
		int code;

		((char *)(uintptr_t)s->s)[s->len] = '\0';
		code = cube_p9_name_check(s);
		if (code < 0)
			return code;
	}
	return 0;
}

static int attach_check(struct p9_call *c)
{
	const char *aname = c->m.second.s;
	int code;

	if (c->m.newfid != CUBE_P9_NOFID)
		return cube_fail(&c->r.err, -EINVAL, "no authentication is asked for here");
	if (memchr(aname, '\0', c->m.second.len) != NULL || !attach_token(c->conn, &aname)) {
		cube_log(CUBE_LOG_WARNING, "9p", "%s: refused: its token is not the right one",
			 c->conn->name);
		return -EACCES;
	}
	code = attach_path(c, aname);
	return code < 0 ? code : cube_p9_conn_files(c->conn);
}

void cube_p9_op_attach(struct p9_call *c)
{
	struct stat st = {.st_mode = S_IFDIR, .st_ino = CUBE_TREE_ROOT};
	int code = attach_check(c);

	if (code == 0) {
		c->place = cube_p9_place_new(NULL, CUBE_TREE_ROOT, &st, "/");
		code = c->place == NULL ? -ENOMEM : 0;
	}
	if (code < 0)
		cube_p9_fail(c, code);
	else
		walk_step(c);
}

/* ---- Twalk ---- */

static int walk_arrive(struct p9_call *c)
{
	struct p9_fid *f = c->fid;
	struct p9_place *old;
	int code = -EBUSY;

	if (c->m.newfid != c->m.fid) {
		code = cube_p9_fid_add(c, c->m.newfid, c->place, NULL);
		if (code == 0)
			c->place = NULL;
		return code;
	}
	(void)pthread_mutex_lock(&c->conn->lock);
	if (f->state == P9_WALKED && !f->opening && f->uses == 1) { /* nobody else looks at it */
		old = f->place;
		f->place = c->place;
		c->place = old; /* given up with the call */
		code = 0;
	}
	(void)pthread_mutex_unlock(&c->conn->lock);
	return code;
}

static void walk_end(struct p9_call *c, int code)
{
	if (c->m.type == CUBE_P9_TATTACH) {
		attach_done(c, code);
		return;
	}
	c->reply.n_qids = (uint16_t)c->step;
	if (code == 0)
		code = walk_arrive(c);
	else if (c->step > 0)
		code = 0; /* as far as it went */
	cube_p9_end(c, code);
}

void cube_p9_op_walk(struct p9_call *c)
{
	(void)pthread_mutex_lock(&c->conn->lock);
	c->place = cube_p9_place_ref(c->fid->place);
	(void)pthread_mutex_unlock(&c->conn->lock);
	walk_step(c);
}

/* ---- Tclunk, Tremove ---- */

static bool clunk_again(struct p9_call *c)
{
	struct p9_conn *conn = c->conn;
	bool again = false;

	(void)pthread_mutex_lock(&conn->lock);
	for (unsigned i = 0; i < conn->n_retries; i++) {
		if (conn->retries[i] == c->m.fid) {
			conn->retries[i] = conn->retries[--conn->n_retries];
			again = true;
			break;
		}
	}
	(void)pthread_mutex_unlock(&conn->lock);
	return again;
}

void cube_p9_op_clunk(struct p9_call *c)
{
	struct p9_fid *f = cube_p9_fid_use(c->conn, c->m.fid);

	if (f != NULL)
		cube_p9_fid_drop(c->conn, f, c);
	else if (clunk_again(c))
		cube_p9_reply(c);
	else
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not known", c->m.fid));
}

void cube_p9_op_remove(struct p9_call *c)
{
	struct p9_fid *f = cube_p9_fid_use(c->conn, c->m.fid);

	if (f == NULL) {
		cube_p9_fail(c, cube_fail(&c->r.err, -EBADF, "fid %u is not known", c->m.fid));
		return;
	}
	(void)pthread_mutex_lock(&c->conn->lock);
	f->remove = true;
	(void)pthread_mutex_unlock(&c->conn->lock);
	cube_p9_fid_drop(c->conn, f, c);
}
