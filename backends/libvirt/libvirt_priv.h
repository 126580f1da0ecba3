/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the libvirt backend, for the files of this folder.
 *
 *   libvirt.c  the table, opening, status             conf.c     the section's keys
 *   ask.c      one question to libvirt                events.c   its event loop, and what becomes of machines
 *   probe.c    what the host is and can do            kvm.c      whether KVM is to be believed; doctor.c tells it
 *   box.c      a machine's names and directory        note.c     what is noted of it in its domain
 *   xml.c      a domain's description                 disk.c     its disks
 *   life.c     create to destroy                      look.c     inspect, list, usage, access
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
#define LIBVIRT_PORT      "org.cubefs.agent.0" /* of cube-init, as the guest sees it */
#define LIBVIRT_ROOT      "root"               /* serial numbers of the disks; with ".qcow2" their files */
#define LIBVIRT_WORKSPACE "workspace"
#define LIBVIRT_SOCKET    "agent.sock"
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
	char agent[PATH_MAX]; /* of a running one: the agent's socket on its host; "" */
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
	const char *console;
};
/* The description of its domain, the caller's. */
int libvirt_xml(const struct libvirt_machine *m, char **ret, struct cube_err *err);

/* ---- disk.c ---- */

/* A disk of @size bytes, over the file @base (qcow2) if it is not "". */
int libvirt_disk_make(const char *path, const char *base, uint64_t size, struct cube_cancel *cancel,
		      struct cube_err *err);

/* ---- enter.c ---- */

struct libvirt_links *libvirt_links_new(void);
void libvirt_links_free(struct libvirt_links *l);
/* The connection to its agent ends, whoever has it. */
void libvirt_links_end(struct cube_libvirt *v, const char *id);
/* Waits for the agent of a machine that was started. */
int libvirt_enter(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int libvirt_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
		 struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);

/* ---- life.c ---- */

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
