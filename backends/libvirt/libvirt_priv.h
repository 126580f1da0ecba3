/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the libvirt backend, for the files of this folder.
 *
 *   libvirt.c  the table, opening, status             conf.c     the section's keys
 *   ask.c      one question to libvirt                events.c   its event loop, and what becomes of machines
 *   probe.c    what the host is and can do            kvm.c      whether KVM is to be believed; doctor.c tells it
 *   box.c      a machine's names and directory        note.c     what is noted of it in its domain
 *   xml.c      a domain's description                 disk.c     its disks
 *   life.c     create to destroy, limit.c             look.c     inspect, list, usage, access
 *   layers.c   disks that stand still                 checkpoint.c, remake.c   other states of its disks
 *   port.c     what is asked of process 1 in it
 *   enter.c    cube-init in it, the link to it        template.c what machines are made of
 *
 * A sandbox is a persistent domain called cubefs-ID, where ID is its mark (spec.uid). All that is known of it is in the
 * domain, so that any later daemon finds it; its directory, cubes/ID below `dir`, has its disks, the socket of its agent
 * and its console. A domain that cubefs did not make has its UUID as its id. */
#ifndef CUBEFS_BACKENDS_LIBVIRT_LIBVIRT_PRIV_H
#define CUBEFS_BACKENDS_LIBVIRT_LIBVIRT_PRIV_H

#include <libvirt/libvirt.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/macros.h"

extern const struct cube_backend_ops cube_backend_libvirt;

#define LIBVIRT_NAME      "cubefs-" /* before the id: the domain's name */
#define LIBVIRT_REF       (sizeof(LIBVIRT_NAME) + CUBE_ID_MAX)
#define LIBVIRT_PORT      "org.cubefs.agent.0"   /* of cube-init, as the guest sees it */
#define LIBVIRT_ASKED     "org.cubefs.machine.0" /* of what is asked of process 1 (port.c) */
#define LIBVIRT_ROOT      "root"                 /* serial numbers of the disks; with ".qcow2" their files */
#define LIBVIRT_WORKSPACE "workspace"
#define LIBVIRT_SOCKET    "agent.sock"
#define LIBVIRT_ASKING    "machine.sock"
#define LIBVIRT_CONSOLE   "console.log"

enum libvirt_accel { LIBVIRT_ACCEL_AUTO, LIBVIRT_ACCEL_KVM, LIBVIRT_ACCEL_TCG };

/* What was found out when libvirt was asked first; constant after that. */
struct libvirt_host {
	bool known; /* it has answered */
	bool test;  /* libvirt's own driver for tests: nothing runs in its domains */
	bool local; /* it sees this machine's files */
	bool kvm;   /* it offers KVM, whatever that is worth */
	char version[96];
	char uuid[72]; /* of the host */
};

struct cube_libvirt {
	struct cube_backend base;
	struct cube_loop *loop;
	char uri[256];
	char template[CUBE_ID_MAX + 1];
	char dir[PATH_MAX / 2];       /* of what belongs to machines: QEMU's user reaches it */
	char templates[PATH_MAX / 2]; /* directory of templates */
	char state[PATH_MAX / 2];
	enum libvirt_accel accel;
	uint32_t timeout_s; /* for which an answer is awaited */
	uint32_t boot_s;    /* for which an agent is awaited */
	struct libvirt_host host;

	/* The connection is shared with threads that may be stuck in it (ask.c). */
	struct libvirt_conn *conn;
	pthread_mutex_t kvm_lock;
	int kvm; /* 0 not tried, 1 works, -1 does not; protected by kvm_lock */
	char kvm_why[120];
	struct libvirt_links *links; /* enter.c */
	pthread_mutex_t layers_lock; /* while what is under what changes */
};

static inline struct cube_libvirt *libvirt_of(struct cube_backend *b)
{
	return cube_container_of(b, struct cube_libvirt, base);
}

/* ---- conf.c ---- */

int libvirt_configure(struct cube_libvirt *v, const struct cube_conf_section *conf, const char *state,
		      struct cube_err *err);

/* ---- ask.c ---- */

/* What a question works on and what it answers; it belongs to the thread that asks. */
struct libvirt_answer {
	virConnectPtr conn;
	virDomainPtr dom; /* of ask.id; NULL where none was named */
	const char *text; /* ask.text */
	uint64_t n;       /* ask.n */
	void *ctx;        /* ask.ctx */
	char *got;        /* text, the caller's; of malloc, as libvirt gives it (cube_free) */
	uint64_t number[4];
};

/* One question. It is asked by a thread of its own, which nobody waits for after @cancel or the time-out: a hypervisor that
 * hangs keeps that thread and nothing else. */
struct libvirt_ask {
	/* On that thread: 0, or -1 after a function of libvirt has failed; then its error is looked at. */
	int (*fn)(struct libvirt_answer *a);
	const char *id;   /* of the sandbox whose domain it is about; NULL: none */
	const char *text; /* copied; may be NULL */
	uint64_t n;
	void *ctx; /* given away: released by ctx_done, when nobody needs it any more */
	void (*ctx_done)(void *ctx);
	const char *what;   /* for sentences: "start"; with the sandbox behind it */
	uint32_t timeout_s; /* 0: as configured */
};
/* 0 with *ret (may be NULL; then ret->got and ret->ctx are the caller's, conn and dom none of its business); -ENOENT there is no such
 * domain, and what the contract (backend.h) says. */
int libvirt_do(struct cube_libvirt *v, const struct libvirt_ask *ask, struct cube_cancel *cancel,
	       struct libvirt_answer *ret, struct cube_err *err);

struct libvirt_conn *libvirt_conn_new(const char *uri);
void libvirt_conn_unref(struct libvirt_conn *c); /* NULL is harmless */
/* A copy of libvirt's error of this thread, in our terms. */
int libvirt_fail(struct cube_err *err, const char *what);

/* ---- events.c ---- */

/* Libvirt's event loop, one for the process, on a thread of its own while anybody has it. */
int libvirt_events_hold(struct cube_err *err);
void libvirt_events_drop(void);
int libvirt_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
		  struct cube_err *err);

/* ---- probe.c, kvm.c ---- */

void libvirt_probe(struct cube_libvirt *v, uint32_t kind_caps);
int libvirt_ping(struct cube_libvirt *v, struct cube_cancel *cancel, uint64_t *ret_us, struct cube_err *err);
/* Should machines run with KVM? Tried once, within seconds, where the section does not say. */
bool libvirt_kvm(struct cube_libvirt *v, struct cube_cancel *cancel);
/* "KVM", or "TCG (why not KVM)". */
void libvirt_kvm_say(struct cube_libvirt *v, char *out, size_t size);

/* ---- box.c ---- */

/* The name of the domain of @id, or its UUID. -ENOENT: it can be nobody's. */
int libvirt_ref(const char *id, char out[LIBVIRT_REF], struct cube_err *err);
bool libvirt_is_ours(const char *id);
/* The id of a domain. */
void libvirt_id_of(virDomainPtr dom, char out[CUBE_ID_MAX + 1]);
/* Paths below its directory; @name may be "". -ENAMETOOLONG. */
int libvirt_box_path(const struct cube_libvirt *v, const char *id, const char *name, char out[PATH_MAX],
		     struct cube_err *err);
int libvirt_box_make(const struct cube_libvirt *v, const char *id, struct cube_err *err);
int libvirt_box_forget(const struct cube_libvirt *v, const char *id, struct cube_err *err);
enum cube_state libvirt_state_of(int state);
/* Its state and its reason. */
int libvirt_box_state(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel,
		      enum cube_state *ret, struct cube_err *err);

/* ---- template.c ---- */

struct libvirt_template {
	char name[CUBE_ID_MAX + 1];
	char disk[PATH_MAX], kernel[PATH_MAX], initrd[PATH_MAX]; /* "": it has none */
	char arch[16];
	char words[512]; /* of the kernel's command line, besides ours */
	bool uefi;
};
/* -ENOENT. */
int libvirt_template_find(const struct cube_libvirt *v, const char *name, struct libvirt_template *ret,
			  struct cube_err *err);

/* ---- note.c, xml.c ---- */

/* What is written into the domain. */
struct libvirt_note {
	char uid[CUBE_ID_MAX + 1];
	char name[CUBE_ID_MAX + 1];
	char template[CUBE_ID_MAX + 1];
	uint64_t created; /* wall clock, ns */
	enum cube_net net;
	uint64_t disk; /* bytes */
	char *labels;  /* NAME=VALUE lines; owned, may be NULL */
	uint64_t memory;
	uint32_t cpus;
	char agent[PATH_MAX];                     /* of a running one: the agent's socket on its host; "" */
	char asked[PATH_MAX];                     /* and that on which process 1 is asked */
	char root[PATH_MAX], workspace[PATH_MAX]; /* its disks; "" */
	char uuid[VIR_UUID_STRING_BUFLEN];
};
void libvirt_note_done(struct libvirt_note *n);
/* Of a domain's description. What others wrote there counts for what it is worth. */
int libvirt_note_read(const char *xml, struct libvirt_note *ret, struct cube_err *err);

struct libvirt_machine {
	const char *id;
	const struct libvirt_note *note;
	const struct libvirt_template *template;
	bool kvm, test;
	const char *root, *workspace; /* paths of its disks */
	const char *socket;           /* of the agent; NULL: where libvirt chooses */
	const char *asked;            /* of process 1, likewise */
	const char *console;
};
/* The description of its domain, the caller's. */
int libvirt_xml(const struct libvirt_machine *m, char **ret, struct cube_err *err);

/* ---- disk.c ---- */

/* A disk of @size bytes, over the file @base (qcow2) if it is not ""; that need not be looked at, and may be in use. */
int libvirt_disk_make(const char *path, const char *base, uint64_t size, struct cube_cancel *cancel,
		      struct cube_err *err);
/* How large the machine sees it. -errno; -EINVAL: it is no qcow2. */
int libvirt_disk_size(const char *path, uint64_t *ret);
/* The path of what is under the disk @file in @dir, as its header says; "": nothing. -errno, as before. */
int libvirt_disk_under(int dir, const char *file, char out[PATH_MAX]);

/* ---- enter.c ---- */

struct libvirt_links *libvirt_links_new(void);
void libvirt_links_free(struct libvirt_links *l);
/* The connection to its agent ends, whoever has it. */
void libvirt_links_end(struct cube_libvirt *v, const char *id);
/* Waits for the agent of a machine that was started. */
int libvirt_enter(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int libvirt_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
		 struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);

/* A stream socket connected to @path, for sandbox @id. */
int libvirt_connect(const char *id, const char *path, int *ret_fd, struct cube_err *err);

/* ---- port.c ---- */

/* Asks process 1 of a running machine by one line ("freeze") and takes its answer. -EOPNOTSUPP: it has no such port, or does
 * not answer there. */
int libvirt_port_ask(const struct libvirt_note *n, const char *id, const char *line,
		     struct cube_cancel *cancel, struct cube_err *err);
int libvirt_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);

/* ---- layers.c ----
 *
 * A layer is a disk that is not written to any more, layers/NAME.qcow2 below `dir`, under the disks of machines and under
 * other layers. What is to be under a disk stands beside it, in a file with `.under` behind its name; what is under it its
 * header says. A layer that either of them names is needed. */

#define LIBVIRT_LAYER 16 /* digits of its name */
struct libvirt_layer {
	char name[LIBVIRT_LAYER + 1]; /* "": none, what it is over is the template's disk, or nothing */
};
int libvirt_layer_path(const struct cube_libvirt *v, const struct libvirt_layer *l, char out[PATH_MAX],
		       struct cube_err *err);
/* What is to be under the disk @disk (LIBVIRT_ROOT, ...) of a machine. */
int libvirt_layer_under(const struct cube_libvirt *v, const char *id, const char *disk,
			struct libvirt_layer *ret, struct cube_err *err);
int libvirt_layer_set_under(const struct cube_libvirt *v, const char *id, const char *disk,
			    const struct libvirt_layer *l, struct cube_err *err);
/* A name that no other has. -errno. */
int libvirt_layer_new(struct libvirt_layer *ret);
/* The file @path, a disk of a machine, is the layer @l as well from now on; under it is @under. */
int libvirt_layer_of(const struct cube_libvirt *v, const char *path, const struct libvirt_layer *under,
		     const struct libvirt_layer *l, struct cube_err *err);
/* Layers that are under nothing any more go. */
void libvirt_layers_sweep(struct cube_libvirt *v);

/* ---- checkpoint.c, remake.c ---- */

struct libvirt_kept {
	char of[CUBE_ID_MAX + 1];
	char template[CUBE_ID_MAX + 1];
	struct libvirt_layer root, workspace;
	uint64_t size; /* of each disk, as a machine sees it */
};
/* -ENOENT. */
int libvirt_kept_read(const struct cube_libvirt *v, const char *cp, struct libvirt_kept *ret,
		      struct cube_err *err);
/* Calls @each for every one of them. */
int libvirt_kept_each(const struct cube_libvirt *v,
		      void (*each)(void *ctx, const char *cp, const struct libvirt_kept *k), void *ctx,
		      struct cube_err *err);
int libvirt_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
		       struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
int libvirt_checkpoint_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_checkpoint *c),
			    void *ctx, struct cube_err *err);
int libvirt_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err);
int libvirt_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
			    struct cube_err *err);
int libvirt_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		    struct cube_err *err);
int libvirt_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);

/* ---- life.c ---- */

/* Its description, read. */
int libvirt_box_note(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel,
		     struct libvirt_note *ret, struct cube_err *err);
struct libvirt_files {
	char root[PATH_MAX], workspace[PATH_MAX], console[PATH_MAX], socket[PATH_MAX], asked[PATH_MAX];
};
int libvirt_box_files(const struct cube_libvirt *v, const char *id, struct libvirt_files *f,
		      struct cube_err *err);
/* Describes its domain (again, if note->uuid is set) with the template and disks at the usual places. */
int libvirt_box_define(struct cube_libvirt *v, const struct libvirt_note *note,
		       const struct libvirt_template *t, struct cube_cancel *cancel, struct cube_err *err);
/* One of the small questions about a machine. */
int libvirt_box_cut(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, struct cube_err *err);

int libvirt_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		   char **ret_id, struct cube_err *err);
int libvirt_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
int libvirt_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int libvirt_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		 struct cube_err *err);
int libvirt_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int libvirt_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int libvirt_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		  struct cube_err *err);

/* ---- look.c ---- */

int libvirt_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int libvirt_list(struct cube_backend *b, struct cube_cancel *cancel,
		 void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);
int libvirt_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
int libvirt_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
		   void *ctx, struct cube_err *err);

/* ---- doctor.c ---- */

void libvirt_doctor(struct cube_backend *b,
		    void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx);

#endif
