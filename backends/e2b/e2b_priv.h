/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the e2b backend, for the files of this folder.
 *
 *   e2b.c     the table, opening, status        conf.c    the section's keys
 *   ask.c     one question to the service       box.c     what is known of a sandbox
 *   life.c    create to destroy                 look.c    inspect, list, usage, access
 *   lease.c   the service's own clock           watch.c   what became of sandboxes meanwhile
 *   envd.c    one question to a sandbox         frames.c  answers that come as a stream
 *   enter.c   cube-init in it, the link to it   tunnel.c  the stream between the two
 *
 * The service has two planes: its API makes sandboxes, and each sandbox has a daemon, envd, that starts processes and has
 * files. Commands do not run by envd itself: cube-init does it, as everywhere, and envd carries its stream (decision 19).
 *
 * A sandbox's id is its mark (spec.uid), which is in its metadata at the service; one that cubefs did not make has the
 * service's id. What is known of a sandbox is the service's; `boxes` spares questions, and anything in it may be old. */
#ifndef CUBEFS_BACKENDS_E2B_E2B_PRIV_H
#define CUBEFS_BACKENDS_E2B_E2B_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/http.h"
#include "backends/base/http_live.h"
#include "backends/base/json.h"
#include "backends/base/list.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

extern const struct cube_backend_ops cube_backend_e2b;

#define E2B_META          "cubefs." /* of all that we mark there */
#define E2B_META_UID      E2B_META "uid"
#define E2B_META_NAME     E2B_META "name"
#define E2B_META_TEMPLATE E2B_META "template"
#define E2B_META_NET      E2B_META "net"
#define E2B_META_LABEL    E2B_META "label." /* before the names of a create line's labels */

#define E2B_ENVD_PORT 49983
#define E2B_NS_PER_S  UINT64_C(1000000000)

struct cube_e2b {
	struct cube_backend base;
	struct cube_loop *loop;
	struct cube_http *http, *data; /* the API; sandboxes */
	struct cube_http_live *live;   /* sandboxes, on the loop */
	char url[256];                 /* of the API */
	char sandbox_url[256];         /* of every sandbox's envd; "": each has a host of its own */
	char domain[128];              /* of those hosts */
	char *key;                     /* the header that has it */
	char key_from[200];            /* the setting that the key came from, for sentences */
	char why[300];                 /* why there is no key; "" */
	char template[CUBE_ID_MAX + 1];
	uint32_t lease_s, poll_s;
	int state;             /* directory */
	struct cube_buf agent; /* cube-init, whole; empty: there is none */
	char agent_path[80];   /* where it is inside */
	char agent_why[160];

	pthread_mutex_t lock; /* for all below; nothing is called with it held */
	struct cube_map *boxes;
	bool old_create;           /* the service knows the first generation of that call alone */
	struct cube_map *doubtful; /* marks of creations whose answer was lost */
	struct cube_list tunnels;
};

static inline struct cube_e2b *e2b_of(struct cube_backend *b)
{
	return cube_container_of(b, struct cube_e2b, base);
}

/* ---- conf.c ---- */

/* Checks the section; sets what it says, http and data. A key that cannot be had leaves why. */
int e2b_configure(struct cube_e2b *e, const struct cube_conf_section *conf, struct cube_err *err);

/* ---- ask.c ---- */

struct e2b_ask {
	const char *method;
	const char *path;   /* with its query: "/v2/sandboxes?limit=100" */
	const json_t *body; /* NULL: none */
	const char *what;   /* for sentences: "pause sandbox 0123..." */
	bool repeat;        /* twice is as good as once: it is asked again when the answer is lost */
	uint32_t timeout_s; /* 0: as configured */
	json_t **ret;       /* the answer, a new reference; NULL: it is not looked at */
	long *ret_status;   /* of any answer; NULL */
	char *next; /* the cursor to the rest of a list, 256 bytes, "" at the end; NULL: not looked at */
};
#define E2B_CURSOR 256
/* 0; -ENOENT no such thing; -EBUSY in a state where that cannot be, or in the middle of another; -EDQUOT too many of
 * them, and waiting did not help; -EINVAL; -EACCES the key; and what cube_http_run says. */
int e2b_ask(struct cube_e2b *e, const struct e2b_ask *a, struct cube_cancel *cancel, struct cube_err *err);
/* Sleeps; -EINTR. */
int e2b_wait(uint64_t ms, struct cube_cancel *cancel, struct cube_err *err);

/* ---- box.c ---- */

struct e2b_box {
	char id[CUBE_ID_MAX + 1];  /* ours */
	char sid[CUBE_ID_MAX + 1]; /* the service's */
	char token[256];           /* for envd; "": it needs none */
	char domain[128];          /* of its host; "": the configured one */
	bool fresh;                /* nothing of ours is in it yet */
	/* How long it is to be kept alive: wall clock, UINT64_MAX for ever, 0 nobody said so; and when the service is told
	 * again (cube_clock_mono). */
	uint64_t until, renew_at;
};

bool e2b_is_ours(const char *id); /* a mark */
/* What an answer of the service says of a sandbox, noted; @id NULL: as its metadata has it. -EREMOTEIO: it is none. */
int e2b_box_note(struct cube_e2b *e, const char *id, const json_t *from, struct e2b_box *ret,
		 struct cube_err *err);
void e2b_box_forget(struct cube_e2b *e, const char *id);
void e2b_box_fresh(struct cube_e2b *e, const char *id, bool fresh);
void e2b_box_keep(struct cube_e2b *e, const char *id, uint64_t until, uint64_t renew_at);
/* What the service calls it, asking where that is not known. -ENOENT. */
int e2b_box_sid(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, char out[CUBE_ID_MAX + 1],
		struct cube_err *err);
/* As the service has it now: what it says (a new reference; may be NULL) and what we need of it (may be NULL). -ENOENT. */
int e2b_box_get(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, json_t **ret,
		struct e2b_box *ret_box, struct cube_err *err);
/* The same of what is known, if it is. */
int e2b_box_known(struct cube_e2b *e, const char *id, struct cube_cancel *cancel, struct e2b_box *ret,
		  struct cube_err *err);
/* Whether it was stopped here: the service calls that paused, too. Kept in our directory. */
int e2b_box_stopped_set(const struct cube_e2b *e, const char *id, bool on, struct cube_err *err);
bool e2b_box_stopped(const struct cube_e2b *e, const char *id);
/* Calls @path behind "/sandboxes/SID" with @body (may be NULL). */
int e2b_box_post(struct cube_e2b *e, const char *id, const char *path, const json_t *body, const char *verb,
		 struct cube_cancel *cancel, json_t **ret, struct cube_err *err);

/* ---- life.c ---- */

int e2b_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
	       char **ret_id, struct cube_err *err);
int e2b_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
/* The answer to the creation of @uid was lost: what comes of it is not wanted (@on), or it is settled. */
void e2b_doubt(struct cube_e2b *e, const char *uid, bool on);
bool e2b_doubts(struct cube_e2b *e, const char *uid);
int e2b_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int e2b_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
	     struct cube_err *err);
int e2b_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int e2b_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);

/* ---- look.c ---- */

/* False: no sandbox that can be told of. @info->labels is @labels' content. */
bool e2b_look_info(const struct cube_e2b *e, const json_t *from, struct cube_info *info,
		   struct cube_buf *labels);
/* All of them, page by page. */
int e2b_look_all(struct cube_e2b *e, const char *query, struct cube_cancel *cancel,
		 int (*each)(void *ctx, const json_t *one), void *ctx, struct cube_err *err);
int e2b_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int e2b_list(struct cube_backend *b, struct cube_cancel *cancel,
	     void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);
int e2b_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
int e2b_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line), void *ctx,
	       struct cube_err *err);

/* ---- lease.c ---- */

int e2b_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
	       struct cube_err *err);
/* It runs from now on, for as long as the service was told: the configured time. */
void e2b_lease_begin(struct cube_e2b *e, const char *id);
/* Puts off the end of those whose time has come for it. */
void e2b_lease_renew(struct cube_e2b *e, struct cube_cancel *cancel);

/* ---- watch.c ---- */

int e2b_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
	      struct cube_err *err);

/* ---- envd.c ---- */

/* Where a sandbox's envd is, and what every request to it says. */
struct e2b_door {
	char base[400];
	char lines[8][320];
	const char *headers[9]; /* to lines, NULL ended */
};
/* @type: of the body; NULL: none. */
int e2b_door(const struct cube_e2b *e, const struct e2b_box *box, const char *type, struct e2b_door *ret,
	     struct cube_err *err);
/* A call of one message both ways: "process.Process/List". @what: for sentences. -EHOSTDOWN it does not run; -ENOENT;
 * -EACCES. */
int e2b_envd(struct cube_e2b *e, const struct e2b_box *box, const char *method, const json_t *body,
	     const char *what, struct cube_cancel *cancel, json_t **ret, struct cube_err *err);
/* What an answer that is a failure says; 0 where it is none. */
int e2b_envd_refused(const struct e2b_box *box, const char *what, long status, const char *text, size_t len,
		     struct cube_err *err);
/* A whole new file of root's. */
int e2b_envd_put(struct cube_e2b *e, const struct e2b_box *box, const char *path, const void *data,
		 size_t len, struct cube_cancel *cancel, struct cube_err *err);

/* ---- frames.c ---- */

#define E2B_FRAME_MAX ((size_t)1 << 20)
struct e2b_frames {
	struct cube_buf rest; /* of a frame that is not whole */
	bool over;            /* the last one was there */
};
void e2b_frames_init(struct e2b_frames *f);
void e2b_frames_done(struct e2b_frames *f);
/* More of the stream: each message in it is told; a negative result of @each ends it and is returned. The end of the
 * stream, if it says that something failed, is -errno with a sentence; what is malformed -EREMOTEIO. */
int e2b_frames_feed(struct e2b_frames *f, const void *data, size_t len,
		    int (*each)(void *ctx, const json_t *message), void *ctx, struct cube_err *err);
/* The one frame of a request. */
int e2b_frame(const json_t *message, struct cube_buf *out);
/* The errno of a failure's name in that protocol. */
int e2b_frames_code(const char *name);

/* ---- enter.c ---- */

void e2b_agent_load(struct cube_e2b *e);
int e2b_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
	     struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);
/* TERM to all that runs; until it has ended, or for so long. */
void e2b_agent_end(struct cube_e2b *e, const struct e2b_box *box, uint32_t grace_s,
		   struct cube_cancel *cancel);

/* ---- tunnel.c ---- */

/* Joins @fd, a stream socket that it takes over, with the standard input and output of the process @pid of @box. An
 * earlier tunnel to that sandbox ends. Any thread. */
int e2b_tunnel_new(struct cube_e2b *e, const struct e2b_box *box, int pid, int fd, struct cube_err *err);
void e2b_tunnels_end(struct cube_e2b *e); /* on the loop's thread */

#endif
