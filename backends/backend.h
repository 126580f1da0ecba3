/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between cubefs and what runs the sandboxes: the one header a backend author reads.
 *
 * Three shapes fit it. A *local* backend makes a directory on this machine with cube-init inside: it
 * offers native files and a link over a unix socket that passes descriptors. An *engine* (Docker,
 * LXD, libvirt) is behind an API; cube-init inside is reached over whatever byte stream the engine
 * has, and files come natively where the root is reachable from here, else through the agent. A
 * *service* has an exec and a file API of its own and implements the link (backends/link.h) and the
 * file operations directly.
 *
 * A backend is a constant table and an instance that embeds `struct cube_backend`. Only backend.c
 * calls through the table: it checks the capability, traces, validates what comes back (ids become
 * directory entries) and turns a missing operation into -EOPNOTSUPP with the reason. What holds for
 * all operations unless their comment says otherwise:
 *
 *   threads     called on a pool thread, with no lock of ours held, and may block; as many at once
 *               as `par` allows, which the wrappers keep by queueing works, not by a lock
 *   cancelling  @cancel may be NULL; once it fires the operation returns -EINTR soon, and has either
 *               had no effect or is finished
 *   repeating   each operation is safe to repeat: what is there already is success. create is told by
 *               spec->uid, which it marks at the backend, so that a lost answer finds the same sandbox
 *   ownership   arguments are borrowed for the call; ret_ outputs are the caller's (cube_free), and
 *               written only on success
 *   errors      errno as in interface.md's table and one sentence: EHOSTUNREACH not reachable, EACCES
 *               credentials, EREMOTEIO it answered with an error, ETIMEDOUT, EOPNOTSUPP, EDQUOT, ENOSPC,
 *               ENOENT no such sandbox or template, EINTR. In the table's operations @err is never NULL
 */
#ifndef CUBEFS_BACKENDS_BACKEND_H
#define CUBEFS_BACKENDS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/buf.h"
#include "backends/base/cancel.h"
#include "backends/base/err.h"
#include "backends/base/loop.h"
#include "backends/link.h"

#define CUBE_BACKEND_ABI 1
#define CUBE_ID_MAX      64 /* bytes of a sandbox's id at its backend, without NUL: of [A-Za-z0-9._:-] */

/* What an instance can do. Found out in open (and again by status), never by trying. */
enum cube_cap {
	CUBE_CAP_EXEC = 1u << 0,      /* link */
	CUBE_CAP_FILES = 1u << 1,     /* native files: root */
	CUBE_CAP_PAUSE = 1u << 2,     /* pause, resume; memory stays */
	CUBE_CAP_STOP = 1u << 3,      /* stop, start; files stay */
	CUBE_CAP_TTY = 1u << 4,       /* terminals for jobs */
	CUBE_CAP_TEMPLATES = 1u << 5, /* template_list, template_import, template_remove, template_config */
	CUBE_CAP_NET_OPEN = 1u << 6,  /* net=open */
	CUBE_CAP_CPUS = 1u << 7,      /* limits it can keep */
	CUBE_CAP_MEMORY = 1u << 8,
	CUBE_CAP_PIDS = 1u << 9,
	CUBE_CAP_DISK = 1u << 10,
	CUBE_CAP_USAGE = 1u << 11,   /* usage */
	CUBE_CAP_PERSIST = 1u << 12, /* sandboxes outlive the daemon */
	CUBE_CAP_USERS = 1u << 13,   /* jobs as another user than the first */
	CUBE_CAP_RENAME = 1u << 14,  /* rename: the host name inside */
	CUBE_CAP_PORTS = 1u << 15,   /* dial, listening */
	CUBE_CAP_VOLUMES = 1u << 16, /* volumes that outlive sandboxes: volume_*, spec.volumes */
	CUBE_CAP_BIND = 1u << 17,    /* directories of this machine in a sandbox: bind, unbind */
	CUBE_CAP_BUILD = 1u << 18,   /* template_commit, template_derive */
	CUBE_CAP_ADOPT = 1u << 19,   /* adopt, let_go */
	CUBE_CAP_ACCESS = 1u << 20,  /* access */
	/* Of create alone: what a sandbox is made with. */
	CUBE_CAP_ACCOUNTS = 1u << 21,   /* spec.user */
	CUBE_CAP_HOSTS = 1u << 22,      /* spec.hosts */
	CUBE_CAP_PRIVILEGED = 1u << 23, /* spec.privileged */
	CUBE_CAP_GPU = 1u << 24,        /* spec.gpu */
	CUBE_CAP_KVM = 1u << 25,        /* /dev/kvm inside */
	/* Other states of a sandbox's files. */
	CUBE_CAP_CHECKPOINTS = 1u << 26, /* checkpoint_*, restore, spec.from */
	CUBE_CAP_RESET = 1u << 27,       /* reset: the template's files again, /workspace kept */
	CUBE_CAP_CHANGES = 1u << 28,     /* changes: what differs from another state */
	CUBE_CAP_KEEP = 1u << 29,        /* template_keep: a template of a checkpoint */
	/* memory=yes of checkpoints and forks. There is no operation for it: a kind that names it has in `missing` why
	 * this machine cannot. */
	CUBE_CAP_CHECKPOINT_MEMORY = 1u << 30,
};
#define CUBE_CAP_COUNT 31
/* "exec", "files", ... of bit number @n; NULL beyond. */
const char *cube_cap_name(unsigned n);

/* How much concurrency the implementation stands; the wrappers keep it. */
enum cube_par {
	CUBE_PAR_NONE,     /* one call at a time */
	CUBE_PAR_PER_CUBE, /* one call at a time for each sandbox */
	CUBE_PAR_FULL,
};

enum cube_net { CUBE_NET_NONE, CUBE_NET_OPEN };

struct cube_pair {
	const char *key, *value;
};

/* Limits: 0 is "the backend's default" (cube_backend.defaults). Explicit ones that it cannot keep are refused before the
 * call (capability) with -EOPNOTSUPP. */
struct cube_limits {
	uint64_t memory; /* bytes */
	uint64_t disk;   /* bytes */
	uint32_t pids;
	uint32_t cpus_milli; /* thousandths of a CPU */
};

/* A volume in a sandbox. Several sandboxes may have the same one, running or not. */
struct cube_spec_volume {
	const char *volume; /* its uid; it is there (volume_make) */
	const char *name;   /* what people call it; may be NULL */
	const char *path;   /* absolute inside, normal (cube_name_inside_ok); made where it is missing. On
			       "/workspace" it takes the place of the sandbox's own */
	bool read_only;     /* kept inside, by whatever root there can do, and in `root` */
};

struct cube_spec {
	const char *uid;      /* ours, unique for ever, [0-9a-f]{16}; marked at the backend */
	const char *name;     /* at the time of creation, for people; may be the host name inside */
	const char *template; /* NULL: the backend's default */
	const char
		*from; /* CUBE_CAP_CHECKPOINTS: id of the checkpoint whose files and template it gets, with a
				 name of its own in them; NULL: none */
	struct cube_limits limits;
	enum cube_net net;
	bool privileged;
	const struct cube_pair *env; /* of every process */
	size_t n_env;
	const struct cube_pair *labels; /* marked at the backend where it has such */
	size_t n_labels;
	const struct cube_pair *extra; /* keys of this backend (ops->keys); others were refused before */
	size_t n_extra;
	const char *user;  /* an account to be there, made with a home if it is missing, and the owner of
			      /workspace; NULL: none */
	uint32_t user_uid; /* its number; 0: any. One that is there with another: -EINVAL */
	bool gpu;
	const struct cube_pair *hosts; /* name and address, for /etc/hosts */
	size_t n_hosts;
	const struct cube_spec_volume *volumes; /* CUBE_CAP_VOLUMES; no two at one path */
	size_t n_volumes;
};

enum cube_state { /* of a sandbox, as the backend sees it */
		  CUBE_IS_GONE,
		  CUBE_IS_RUNNING,
		  CUBE_IS_PAUSED,
		  CUBE_IS_STOPPED,
};

struct cube_info {
	char id[CUBE_ID_MAX + 1];
	char uid[CUBE_ID_MAX + 1]; /* the mark; empty: not made by cubefs */
	enum cube_state state;
	char reason[64]; /* why it does not run: "exited", "oom", "stopped", "lost", ...; may be empty */
	/* What a daemon that does not know it can be told; empty or 0: not known. */
	char name[CUBE_ID_MAX + 1];
	char template[CUBE_ID_MAX + 1];
	uint64_t created_wall;
	struct cube_limits limits; /* in force */
	enum cube_net net;
	const char *labels; /* list alone, for the time of the call: NAME=VALUE lines; NULL: none */
};

/* What becomes of a sandbox at the end of its life. */
enum cube_expiry { CUBE_EXPIRY_DESTROY, CUBE_EXPIRY_STOP, CUBE_EXPIRY_PAUSE };

struct cube_usage { /* UINT64_MAX: not known */
	uint64_t pids, cpu_ns, memory, disk;
	uint64_t oom_kills;
	uint64_t net_in, net_out; /* bytes, without its loopback device */
};

/* What can be connected to in a sandbox. */
enum cube_target_kind {
	CUBE_TARGET_TCP,      /* a port of its loopback device, IPv4 before IPv6 */
	CUBE_TARGET_UNIX,     /* a socket in its files */
	CUBE_TARGET_ABSTRACT, /* one of Linux's abstract sockets */
};
#define CUBE_TARGET_PATH 107 /* bytes of a socket's name that the kernel takes */
struct cube_target {
	enum cube_target_kind kind;
	uint16_t port;                   /* TCP */
	char path[CUBE_TARGET_PATH + 1]; /* unix: absolute, as seen inside; abstract: its name */
};
#define CUBE_LISTENERS_MAX 1024
struct cube_listener {
	struct cube_target target;
	char address[64]; /* TCP: the one it listens at; else empty */
	char program[64]; /* its name, which it chose itself; may be empty */
};

/* A sandbox's file systems on this machine. Directory descriptors, the caller's to close. What is
 * mounted at a path in `mounts` is reached by its own descriptor, never by walking into it. */
#define CUBE_MOUNTS_MAX 16
struct cube_root {
	int fd; /* its root directory */
	bool read_only;
	bool shared; /* others than this sandbox change it too, or start what does */
	unsigned n_mounts;
	struct {
		char path[256]; /* absolute inside, no link in it: "/workspace" */
		int fd;
		bool read_only;
		bool shared; /* a volume or a bind: others than this sandbox change it too */
	} mounts[CUBE_MOUNTS_MAX];
	uint64_t generation; /* changes when the tree behind was replaced: old handles are stale */
	uint32_t uid_base;   /* what the kernel shows as uid_base + n is n inside ... */
	uint32_t id_count; /* ... for n below this; other ids are shown as 65534. Base 0 with UINT32_MAX: the
			      ids are the sandbox's own, nothing is translated */
	uint32_t gid_base;
	bool swap_owner; /* an ordinary user's: "that user's ids and the sandbox's root stand for each other"
			  */
};

/* What a template looks like. A name that begins with '~' (cube_name_layer_ok) is a layer: a step of a build,
 * which only other templates are made of. */
struct cube_template {
	char name[CUBE_ID_MAX + 1];
	char state[16]; /* "ready", "importing", "error" */
	char source[256];
	char fingerprint[72];
	uint64_t size;    /* bytes; UINT64_MAX not known */
	char reason[200]; /* runs no: why */
};

/* What a template says of the programs in it, as images do. The environment is that of every sandbox made
 * of it; the rest is shown and else left to who builds further on it. */
struct cube_template_config {
	struct cube_buf env;        /* NUL-separated NAME=VALUE, each name once */
	struct cube_buf entrypoint; /* NUL-separated words */
	char workdir[256];          /* absolute; "": not said */
	char user[72];              /* NAME, UID or UID:GID; "": not said */
};
#define CUBE_TEMPLATE_TEXT ((size_t)64 << 10) /* bytes of env, of entrypoint */
void cube_template_config_init(struct cube_template_config *c);
void cube_template_config_done(struct cube_template_config *c);
/* 0 or -ENOMEM; @to is empty. */
int cube_template_config_copy(struct cube_template_config *to, const struct cube_template_config *from);

/* What is to become a template. */
struct cube_template_order {
	const char *name;
	const char *source; /* as written in the verb: a path, a URL, image:REFERENCE, id:PROVIDER-ID */
	int fd;             /* open where it is a path of this machine, with the writer's rights; else -1 */
	const char *
		sha256; /* the checksum that the file has, 64 lower case hexadecimal digits; NULL: not said */
	const char *os; /* NULL: not said */
	bool uefi, tpm, specialized; /* what a machine made of it needs */
	/* Opens what lies below the directory @fd with the writer's rights, as openat2 does with @resolve: a
	 * descriptor, or -errno. Everything of the source is opened so; NULL: our own rights are the writer's. */
	int (*open)(void *ctx, int dir, const char *path, int flags, uint64_t resolve);
	/* Progress; both required. Called on the thread of the call. */
	void (*log)(void *ctx, const char *line);
	void (*progress)(void *ctx, unsigned percent); /* of all, where it is known */
	void *ctx;
};

/* What a checkpoint is to hold. */
struct cube_take {
	const char *cp; /* its id */
	bool files; /* the sandbox's own: root and /workspace. Without them only volume_copy takes of it */
	const char *const *volumes; /* uids of volumes that it has */
	unsigned n_volumes;
};

struct cube_volume {
	char uid[CUBE_ID_MAX + 1];
	uint64_t size; /* bytes that it takes; UINT64_MAX: not known (yet) */
};

/* One state of a sandbox's files, kept. */
struct cube_checkpoint {
	char id[CUBE_ID_MAX + 1];
	char of[CUBE_ID_MAX + 1]; /* id of the sandbox; it may be gone */
	uint64_t size;            /* bytes of its own; UINT64_MAX: not known */
	char reason[160];         /* why it cannot be used; "": it can */
};

/* A question for changes. */
struct cube_changes {
	const char *id; /* a sandbox as it is; or */
	const char *cp; /* a checkpoint */
	const char *
		base; /* the checkpoint it is compared with. NULL, or one that is gone: a sandbox with what it was
			     restored to last, else the template; a checkpoint with its template */
	/* 'A' it is new, 'D' it was there (what was in a directory is not told), 'M' content, owner or mode differ, 'T'
	 * it is of another type; @path is absolute inside, any bytes. In no order but that of names in each
	 * directory. */
	void (*each)(void *ctx, char kind, const char *path);
	void *ctx;
};

struct cube_status {
	bool reachable;
	char version[128];
	char fingerprint[72];
	uint64_t latency_us;
	uint32_t caps;
	char missing[CUBE_CAP_COUNT][160]; /* why a capability of the kind is missing here */
	char store[200]; /* how files and checkpoints are kept, one line; empty: not known */
};

/* A directory of this machine that is to be seen inside. */
struct cube_bind {
	const char *path; /* inside */
	int fd;
	bool read_only;
	uint32_t owner_uid, owner_gid; /* who asked for it: as this process sees ids */
};

/* What a backend tells of its sandboxes by itself. Called on the thread of `watch`, no lock held; all are required. */
struct cube_news {
	/* From here on it is told: what was before is to be asked for. Comes again after each interruption. */
	void (*begun)(void *ctx);
	/* @id is in @state now, by whosever hand, ours too; nobody here may know it. A hint: `inspect` is what counts. */
	void (*changed)(void *ctx, const char *id, enum cube_state state);
	/* Something in it was ended by its memory limit, and it may run on. */
	void (*oom)(void *ctx, const char *id);
	void *ctx;
};

struct cube_conf_section; /* base/conf.h: the backend's section of the configuration; may be NULL */

struct cube_backend_env {      /* what the daemon gives each instance; valid as long as the instance */
	const char *name;      /* of the instance: [backend NAME] */
	const char *state_dir; /* absolute, exists, 0700: the instance's own, below STATE */
	struct cube_loop *loop;
	const struct cube_conf_section *conf;
	bool look_only; /* for status and doctor alone: nothing that is large or slow is made */
};

struct cube_backend;

struct cube_backend_ops {
	uint32_t abi;
	const char *kind;    /* "local" */
	const char *summary; /* for people, one line */
	uint32_t caps;       /* what the kind can ever do */
	enum cube_par par;
	const char *const *keys; /* NULL ended: its own keys of a create line; may be NULL */
	/* What it makes lies beside our state, on the same disk, and runs no longer than this machine does: where
	 * the machine fails both are found as they were at one moment. Of a creation by any other backend the
	 * intention is on the medium first. */
	bool beside_state;
	/* checkpoint_list tells those of this state directory alone, wherever they lie: what nobody here knows is a
	 * creation that was cut off, and is removed. So it is with beside_state. */
	bool own_checkpoints;
	/* What `root` gave ends when a sandbox stops and when it starts: another mount shows the same files then, and
	 * what is held open of the old one is stale. Asked for anew after both. */
	bool root_by_run;

	/* Optional. Called by the supervisor while the process is single-threaded, before any instance is
	 * opened: enter the namespaces that the kind needs, make what must outlive a worker (descriptors
	 * are inherited; what is needed later is kept in static state of the kind). Must be idempotent. */
	int (*prepare)(const char *state_dir, const struct cube_conf_section *conf, struct cube_err *err);
	/* Optional, goes with prepare, before which it is called in a program that took the place of one (exec) in which
	 * prepare ran: the namespaces are entered, all else has to be made anew. @user: by an ordinary user. */
	void (*entered)(bool user);

	/* Required. Reads the configuration, finds out capabilities, reports problems; starts no thread. A
	 * backend that cannot work at all here still opens, with caps 0 and the reasons in its status. */
	int (*open)(const struct cube_backend_env *env, struct cube_backend **ret, struct cube_err *err);
	/* Required. No call is under way and no link is open. Called on the loop's thread or while the loop
	 * does not run, before the loop is freed. Sandboxes stay as they are. */
	void (*close)(struct cube_backend *b);
	/* Required. Asks the backend. */
	int (*status)(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
		      struct cube_err *err);
	/* Optional; only for who runs `cubefs doctor`: one line each through @say: ok, what, what to do. */
	void (*doctor)(struct cube_backend *b,
		       void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx);

	/* Required. Makes it and starts it; the id is chosen here. On failure nothing is left at the backend.
	 */
	int (*create)(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		      char **ret_id, struct cube_err *err);
	/* Required. Ends it with everything that belongs to it, whatever its state; gone already is success.
	 */
	int (*destroy)(struct cube_backend *b, const char *id, struct cube_err *err);
	/* Required. -ENOENT: no such sandbox. */
	int (*inspect)(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
	/* Required. Calls @each for every sandbox that is there, made by cubefs or not. */
	int (*list)(struct cube_backend *b, struct cube_cancel *cancel,
		    void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);

	/* Optional: backends where others may do something to a sandbox, too. Tells @news until @cancel fires (-EINTR) or
	 * it cannot go on, and may have a thread of the pool for as long: one for all sandboxes. Called again after a
	 * while, whatever it returned. */
	int (*watch)(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
		     struct cube_err *err);

	/* CUBE_CAP_ADOPT. adopt: make one that is there, and that nobody here has, ours under the mark @uid: from
	 * then on all operations work on it as on one that create made. What it has and runs stays. -ENOENT; -EBUSY
	 * somebody has it. let_go undoes that: it goes on without us; gone already is success. */
	int (*adopt)(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
		     struct cube_err *err);
	int (*let_go)(struct cube_backend *b, const char *id, struct cube_err *err);

	/* CUBE_CAP_STOP. stop: TERM to what runs, KILL after @grace_s. start: again, same files, new
	 * processes. */
	int (*start)(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
	int (*stop)(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		    struct cube_err *err);

	/* CUBE_CAP_PAUSE */
	int (*pause)(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
	int (*resume)(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		      struct cube_err *err);

	/* CUBE_CAP_CPUS, _MEMORY, _PIDS, _DISK: change limits of a running or stopped one; 0 leaves one as it is. */
	int (*limit)(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		     struct cube_err *err);

	/* CUBE_CAP_RENAME. The host name inside becomes @name (a sandbox's name), at once and for what starts
	 * later. What already runs may have read the old one. Must be quick: it is what a pool's sandbox waits
	 * for when it is taken. */
	int (*rename)(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);

	/* Optional: services that end by a clock of their own what nobody renews. When its life ends (wall clock, ns;
	 * 0: it does not) and what becomes of it then. Told when it begins to run and at every change; @wall_ns may be
	 * further away than the service allows: then it keeps it alive until then. The daemon ends it as well, if it is
	 * there, so what has ended already is success there (stop, pause, destroy). */
	int (*expire)(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
		      struct cube_err *err);

	/* CUBE_CAP_EXEC. A new link to a running sandbox (else -EHOSTDOWN); may block until its agent answers
	 * or
	 * @cancel fires. An earlier link to the same sandbox may go `down` for it.
	 * Handler calls begin when the caller calls nothing more than this: `up` is the first. */
	int (*link)(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
		    void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);

	/* CUBE_CAP_FILES. Works in every state that has files. */
	int (*root)(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err);

	/* CUBE_CAP_USAGE. Must be cheap: no walk over files on the caller's time. */
	int (*usage)(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
	/* Optional: sandboxes whose files are on this machine's disk. How many bytes what runs in it has written to
	 * files, of which only the growth matters: asked when the disk is short, to find out who fills it. */
	int (*written)(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err);

	/* CUBE_CAP_PORTS, of a running or paused sandbox (else -EHOSTDOWN). dial: a non-blocking stream socket
	 * that is connected or about to be (writable tells, SO_ERROR how it ended); never waits for who listens.
	 * -ECONNREFUSED nobody does; -EAGAIN too many wait there already. What the inside has put in the way of
	 * @target leads nowhere but inside. listening: what listens inside, in any order, at most
	 * CUBE_LISTENERS_MAX. */
	int (*dial)(struct cube_backend *b, const char *id, const struct cube_target *target,
		    struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);
	int (*listening)(struct cube_backend *b, const char *id,
			 void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			 struct cube_err *err);

	/* CUBE_CAP_ACCESS. How other tools reach it, by lines of words without a newline: "agent KIND URL", "ssh
	 * USER@HOST:PORT key FILE", "vnc URL", "container ID", "os NAME" (interface-more). Shown to the user who
	 * mounted alone, so passwords are part of a line. What is so only while it runs is left out when it does
	 * not. */
	int (*access)(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
		      void *ctx, struct cube_err *err);

	/* CUBE_CAP_TEMPLATES. All of them, layers too. */
	int (*template_list)(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
			     void *ctx, struct cube_err *err);
	/* Could it be imported? Looks at the order alone: blocks not, changes nothing. -EOPNOTSUPP what this
	 * backend takes not (a source, an os, a firmware); -EINVAL. */
	int (*template_check)(struct cube_backend *b, const struct cube_template_order *o,
			      struct cube_err *err);
	/* Whole or not at all, resumable, and nothing where the same content is there under that name already.
	 * Replaces another content, unless something is made of it (-EBUSY). */
	int (*template_import)(struct cube_backend *b, const struct cube_template_order *o,
			       struct cube_cancel *cancel, struct cube_err *err);
	/* -EBUSY: in use, by a sandbox or by a template that was built on it. */
	int (*template_remove)(struct cube_backend *b, const char *name, struct cube_err *err);
	/* Adds to *ret, which is empty. -ENOENT. */
	int (*template_config)(struct cube_backend *b, const char *name, struct cube_template_config *ret,
			       struct cube_err *err);

	/* CUBE_CAP_BUILD. The root file system of the stopped sandbox @id becomes the layer @name: what it was
	 * made of and what was changed since, without /workspace and what a creation writes to /etc. A layer of
	 * that name is there already: nothing. The sandbox may be used up by it and is destroyed next. */
	int (*template_commit)(struct cube_backend *b, const char *id, const char *name,
			       struct cube_cancel *cancel, struct cube_err *err);
	/* The template @t->name is made with the files of @base (a template or a layer), and with the source
	 * and fingerprint of @t and with @config, in one step. One of that name is replaced, unless something is
	 * made of it (-EBUSY); with the same fingerprint and base it is nothing. */
	int (*template_derive)(struct cube_backend *b, const char *base, const struct cube_template *t,
			       const struct cube_template_config *config, struct cube_err *err);

	/* CUBE_CAP_KEEP. The template @t->name is made of the checkpoint @cp: of its root without what a creation writes
	 * to /etc, and of its /workspace, which those made of it begin with; what it says of its programs is as the
	 * template of those files has it. Source and fingerprint are those of @t. Whole or not at all, and it needs
	 * neither the checkpoint nor the sandbox any more. One of that name is replaced, unless something is made of it
	 * (-EBUSY); with the same fingerprint it is nothing. -ENOENT: no such checkpoint. */
	int (*template_keep)(struct cube_backend *b, const char *cp, const struct cube_template *t,
			     struct cube_cancel *cancel, struct cube_err *err);

	/* CUBE_CAP_CHECKPOINTS. Checkpoints have ids that the caller chooses as it does a sandbox's uid, and belong to
	 * nobody: destroy leaves them, and any of them can be removed while the others stay whole. */
	/* Takes one of a sandbox in any state: all that runs inside sees it at one moment, and goes on afterwards
	 * whatever happens; what other sandboxes write to a volume meanwhile is in or out. *ret_still_ms: how long it
	 * stood still, at most. There already: success. */
	int (*checkpoint)(struct cube_backend *b, const char *id, const struct cube_take *take,
			  struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
	int (*checkpoint_list)(struct cube_backend *b,
			       void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
			       struct cube_err *err);
	int (*checkpoint_remove)(struct cube_backend *b, const char *cp,
				 struct cube_err *err); /* gone: success */
	/* And CUBE_CAP_FILES: its files, all mounts read only. -ENOENT. */
	int (*checkpoint_root)(struct cube_backend *b, const char *cp, struct cube_root *ret,
			       struct cube_err *err);
	/* The sandbox gets the files and the template of @cp, its own or another's; what ran in it ends, and where it
	 * ran it is started again. Refused or cancelled it has changed nothing. Volumes and binds stay as they are. */
	int (*restore)(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		       struct cube_err *err);
	/* CUBE_CAP_RESET. The same with its template's own files; /workspace stays. */
	int (*reset)(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		     struct cube_err *err);
	/* CUBE_CAP_CHANGES. @what->each is called on this thread. */
	int (*changes)(struct cube_backend *b, const struct cube_changes *what, struct cube_cancel *cancel,
		       struct cube_err *err);

	/* CUBE_CAP_VOLUMES. A volume is told by its uid, which is ours as a sandbox's is (16 hexadecimal
	 * digits); what people call it is a word that the backend may show, and that may change. make: an
	 * empty one that belongs to the root inside. remove: -EBUSY while a sandbox has it, whatever its state.
	 * list: each that is there; its size must be cheap. destroy of a sandbox never touches a volume. */
	int (*volume_make)(struct cube_backend *b, const char *uid, const char *name,
			   struct cube_cancel *cancel, struct cube_err *err);
	int (*volume_remove)(struct cube_backend *b, const char *uid, struct cube_err *err);
	int (*volume_list)(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			   void *ctx, struct cube_err *err);
	/* With CUBE_CAP_CHECKPOINTS as well; NULL: there is no such thing here. The new volume @to has what @from
	 * had when the checkpoint @cp was taken. There already: success. -ENOENT. */
	int (*volume_copy)(struct cube_backend *b, const char *cp, const char *from, const char *to,
			   struct cube_cancel *cancel, struct cube_err *err);
	/* With CUBE_CAP_FILES as well; else it is not called. Its files, as `root` gives those of a sandbox; no
	 * mounts. */
	int (*volume_root)(struct cube_backend *b, const char *uid, struct cube_root *ret,
			   struct cube_err *err);

	/* CUBE_CAP_BIND. The directory @fd of this machine (borrowed, O_PATH) at @path inside, as
	 * cube_spec_volume has it: at once where the sandbox runs or is paused, else with its next start; `root`
	 * shows it from the return on. nodev and nosuid, and nothing that is or is moved at @path inside leads
	 * it astray: a link in it is -ELOOP. What belongs to @owner outside belongs to root inside and the
	 * other way round; -EOPNOTSUPP where that cannot be had. At the same path again: another directory for a
	 * stopped one, nothing for one that has it. Binds are the daemon's to remember: after it was restarted
	 * it tells them again, before `start` and before `root`. -EBUSY: something else is at @path. */
	int (*bind)(struct cube_backend *b, const char *id, const struct cube_bind *bind,
		    struct cube_cancel *cancel, struct cube_err *err);
	/* Takes it away, open files or not. None there is success. */
	int (*unbind)(struct cube_backend *b, const char *id, const char *path, struct cube_err *err);
};

struct cube_backend {
	const struct cube_backend_ops *ops;
	const char *name;                  /* env->name */
	uint32_t caps;                     /* a subset of ops->caps; constant after open */
	enum cube_par par;                 /* ops->par or stricter */
	char missing[CUBE_CAP_COUNT][160]; /* for each bit of ops->caps that is not in caps: why */
	const char *kept_by
		[CUBE_CAP_COUNT];    /* of the capability of a limit: what keeps it; NULL: it does not say */
	char way[200];               /* how commands get in, and why so; "": nothing is said */
	struct cube_limits defaults; /* of a spec that names none; 0: no limit, or not known. After open */
	const char *template;        /* of a spec that names none; NULL: not known. Lives as long */
};

/* ---- What everyone else calls: the checked wrappers of backend.c ---- */

/* Refuses a table whose version, required pointers or capability bits do not fit (-EINVAL). */
int cube_backend_open(const struct cube_backend_ops *ops, const struct cube_backend_env *env,
		      struct cube_backend **ret, struct cube_err *err);
void cube_backend_close(struct cube_backend *b);

/* 0, or -EOPNOTSUPP with a sentence made of the capability's name and its reason. */
int cube_backend_need(const struct cube_backend *b, enum cube_cap cap, struct cube_err *err);

/* For backends: the labels of @spec as NAME=VALUE lines, as cube_info.labels has them. -ENOMEM, -EMSGSIZE. */
int cube_spec_labels(const struct cube_spec *spec, struct cube_buf *out);

/* For backends: the limits of a spec that names none, by the keys `memory`, `pids` and `cpus` of the section (may be
 * NULL), else half of this machine's memory, at most 2 GiB, and 1024 processes. -EINVAL. */
int cube_backend_conf_limits(const char *name, const struct cube_conf_section *conf, struct cube_limits *ret,
			     struct cube_err *err);

/* Can it be the id of a sandbox at a backend? */
bool cube_backend_id_ok(const char *id);

/* Checks limits, network mode and extra keys of a create line against the instance, before anything
 * is made: -EOPNOTSUPP or -EINVAL. */
int cube_backend_check_spec(const struct cube_backend *b, const struct cube_spec *spec, struct cube_err *err);

/* The key under which works on this backend and sandbox must be queued in the pool (pool.h), by `par`:
 * NULL for full concurrency, the instance, or @per_cube. */
const void *cube_backend_queue_key(const struct cube_backend *b, const void *per_cube);

int cube_backend_status(struct cube_backend *b, struct cube_cancel *cancel, struct cube_status *ret,
			struct cube_err *err);
int cube_backend_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
			char **ret_id, struct cube_err *err);
int cube_backend_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
int cube_backend_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int cube_backend_list(struct cube_backend *b, struct cube_cancel *cancel,
		      void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);
bool cube_backend_watches(const struct cube_backend *b); /* it tells by itself */
/* Never 0: it does not end by itself. */
int cube_backend_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_backend_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_backend_let_go(struct cube_backend *b, const char *id, struct cube_err *err);
int cube_backend_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_backend_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		      struct cube_err *err);
int cube_backend_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_backend_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
			struct cube_err *err);
int cube_backend_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		       struct cube_err *err);
/* @name is checked: -EINVAL. */
int cube_backend_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);
bool cube_backend_expires(const struct cube_backend *b); /* it wants to be told */
int cube_backend_expire(struct cube_backend *b, const char *id, uint64_t wall_ns, enum cube_expiry what,
			struct cube_err *err);
int cube_backend_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler,
		      void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);
int cube_backend_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err);
int cube_backend_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
int cube_backend_written(struct cube_backend *b, const char *id, uint64_t *ret, struct cube_err *err);
int cube_backend_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
		      struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);
int cube_backend_listening(struct cube_backend *b, const char *id,
			   void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
			   struct cube_err *err);
int cube_backend_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
			void *ctx, struct cube_err *err);
int cube_backend_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
			       void *ctx, struct cube_err *err);
/* May be called under the domain's lock. */
int cube_backend_template_check(struct cube_backend *b, const struct cube_template_order *o,
				struct cube_err *err);
int cube_backend_template_import(struct cube_backend *b, const struct cube_template_order *o,
				 struct cube_cancel *cancel, struct cube_err *err);
int cube_backend_template_remove(struct cube_backend *b, const char *name, struct cube_err *err);
int cube_backend_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
			    struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
/* -EOPNOTSUPP: this backend copies no volumes. */
int cube_backend_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
			     struct cube_cancel *cancel, struct cube_err *err);
int cube_backend_checkpoint_list(struct cube_backend *b,
				 void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
				 struct cube_err *err);
int cube_backend_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err);
int cube_backend_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
				 struct cube_err *err);
int cube_backend_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
			 struct cube_err *err);
int cube_backend_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel,
		       struct cube_err *err);
int cube_backend_changes(struct cube_backend *b, const struct cube_changes *what, struct cube_cancel *cancel,
			 struct cube_err *err);
int cube_backend_volume_make(struct cube_backend *b, const char *uid, const char *name,
			     struct cube_cancel *cancel, struct cube_err *err);
int cube_backend_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err);
int cube_backend_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
			     void *ctx, struct cube_err *err);
int cube_backend_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret,
			     struct cube_err *err);
int cube_backend_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
		      struct cube_cancel *cancel, struct cube_err *err);
int cube_backend_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err);
/* @ret is initialised, and empty after a failure; what the backend says is checked. */
int cube_backend_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
				 struct cube_err *err);
int cube_backend_template_commit(struct cube_backend *b, const char *id, const char *name,
				 struct cube_cancel *cancel, struct cube_err *err);
int cube_backend_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
				 const struct cube_template_config *config, struct cube_err *err);
int cube_backend_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
			       struct cube_cancel *cancel, struct cube_err *err);
void cube_root_close(struct cube_root *root); /* closes its descriptors, sets them to -1 */

#endif
