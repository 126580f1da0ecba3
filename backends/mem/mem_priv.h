/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the `mem` backend share.
 *
 * A sandbox is a `mem_box`: a state, two real directories (root and workspace), sessions and processes. A
 * process is no process of this machine but a `mem_proc`: a text in a tiny language that the loop's
 * thread interprets a step at a time (proc.c, words.c).
 *
 * One lock, mem.lock, guards all of it. Operations and link methods take it, change the state and kick
 * the pump (mem.c); the pump runs on the loop's thread: it lets every process go on until it waits, then
 * tells the links what happened, each handler call with the lock given back. Functions declared here are
 * called with the lock held unless they say otherwise. */
#ifndef CUBEFS_BACKENDS_MEM_MEM_PRIV_H
#define CUBEFS_BACKENDS_MEM_MEM_PRIV_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/list.h"
#include "backends/base/map.h"
#include "backends/base/name.h"
#include "backends/link.h"

#define MEM_TEXT_MAX      (4u << 20) /* a command */
#define MEM_INPUT_WINDOW  65536      /* bytes of stdin that wait for the process */
#define MEM_PROCS_DEFAULT 4096       /* pids limit unless one is set */

struct mem {
	struct cube_backend base;
	const struct cube_backend_env *env;
	int dir;      /* env->state_dir */
	unsigned max; /* sandboxes; 0: no limit */
	pthread_mutex_t lock;
	struct cube_map *boxes;     /* id -> mem_box; holds a reference each */
	struct cube_list active;    /* mem_proc.active: not ended, of all sandboxes */
	struct cube_list ready;     /* mem_link.ready: something to tell */
	struct cube_list templates; /* mem_template.link */
	uint64_t boots;             /* counts starts; also makes generations */
	struct cube_timer *timer;   /* made by the pump */
	struct cube_post post;
	bool posted; /* post is with the loop */
	bool closed; /* the pump frees it */
};

/* ---- mem.c ---- */

extern const struct cube_backend_ops cube_backend_mem;

#define mem_of(b) cube_container_of((b), struct mem, base)

/* Have the pump run. Any thread. */
void mem_kick(struct mem *m);

/* ---- conf.c: the section of the configuration ---- */

const char *mem_conf_key(size_t n); /* in order; NULL at the end */
int mem_conf_check(const struct cube_backend_env *env, struct cube_err *err);
/* Sets base.caps and base.missing from `caps=`, and max from `max_sandboxes=`. No lock. */
int mem_conf_apply(struct mem *m, const struct cube_conf_section *conf, struct cube_err *err);
/* Puts the fault decorator round *b where `fail=`, `lose=` or `delay=` ask for one. No lock. */
int mem_conf_faults(struct cube_backend **b, const struct cube_conf_section *conf, struct cube_err *err);

/* ---- shell.c: what a shell remembers from one command to the next ---- */

struct mem_var {
	struct cube_list link;
	bool exported;
	char *name, *value;
};

struct mem_shell {
	struct cube_list vars;
	char *cwd;    /* absolute, normal */
	int status;   /* $? */
	bool changed; /* exports differ from what was told last */
};

void mem_shell_init(struct mem_shell *s);
void mem_shell_done(struct mem_shell *s);
int mem_shell_cd(struct mem_shell *s, const char *normal_path);                     /* -ENOMEM */
const char *mem_shell_get(const struct mem_shell *s, const char *name, size_t len); /* NULL: unset */
/* NULL @value keeps the one it has ("" for a new one); @exported is only ever switched on. */
int mem_shell_set(struct mem_shell *s, const char *name, size_t len, const char *value, bool exported);
void mem_shell_unset(struct mem_shell *s, const char *name);
/* NUL-separated NAME=VALUE, all exported; NAME alone unsets. */
int mem_shell_apply(struct mem_shell *s, const char *env, size_t len);
/* A fresh shell in the same directory: what is not exported is gone. */
void mem_shell_renew(struct mem_shell *s);
/* `export NAME='VALUE'` lines. */
int mem_shell_exports(const struct mem_shell *s, struct cube_buf *out);

/* ---- parse.c ---- */

struct mem_args {
	char **v; /* NULL ended, so that v[0] is there or the command is empty */
	unsigned n;
};

void mem_args_done(struct mem_args *a);
/* NUL-separated words; a last NUL may be left out. */
int mem_args_split(struct mem_args *a, const char *text, size_t len);
/* The next command of @text from *pos on, expanded by @shell. 1; 0 at the end; -EINVAL with the sentence
 * of a syntax error; -ENOMEM. */
int mem_parse(const char *text, size_t len, size_t *pos, const struct mem_shell *shell, struct mem_args *ret,
	      struct cube_err *err);

/* ---- box.c: sandboxes ---- */

struct mem_link;

struct mem_session {
	struct cube_list link;
	uint64_t number;
	struct mem_shell shell;
	uint32_t uid, gid;
	struct mem_proc *proc; /* the command it runs; NULL: none */
	bool fresh;            /* its shell ended */
};

struct mem_mount { /* mount.c */
	char path[CUBE_INSIDE_MAX + 1];
	int fd;
	bool read_only, bind;
	char volume[CUBE_ID_MAX + 1]; /* its uid; "": a bind */
};

struct mem_box {
	unsigned refs;
	struct mem *mem;
	char id[CUBE_ID_MAX + 1];
	char uid[CUBE_ID_MAX + 1];
	char template[CUBE_ID_MAX + 1];
	char hostname[CUBE_ID_MAX + 1];
	uint64_t created_wall;
	struct cube_buf labels; /* of its creation, NAME=VALUE lines */
	bool making;            /* its directories are being made */
	enum cube_state state;
	char reason[64];
	uint64_t boot, generation;
	struct cube_limits limits;
	int root, workspace;                      /* directory descriptors; -1 while it is made */
	struct mem_mount mounts[CUBE_MOUNTS_MAX]; /* volumes and binds */
	unsigned n_mounts;
	struct cube_list procs; /* mem_proc.all, ended ones until they are forgotten */
	struct cube_list sessions;
	unsigned n_active;
	struct mem_link *link; /* the connection; NULL: none */
	bool frozen;           /* by its link, from inside */
	uint64_t still_since;  /* mono ns since when it is paused or frozen; 0: it moves */
	uint64_t credit_ms;    /* of that, moved already: cube_link_paused counts it not again */
	int idle_fd;           /* eventfd of a stop that waits for n_active == 0; -1 */
	int next_pid;
	uint64_t cpu_ns, oom_kills;
	uint64_t written;   /* bytes in files, by its commands */
	uint64_t lingering; /* processes that ended commands left, as the word `linger` says */
	bool crashing;      /* the pump halts it */
};

struct mem_box *mem_box_ref(struct mem_box *b);
void mem_box_unref(struct mem_box *b);
/* Borrowed; NULL with -ENOENT in @err. */
struct mem_box *mem_box_find(struct mem *m, const char *id, struct cube_err *err);
/* It stands still: neither paused nor frozen nor stopped nothing moves in it. */
bool mem_box_still(const struct mem_box *b);
/* Before and after state or frozen change: keeps the times that processes wait for. */
void mem_box_settle(struct mem_box *b, bool was_still);
/* Every process and session ends, the connection breaks with @why. */
void mem_box_halt(struct mem_box *b, enum cube_state state, const char *reason, const char *why);
struct mem_session *mem_box_session(const struct mem_box *b, uint64_t number); /* NULL: none */
void mem_session_free(struct mem_session *s);
uint64_t mem_box_eaten(const struct mem_box *b); /* bytes that its processes hold */

int mem_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
	       char **ret_id, struct cube_err *err);
int mem_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
int mem_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int mem_list(struct cube_backend *b, struct cube_cancel *cancel,
	     void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);

/* ---- state.c: operations on one sandbox; they take the lock ---- */

int mem_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int mem_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
	     struct cube_err *err);
int mem_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int mem_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int mem_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits, struct cube_err *err);
int mem_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
	      struct cube_err *err);
int mem_let_go(struct cube_backend *b, const char *id, struct cube_err *err);
int mem_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);
int mem_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err);
void mem_root_owners(struct cube_root *root); /* ids as they are shown here */
int mem_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err);
int mem_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);

/* ---- ports.c; they take the lock ---- */

int mem_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
	     struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);
int mem_listening(struct cube_backend *b, const char *id,
		  void (*each)(void *ctx, const struct cube_listener *l), void *ctx, struct cube_err *err);

int mem_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line), void *ctx,
	       struct cube_err *err);

/* ---- tree.c: directories. No lock ---- */

/* What @template has, into the empty directory @root. */
int mem_tree_fill(struct mem *m, const char *template, int root, struct cube_cancel *cancel,
		  struct cube_err *err);
/* Opens both directories of a sandbox, if they are not: stopped ones keep no descriptors. */
int mem_tree_open_box(struct mem_box *b);
/* A name below the instance's directory: "ID/root". Makes both directories of a sandbox from @template, or from the
 * checkpoint @from. */
int mem_tree_make(struct mem *m, const char *id, const char *template, const char *from,
		  struct cube_cancel *cancel, int *ret_root, int *ret_workspace, struct cube_err *err);
/* @path seen from @cwd, absolute and without ".", ".." and doubled slashes; NULL: out of memory. */
char *mem_tree_normal(const char *cwd, const char *path);
/* The directory that @normal is below (borrowed), and the rest of the name ("." for the directory itself).
 * @read_only may be NULL. */
int mem_tree_split(const struct mem_box *b, const char *normal, const char **rest, bool *read_only);
/* openat2 of a normal path inside the sandbox; links cannot lead out. Descriptor or -errno. */
int mem_tree_open(const struct mem_box *b, const char *normal, int flags, unsigned mode);
int mem_tree_unlink(const struct mem_box *b, const char *normal);

/* ---- mount.c: volumes and binds ---- */

/* The mount that @normal is at or below; NULL: none. */
const struct mem_mount *mem_mount_of(const struct mem_box *b, const char *normal);
/* Those of a new sandbox; no lock, nobody else knows it yet. */
int mem_mounts_make(struct mem_box *b, const struct cube_spec *spec, struct cube_err *err);
void mem_mounts_close(struct mem_box *b);
/* Adds them to @root, which has /workspace as its first mount. */
int mem_mounts_root(const struct mem_box *b, struct cube_root *root);
int mem_volumes_load(struct mem *m, struct cube_err *err); /* at the start: there are none */
int mem_volume_make(struct cube_backend *b, const char *uid, const char *name, struct cube_cancel *cancel,
		    struct cube_err *err);
int mem_volume_open(struct mem *m, const char *uid); /* its directory; -1: none */
int mem_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
		    struct cube_cancel *cancel, struct cube_err *err);
int mem_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err);
int mem_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v), void *ctx,
		    struct cube_err *err);
int mem_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret, struct cube_err *err);
int mem_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind, struct cube_cancel *cancel,
	     struct cube_err *err);
int mem_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err);

/* ---- checkpoint.c. No lock ---- */

int mem_checkpoints_load(struct mem *m, struct cube_err *err);
/* Copies its files into two empty directories. */
int mem_checkpoint_fill(struct mem *m, const char *cp, int root, int workspace, struct cube_cancel *cancel,
			struct cube_err *err);
int mem_checkpoint_template(struct mem *m, const char *cp, char template[CUBE_ID_MAX + 1],
			    struct cube_err *err);
int mem_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
		   struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
int mem_checkpoint_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_checkpoint *c),
			void *ctx, struct cube_err *err);
int mem_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err);
int mem_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret, struct cube_err *err);
int mem_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		struct cube_err *err);
int mem_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);

/* ---- copy.c: trees. No lock ---- */

struct mem_copied {
	uint64_t files, bytes, hash; /* hash: of names, modes and contents */
	uint64_t skipped;            /* devices, sockets */
};

/* Copies what is in @from into @to, which is empty. */
int mem_copy_tree(int from, int to, struct cube_cancel *cancel, struct mem_copied *ret, struct cube_err *err);

/* ---- template.c ---- */

#define MEM_TEMPLATE_BASE "base" /* built in: the usual empty directories */

struct mem_template {
	struct cube_list link;
	struct cube_template t;
	struct cube_template_config config;
	bool busy; /* an import works on it */
};

struct mem_template *mem_template_find(struct mem *m, const char *name);
struct mem_template *mem_template_add(struct mem *m, const char *name);
int mem_template_unused(struct mem *m, const char *name, struct cube_err *err); /* -EBUSY */
int mem_template_load(struct mem *m, struct cube_err *err); /* what is on disk, at the start */
void mem_template_clear(struct mem *m);
int mem_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
		      void *ctx, struct cube_err *err);
int mem_template_check(struct cube_backend *b, const struct cube_template_order *o, struct cube_err *err);
int mem_template_import(struct cube_backend *b, const struct cube_template_order *o,
			struct cube_cancel *cancel, struct cube_err *err);
int mem_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
			struct cube_err *err);
int mem_template_commit(struct cube_backend *b, const char *id, const char *name, struct cube_cancel *cancel,
			struct cube_err *err);
int mem_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
			const struct cube_template_config *config, struct cube_err *err);
int mem_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
		      struct cube_cancel *cancel, struct cube_err *err);
/* The /workspace that it brings along; it may have none. */
int mem_template_fill_workspace(struct mem *m, const char *name, int to, struct cube_cancel *cancel,
				struct cube_err *err);
int mem_template_drop_workspace(struct mem *m, const char *name);
int mem_template_remove(struct cube_backend *b, const char *name, struct cube_err *err);

/* ---- out.c: the spool of a process ---- */

struct mem_out {
	int fd, order_fd; /* -1: none; order -1: merged */
	uint64_t total, err_total, limit, punched;
	int last; /* cube_spool_note's */
};

int mem_out_open(struct mem_out *o, const struct cube_link_start *s);
void mem_out_close(struct mem_out *o);
int mem_out_write(struct mem_out *o, bool to_stderr, const void *data, size_t len);

/* ---- proc.c: commands ---- */

struct mem_word;

struct mem_proc {
	struct cube_list all, active;
	struct mem_box *box;
	uint64_t job;
	int pid;
	uint64_t session_number;
	struct mem_session *session; /* NULL: a fresh process, or ended */
	struct mem_shell own;        /* of a fresh one */
	struct mem_shell *shell;     /* own, or the session's */
	uint32_t uid, gid;
	char *text;
	size_t len, pos;
	bool argv;                   /* args is all that there is, no text */
	bool any;                    /* it ran a command: the status is its own */
	const struct mem_word *word; /* what it is at; NULL: between commands */
	struct mem_args args;
	uint64_t progress;    /* the word's own */
	uint64_t wake_at;     /* mono ns; 0: no time is waited for */
	uint64_t deadline;    /* of its time-out; 0: none */
	uint64_t escalate_at; /* of an interrupt; 0: none */
	int escalate_sig;
	uint64_t pending, ignored; /* bits 1 << signal */
	bool suspended;            /* by SIGSTOP */
	struct cube_buf in;
	bool in_open;    /* eof has not come */
	uint64_t in_got; /* bytes that came */
	bool tty;
	uint16_t rows, cols;
	uint64_t eaten;
	struct mem_out out;
	bool ended;
	struct cube_end_record end;
	struct cube_err why; /* text empty: it was started */
};

/* What a word's function says of its command. */
enum mem_step {
	MEM_DONE,  /* finished; the shell's status is set */
	MEM_AGAIN, /* more to do at once */
	MEM_WAIT,  /* until input, time or a signal */
	MEM_OVER,  /* it ended the process (mem_proc_end was called) */
};

int mem_proc_start(struct mem_box *b, const struct cube_link_start *s, struct cube_err *err);
/* Goes on until it waits or its turn is over; true: it has more to do at once. */
bool mem_proc_run(struct mem_proc *p);
/* When it wants to run next, mono ns; UINT64_MAX: not by time. */
uint64_t mem_proc_when(const struct mem_proc *p);
void mem_proc_signal(struct mem_proc *p, int sig);
void mem_proc_interrupt(struct mem_proc *p);
void mem_proc_shift(struct mem_proc *p, uint64_t ns, bool deadline_only);
void mem_proc_end(struct mem_proc *p, enum cube_end how, int code, int sig);
void mem_proc_free(struct mem_proc *p);
struct mem_proc *mem_proc_find(const struct mem_box *b, uint64_t job); /* ended ones too */

/* Its output; a full disk loses it and nothing else. */
void mem_proc_print(struct mem_proc *p, bool to_stderr, const void *data, size_t len);
CUBE_PRINTF(3, 4) void mem_proc_printf(struct mem_proc *p, bool to_stderr, const char *fmt, ...);

/* ---- words.c: the table of words ---- */

struct mem_word {
	const char *name;
	unsigned min, max; /* arguments */
	const char *usage; /* of the arguments */
	enum mem_step (*run)(struct mem_proc *p);
};

const struct mem_word *mem_word_find(const char *name); /* NULL: no such word */
const struct mem_word *mem_word_at(size_t n);           /* in order; NULL at the end */

/* ---- user.c ---- */

/* "", NAME, UID or UID:GID; -ENOENT. */
int mem_user_parse(const char *user, uint32_t *ret_uid, uint32_t *ret_gid);

/* ---- signals.c ---- */

enum mem_action { MEM_SIG_END, MEM_SIG_NOTHING, MEM_SIG_STOP, MEM_SIG_CONTINUE };

enum mem_action mem_signal_action(int sig);
int mem_signal_number(const char *name); /* "TERM", "SIGTERM", "15"; 0: none */

/* ---- link.c, event.c ---- */

struct mem_link {
	struct cube_link base;
	struct mem *mem;
	struct mem_box *box;    /* NULL: broken */
	struct cube_list ready; /* mem.ready */
	struct cube_list events;
	const struct cube_link_handler *handler;
	void *ctx;
	bool broken; /* `down` follows what is queued; why says with what */
	bool told;   /* it was called */
	struct cube_err why;
	bool calling; /* a handler function runs: the pump frees it if it was closed */
	bool closed;
};

int mem_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
	     struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);
/* Breaks the connection of @b, if there is one: `down` follows what was queued before. */
void mem_link_break(struct mem_box *b, int code, const char *why);
void mem_link_free(struct mem_link *l);

/* Queue what happened for whoever is connected; no connection: nothing, a new one hears of it. */
void mem_tell_up(struct mem_box *b);
void mem_tell_synced(struct mem_box *b);
void mem_tell_started(struct mem_proc *p);
void mem_tell_output(struct mem_proc *p);
void mem_tell_input(struct mem_proc *p);
void mem_tell_session(struct mem_box *b, struct mem_session *s, bool exports);
void mem_tell_ended(struct mem_proc *p);
void mem_tell_left(struct mem_box *b);
void mem_events_drop(struct mem_link *l);
/* Delivers one event of the first ready link; gives the lock back for the call. false: none. */
bool mem_events_deliver(struct mem *m);

#endif
