/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of fs/p9 share.
 *
 * A message becomes a call (call.c). It asks the tree, or (real files) is carried out on a thread of the server's
 * pool, in as many steps as it needs, and ends in one reply. conn->lock guards the tables of a connection and its
 * output; it is taken for moments only, inside the domain's lock at times, so the domain is never entered under
 * it. */
#ifndef CUBEFS_FS_P9_PRIV_H
#define CUBEFS_FS_P9_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/base/list.h"
#include "backends/base/map.h"
#include "backends/base/p9.h"
#include "backends/base/pool.h"
#include "fs/p9/p9.h"
#include "fs/p9/tls.h"

#define P9_NAME_MAX  255
#define P9_XATTR_MAX 65536
#define P9_COLLECT   (16u << 20) /* bytes of attributes that are being written, of one connection */
#define P9_RETRIES   32          /* clunks that were flushed and may come again */

struct cube_p9 {
	struct cube_p9_options o;
	struct cube_pool *pool;
	struct cube_list listeners;
	struct cube_list conns; /* not cut yet; the loop's */
	struct cube_list
		nagging; /* connections with what could not be stopped or closed the first time; the loop's */
	unsigned n_conns;
	struct cube_timer *timer; /* looks for those that do nothing */
	struct cube_timer *again; /* for them */
	uint64_t next_client;
	bool stopped;
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool ended;    /* stopped, and all were cut */
	unsigned live; /* connections of which anything is left */
};

/* A stream: plain, or with encryption on it. Non-blocking: -EAGAIN. Under conn->lock. */
struct p9_io {
	int in, out;
	struct p9_tls *tls; /* NULL: plain; owned */
};
ssize_t cube_p9_io_recv(struct p9_io *io, void *data, size_t len); /* 0: the end */
ssize_t cube_p9_io_send(struct p9_io *io, const void *data, size_t len);
bool cube_p9_io_pending(const struct p9_io *io); /* more is there than an event will tell of */
bool cube_p9_io_wants_out(const struct p9_io *io);
const char *cube_p9_io_why(const struct p9_io *io, int code); /* a sentence */
void cube_p9_io_close(struct p9_io *io);

struct p9_call;

struct p9_conn {
	struct cube_list link; /* server.conns */
	struct cube_p9 *server;
	struct cube_caller by;
	struct cube_tree_view *view; /* made at the first attach */
	struct cube_files_space *files;
	char *token; /* NULL: none wanted */
	char name[80];
	void (*ended)(void *ctx);
	void *ctx;
	/* ---- the loop's ---- */
	struct cube_watch *watch_in, *watch_out; /* watch_out NULL: one descriptor for both */
	struct cube_post post;
	struct cube_list nagging; /* server.nagging, with a reference */
	struct cube_buf in;       /* what has arrived of messages */
	unsigned round;           /* of cube_p9_calls_stop */
	bool cut;
	/* ---- conn->lock ---- */
	pthread_mutex_t lock;
	struct p9_io io;
	unsigned refs; /* the loop's, and one for each call, post and place in a list */
	bool posted, dead;
	bool paused; /* nothing is read: too much is under way */
	bool broken; /* nothing can be sent any more */
	bool stop;   /* there are calls to be stopped: now */
	bool nag;    /* calls to be stopped or fids to be closed: soon, since it could not be done at once */
	enum cube_p9_dialect dialect; /* 0: before Tversion */
	uint32_t msize;
	struct cube_list out;     /* calls whose replies wait to be sent */
	size_t out_at, out_bytes; /* of the first that is gone already; of all of them */
	struct cube_imap *calls;  /* tag -> call */
	struct cube_list all;     /* calls that are not answered, those without a tag too */
	unsigned n_calls;
	size_t call_bytes; /* of their messages, and what the replies may need */
	unsigned n_parked; /* of them: those that wait for something, maybe for ever */
	size_t parked_bytes;
	struct cube_imap *fids;
	unsigned n_fids;           /* those that are being closed too */
	struct cube_list unclosed; /* fids for whose end there was no memory */
	uint32_t retries[P9_RETRIES];
	unsigned n_retries;
	struct p9_lock_owner *owners;
	unsigned n_owners;
	uint32_t last_owner; /* number */
	size_t collected;
	bool attached;
	uint64_t born, stuck_in,
		stuck_out; /* monotonic ms; since when half a message waits, nothing was taken */
};

/* A place in the tree that somebody walked to: what a fid is at. */
struct p9_place {
	atomic_uint refs;
	struct p9_place *parent; /* referenced; NULL: the root of an attach, or of the tree */
	uint64_t id;             /* of a node, one lookup counted; the tree's root: none */
	struct cube_p9_qid qid;
	mode_t mode; /* type alone */
	char *name;  /* in its parent; changes with a rename: conn->lock */
};

enum p9_state { P9_WALKED, P9_FILE, P9_DIR, P9_XATTR_READ, P9_XATTR_WRITE };

struct p9_xattr {
	char name[P9_NAME_MAX + 1];
	struct cube_buf value;
	uint64_t size; /* announced */
	int flags;
};

struct p9_fid {
	struct cube_list link; /* conn->unclosed */
	uint32_t number;
	unsigned uses; /* calls that have it; conn->lock */
	bool gone;     /* its number is free again; closed when the last use ends; conn->lock */
	bool opening;  /* conn->lock */
	bool lost;     /* the connection ended before it was clunked */
	bool remove;   /* with the clunk (ORCLOSE, Tremove) */
	struct p9_call *closer;
	struct p9_place *place;  /* referenced; changes under conn->lock while walked */
	struct p9_place *before; /* the directory in which it was created; referenced */
	enum p9_state state;
	bool reads, writes, nonblock;
	struct cube_handle *handle;     /* the tree's file */
	struct cube_files_handle *real; /* a real file or directory */
	uint64_t shown_ino;             /* of an open real directory: as in struct p9_call */
	struct p9_xattr *xattr;         /* owned */
	bool listing;                   /* older dialects: one lists it just now */
	uint64_t dir_at, dir_next; /* older dialects: bytes that were read, and where the listing goes on */
	uint64_t *lock_owners;     /* that hold locks through it */
	unsigned n_lock_owners;
};

/* What a kind of message needs before it starts. */
#define P9_NEEDS_FID   1u  /* m.fid is known */
#define P9_NEEDS_FID2  2u  /* m.newfid is known */
#define P9_NEEDS_NAME  4u  /* m.name is fit for an entry */
#define P9_NEEDS_NAME2 8u  /* m.second */
#define P9_ANY_STATE   16u /* before Tversion */
#define P9_ALWAYS      32u /* however many wait: it ends things */

struct p9_op {
	unsigned needs;
	void (*start)(struct p9_call *c);
};

struct p9_call {
	struct cube_req r;
	struct cube_work work;
	struct p9_conn *conn;        /* referenced */
	struct cube_list link;       /* conn->all, then conn->out */
	struct cube_list flush_link; /* of another's flushes */
	struct cube_p9_msg m, reply;
	enum cube_p9_dialect dialect; /* of the connection when it arrived */
	uint32_t msize;
	size_t need; /* of the reply, unless it waits: then it has nothing */
	char *bytes; /* the message; strings of m lie in it and are NUL ended */
	size_t size;
	struct p9_fid *fid, *fid2; /* used */
	struct p9_fid *closing;    /* nobody else has it */
	struct p9_place *place;    /* where a walk is; referenced */
	unsigned step;
	uint64_t node, new_node; /* of the real files that this step is about */
	uint64_t shown_ino;      /* 0, or the number that our own node has for a real directory */
	void (*next)(struct p9_call *c, int result); /* behind the tree's answer */
	void (*real)(struct p9_call *c);             /* when it is about real files */
	struct cube_buf data; /* the reply's bytes, or its data behind CUBE_P9_DATA_HEAD */
	struct stat st;
	unsigned set; /* CUBE_SET_* */
	struct p9_xattr *xattr;
	struct cube_buf ids; /* nodes that were counted in a listing */
	void (*got)(struct p9_call *c, int code, const struct stat *st);
	void (*after)(struct p9_call *c, int code);
	uint64_t next_at; /* where a listing goes on */
	int code_asked;   /* of the step that the tree has answered */
	int code;
	struct cube_err kept; /* of code */
	int flags;            /* open(2)'s */
	char name[P9_NAME_MAX + 1];
	const char *new_name;
	struct p9_place *to; /* of a rename: referenced */
	bool on_pool;
	bool silent; /* nobody waits for a reply */
	/* ---- conn->lock ---- */
	bool tagged, parked, unwanted;
	uint64_t key;
	unsigned round;           /* of cube_p9_calls_stop, in which it was asked for */
	struct cube_list flushes; /* Tflush calls that are answered behind it */
};

/* ---- call.c ---- */
void cube_p9_call_arrived(struct p9_conn *conn, char *bytes, size_t size); /* takes @bytes */
struct p9_call *cube_p9_call_new(struct p9_conn *conn);                    /* silent; NULL: memory */
/* A step: c->r is cleared, filled by the caller, and sent to the tree; then comes next, or (it is about real files,
 * those of c->node and c->new_node) real. What the tree keeps with it is there until the next cube_p9_begin. */
void cube_p9_begin(struct p9_call *c);
void cube_p9_go(struct p9_call *c, enum cube_req_op op, uint64_t node, void (*next)(struct p9_call *, int),
		void (*real)(struct p9_call *));
/* A step on a thread that may block: at once where this is one. */
void cube_p9_block(struct p9_call *c, void (*real)(struct p9_call *));
/* The end: exactly once. */
void cube_p9_reply(struct p9_call *c);           /* what is in c->reply */
void cube_p9_reply_data(struct p9_call *c);      /* c->data, with room for the head in front */
void cube_p9_fail(struct p9_call *c, int code);  /* the sentence is in c->r.err, if it has that code */
void cube_p9_end(struct p9_call *c, int result); /* cube_p9_fail for a failure, else cube_p9_reply */
bool cube_p9_data(struct p9_call *c,
		  size_t len); /* makes c->data ready for @len bytes of data; false: failed */
void cube_p9_calls_sent(struct cube_list *done); /* their replies are with the peer, or never will be */
void cube_p9_flush(struct p9_call *c);
int cube_p9_name_check(const struct cube_p9_str *s);
void cube_p9_calls_abort(struct p9_conn *conn);                      /* all of them: no replies */
void cube_p9_calls_of(struct p9_conn *conn, const struct p9_fid *f); /* reads that wait through it: EINTR */
void cube_p9_calls_stop(struct p9_conn *conn);        /* asks the tree to stop what is unwanted */
extern const struct p9_op cube_p9_ops[CUBE_P9_TYPES]; /* ops.c */

/* ---- conn.c ---- */
struct p9_conn *cube_p9_conn_new(struct cube_p9 *s, int in, int out, const struct cube_p9_peer *peer);
void cube_p9_conn_cut(struct p9_conn *c, const char *why); /* the loop's thread; NULL: nothing to say */
void cube_p9_conn_ref_locked(struct p9_conn *c);
void cube_p9_conn_unref(struct p9_conn *c);
void cube_p9_conn_post_locked(struct p9_conn *c); /* has the loop look at it */
/* The call is done with; @sent gets those that are to be given to cube_p9_calls_sent behind the lock. */
void cube_p9_conn_send_locked(struct p9_conn *c, struct p9_call *call, struct cube_list *sent);
/* As many requests wait as may: another that could is refused. */
bool cube_p9_conn_waits_too_much(struct p9_conn *c);
void cube_p9_conn_check(struct p9_conn *c, uint64_t now);
int cube_p9_conn_files(struct p9_conn *c); /* its look at real files, made when needed */

/* ---- listen.c ---- */
void cube_p9_listeners_stop(struct cube_p9 *s);
void cube_p9_listeners_go_on(struct cube_p9 *s); /* those that could not accept */

/* ---- server.c ---- */
void cube_p9_server_gone(struct cube_p9 *s); /* nothing is left of a connection */
/* The loop's thread: soon, cube_p9_calls_stop and cube_p9_fids_close. */
void cube_p9_server_again(struct p9_conn *c);

/* ---- place.c ---- */
struct p9_place *cube_p9_place_new(struct p9_place *parent, uint64_t id, const struct stat *st,
				   const char *name);
struct p9_place *cube_p9_place_ref(struct p9_place *p);
void cube_p9_place_unref(struct p9_conn *c, struct p9_place *p);
struct cube_p9_qid cube_p9_qid(const struct stat *st);
void cube_p9_node_forget(struct p9_conn *c, uint64_t id);

/* ---- fid.c ---- */
struct p9_fid *cube_p9_fid_use(struct p9_conn *c, uint32_t number); /* NULL: no such fid */
void cube_p9_fid_put(struct p9_conn *c, struct p9_fid *f);
/* A new one at @place (taken on success): -EBADF the number is in use, -EMFILE, -ENOMEM. Used once, and being
 * opened, if @ret. */
int cube_p9_fid_add(struct p9_call *c, uint32_t number, struct p9_place *place, struct p9_fid **ret);
/* Its number is free; when nobody uses it any more it is closed, and @closer (may be NULL) answered. The caller's
 * use ends. */
void cube_p9_fid_drop(struct p9_conn *c, struct p9_fid *f, struct p9_call *closer);
void cube_p9_fids_drop_all(struct p9_conn *c);
void cube_p9_fids_close(struct p9_conn *c); /* those for which there was no memory the last time */
int cube_p9_fid_open_begin(struct p9_conn *c, struct p9_fid *f); /* 0; -EINVAL: it is open */
void cube_p9_fid_open_end(struct p9_conn *c, struct p9_fid *f, enum p9_state state);
void cube_p9_renamed(struct p9_conn *c, uint64_t dir, const char *name, struct p9_place *to,
		     const char *to_name);
/* Where it is in its parent, referenced, and the name there, copied; -EBUSY: it is the root. */
int cube_p9_fid_where(struct p9_conn *c, struct p9_fid *f, struct p9_place **ret, char name[P9_NAME_MAX + 1]);

/* ---- lock.c ---- */
void cube_p9_owners_free(struct p9_conn *c);
void cube_p9_owner_put_locked(struct p9_conn *c, uint64_t id); /* one use less */

/* ---- ops ---- */
void cube_p9_open(struct p9_call *c, int flags); /* c->fid */
void cube_p9_open_go(struct p9_call *c);         /* the same with c->flags, once the fid is begun */
void cube_p9_open_done(struct p9_call *c, int code, enum p9_state state);
/* The fid goes on to what was made in its directory: a counted node, taken over. */
int cube_p9_create_move(struct p9_call *c, uint64_t id, const struct stat *st);
void cube_p9_getattr(struct p9_call *c, void (*got)(struct p9_call *, int, const struct stat *));
void cube_p9_setattr(struct p9_call *c);           /* c->set of c->st; then c->after, or the reply */
void cube_p9_create(struct p9_call *c, int flags); /* m.name in c->fid */
void cube_p9_rename(struct p9_call *c);            /* c->name in c->place becomes c->new_name in c->to */
void cube_p9_old_readdir(struct p9_call *c);
bool cube_p9_spared(
	struct p9_call *c); /* the directory c->node looks empty to this client, which removes it */
void cube_p9_uses(struct p9_call *c, uint64_t node);
struct cube_files_cred cube_p9_cred(const struct p9_call *c);

#define P9_OP(name) void cube_p9_op_##name(struct p9_call *c)
P9_OP(version);
P9_OP(auth);
P9_OP(attach);
P9_OP(walk);
P9_OP(clunk);
P9_OP(remove);
P9_OP(lopen);
P9_OP(lcreate);
P9_OP(read);
P9_OP(write);
P9_OP(fsync);
P9_OP(readdir);
P9_OP(getattr);
P9_OP(setattr);
P9_OP(statfs);
P9_OP(readlink);
P9_OP(xattrwalk);
P9_OP(xattrcreate);
P9_OP(mkdir);
P9_OP(symlink);
P9_OP(mknod);
P9_OP(link);
P9_OP(rename);
P9_OP(renameat);
P9_OP(unlinkat);
P9_OP(lock);
P9_OP(getlock);
P9_OP(open);
P9_OP(create);
P9_OP(stat);
P9_OP(wstat);

#endif
