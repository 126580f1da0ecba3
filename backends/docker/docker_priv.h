/* SPDX-License-Identifier: Apache-2.0 */
/* The instance of the docker backend, for the files of this folder.
 *
 *   docker.c   the table, opening, capabilities, status     conf.c    where the engine is, and the section's other keys
 *   ask.c      one question to the engine                   probe.c   what it is and can do; doctor.c tells it
 *   box.c      a sandbox's names and directory here         spec.c    from a create line to the engine's JSON
 *   life.c     create to destroy                            enter.c   cube-init: how it gets in, the link to it
 *   plant.c    the same at an engine that does not see this machine's files
 *   stream.c   streams of the engine: attached to what it runs
 *   look.c     inspect, list, usage, access                 template.c, import.c   images
 *   root.c     its files on this machine                    volume.c  volumes
 *   late.c     creations that nobody waits for any more
 *   events.c   what becomes of containers by others' hands  adopt.c   containers that others made
 *   checkpoint.c, remake.c, changes.c   other states of its files      settle.c  what was cut off is ended
 *   image.c    images that are made here                    build.c   templates of checkpoints and builds
 *   proc.c     its first process on this machine, ports
 *   bind.c     directories of this machine in it
 *   seed.c     its machine id, account, host name
 *   layers.c   where overlay2 keeps files                   copy.c    files from one place there to another
 *
 * A sandbox's id is its mark (spec.uid), and its container is called cubefs-ID, so that another container can take the
 * place of the one that it has. A container that cubefs did not make has the engine's id of 64 digits.
 *
 * What is known of a sandbox is the engine's: there is no table here. Its directory, cubes/ID below ours, has what only
 * this machine can have: `agent.sock`, on which cube-init listens, and `door`, which it sees (backends/agent/door.h). */
#ifndef CUBEFS_BACKENDS_DOCKER_DOCKER_PRIV_H
#define CUBEFS_BACKENDS_DOCKER_DOCKER_PRIV_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/base/http.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"
#include "backends/base/names.h"
#include "backends/docker/stream.h"

extern const struct cube_backend_ops cube_backend_docker;

#define DOCKER_MOUNTS (CUBE_MOUNTS_MAX - 2) /* volumes and binds: /workspace and /dev are shown as well */
#define DOCKER_EMPTY  "empty"               /* a directory here without anything in it */

#define DOCKER_LABEL            "cubefs." /* of everything that we mark there */
#define DOCKER_LABEL_UID        DOCKER_LABEL "uid"
#define DOCKER_LABEL_NAME       DOCKER_LABEL "name"
#define DOCKER_LABEL_IMAGE      DOCKER_LABEL "template"
#define DOCKER_LABEL_PRINT      DOCKER_LABEL "fingerprint"
#define DOCKER_LABEL_SOURCE     DOCKER_LABEL "source"
#define DOCKER_LABEL_CONFIG     DOCKER_LABEL "config" /* what a template says of its programs */
#define DOCKER_LABEL_HOME       DOCKER_LABEL "home" /* whose state directory: of images that are made here */
#define DOCKER_LABEL_CP         DOCKER_LABEL "checkpoint"
#define DOCKER_LABEL_OF         DOCKER_LABEL "of"   /* of a checkpoint: the sandbox */
#define DOCKER_LABEL_BASE       DOCKER_LABEL "base" /* of a sandbox: the checkpoint that it was restored to */
#define DOCKER_LABEL_GENERATION DOCKER_LABEL "generation"
#define DOCKER_LABEL_USER       DOCKER_LABEL "user"   /* of a sandbox: NAME:UID of its account, "": none */
#define DOCKER_LABEL_NAMES      DOCKER_LABEL "labels" /* those of its own labels that are no image's */
#define DOCKER_CHECKPOINT       "cubefs/checkpoint"
#define DOCKER_KEPT             "cubefs/kept"         /* checkpoints that were deleted and are needed */
#define DOCKER_REPO             "cubefs/template"     /* of images that were imported here */
#define DOCKER_LABEL_OWN        DOCKER_LABEL "label." /* before the names of a create line's labels */
#define DOCKER_NAME             "cubefs-"             /* before the id: the container's name */
#define DOCKER_NEXT             ".next" /* behind it: another container of the sandbox (settle.c) */
#define DOCKER_OLD              ".old"
#define DOCKER_GONE             ".gone"
#define DOCKER_MAKER            "cubefs-make-" /* containers that never run: HOME.INSTANCE.NUMBER behind it */
#define DOCKER_NO_COMMAND       "/cubefs-never-run" /* theirs */
#define DOCKER_AGENT            "/dev/.cube-init"   /* inside */
#define DOCKER_DOOR             "/dev/.cube-door"
#define DOCKER_PLANT            "/dev/.cube-agent" /* instead, where the engine has the agent in a volume */

/* What was found out about the engine when it was asked first; constant after that. */
struct docker_engine {
	bool known; /* it has answered */
	bool podman;
	char version[96], api[16]; /* of the interface that is spoken: "1.41" */
	char driver[32];           /* of the images: "overlay2" */
	char id[72];
	bool memory, cpus, pids; /* limits that it can keep */
	bool user_ns;            /* ids inside are others outside */
	bool network;            /* the one of net=open is there */
	bool gpu;                /* it gives its containers those of its machine */
};

struct cube_docker {
	struct cube_backend base;
	struct cube_loop *loop;
	struct cube_http *http;
	char where[256];  /* the engine's address, for sentences */
	bool local;       /* it sees this machine's files, and what it runs sees our sockets */
	char network[72]; /* of net=open */
	char template[CUBE_ID_MAX + 1];
	char why[160]; /* why it cannot be reached at all (a wrong address); "" */
	struct docker_engine engine;
	int state, cubes;  /* directories */
	char home[17];     /* the mark of our state directory */
	char instance[17]; /* of this process */
	char path[PATH_MAX / 2];
	char agent[PATH_MAX]; /* our copy of cube-init; "": there is none */
	char agent_why[160];

	pthread_mutex_t binds_lock; /* held while one is mounted; none is taken below it */
	struct cube_map *binds;     /* id to its binds (bind.c) */
	pthread_mutex_t procs_lock;
	struct cube_map *procs; /* id to what is known of its first process (proc.c) */
	atomic_int planting;    /* plant.c */
	struct docker_streams streams;
};

static inline struct cube_docker *docker_of(struct cube_backend *b)
{
	return cube_container_of(b, struct cube_docker, base);
}

/* ---- conf.c ---- */

/* Checks the section, finds the engine, sets http, where, local, network, template and base.defaults. An engine that
 * cannot be reached for ever leaves why. */
int docker_configure(struct cube_docker *d, const struct cube_conf_section *conf, struct cube_err *err);

/* ---- ask.c ---- */

struct docker_ask {
	const char *method;
	const char *path;   /* behind the version: "/containers/json?all=1" */
	const json_t *body; /* NULL: none */
	const char *what;   /* for sentences: "start sandbox 0123..." */
	bool plain;         /* the path has no version in front */
	uint32_t timeout_s; /* 0: as configured */
	json_t **ret;       /* the answer, a new reference; NULL: it is not looked at */
	int (*sink)(void *ctx, const void *data, size_t len); /* takes the answer as it comes; may be NULL */
	void *ctx;
	int body_fd; /* sent where has_fd is set */
	bool has_fd;
};
/* 0: done, or it was so already. -ENOENT no such thing; -EBUSY it is in a state where that cannot be; and what cube_http_run
 * and the contract (backend.h) say. */
int docker_ask(struct cube_docker *d, const struct docker_ask *a, struct cube_cancel *cancel,
	       struct cube_err *err);

/* ---- probe.c ---- */

/* Asks the engine what it is, and sets engine, base.caps and base.missing. */
void docker_probe(struct cube_docker *d, uint32_t kind_caps);
/* The same question for `status`: 0 with how long the answer took. */
int docker_ping(struct cube_docker *d, struct cube_cancel *cancel, uint64_t *ret_us, struct cube_err *err);

/* ---- box.c ---- */

#define DOCKER_REF (sizeof(DOCKER_NAME) + CUBE_ID_MAX)
/* What the engine calls the container of @id. -ENOENT: it can be nobody's. */
int docker_ref(const char *id, char out[DOCKER_REF], struct cube_err *err);
bool docker_is_ours(const char *id); /* and not the engine's own id */
/* A question about the container of @id: the path is what comes behind it, the text what is done with sandbox @id. */
int docker_box_ask(struct cube_docker *d, const char *id, const struct docker_ask *a,
		   struct cube_cancel *cancel, struct cube_err *err);
/* The sandbox as the engine has it, a new reference. -ENOENT. */
int docker_box_get(struct cube_docker *d, const char *id, struct cube_cancel *cancel, json_t **ret,
		   struct cube_err *err);
enum cube_state docker_box_state(const json_t *box);
int docker_box_pid(const json_t *box); /* of its first process here; 0: it does not run */
/* One verb of the API without body: "start", "stop?t=1". */
int docker_box_do(struct cube_docker *d, const char *id, const char *verb, struct cube_cancel *cancel,
		  struct cube_err *err);
/* Its directory here, made if @make: a descriptor, or -errno. */
int docker_box_dir(const struct cube_docker *d, const char *id, bool make, struct cube_err *err);
int docker_box_forget(struct cube_docker *d, const char *id, struct cube_err *err);

/* ---- spec.c ---- */

/* The body of its creation; a new reference. */
int docker_spec(const struct cube_docker *d, const struct cube_spec *spec, const char *image, json_t **ret,
		struct cube_err *err);
/* Limits as they are given at creation and at an update. */
void docker_spec_limits(json_t *to, const struct cube_limits *limits);
/* The same in the terms of the OCI runtime. */
void docker_spec_resources(json_t *to, const struct cube_limits *limits);

/* ---- enter.c ---- */

/* Our copy of cube-init, which outlives an upgrade; sets agent or agent_why. */
void docker_agent_prepare(struct cube_docker *d);
/* A container that has just been started, or whose agent waits for us: it gets its listener. */
int docker_enter(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err);
/* Where process 1 is another program than cube-init: beside it (adopt.c). */
int docker_enter_beside(struct cube_docker *d, const char *id, struct cube_cancel *cancel,
			struct cube_err *err);
int docker_link(struct cube_backend *b, const char *id, const struct cube_link_handler *handler, void *ctx,
		struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err);

/* ---- plant.c ---- */

#define DOCKER_PLANT_MAX (sizeof(DOCKER_NAME "agent-") + 16)
/* What the engine calls the volume. */
void docker_plant_name(const struct cube_docker *d, char out[DOCKER_PLANT_MAX]);
/* It is there, with our agent in it. @image: any image that the engine has. */
int docker_plant(struct cube_docker *d, const char *image, struct cube_cancel *cancel, struct cube_err *err);
/* Has a container its agent from there? */
bool docker_planted(const json_t *box);

/* ---- late.c ---- */

/* The creation of @uid was cancelled: whatever comes of it is not wanted. -errno. */
int docker_late_mark(const struct cube_docker *d, const char *uid, struct cube_err *err);
/* It is wanted again. */
void docker_late_clear(const struct cube_docker *d, const char *uid);
void docker_late_made(struct cube_docker *d, const char *uid); /* the engine has made this one */
void docker_late_look(struct cube_docker *d);

/* ---- adopt.c ---- */

int docker_adopt(struct cube_backend *b, const char *id, const char *uid, struct cube_cancel *cancel,
		 struct cube_err *err);
int docker_let_go(struct cube_backend *b, const char *id, struct cube_err *err);

/* ---- life.c ---- */

int docker_create(struct cube_backend *b, const struct cube_spec *spec, struct cube_cancel *cancel,
		  char **ret_id, struct cube_err *err);
int docker_destroy(struct cube_backend *b, const char *id, struct cube_err *err);
/* Starts its container and the agent in it. */
int docker_box_start(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int docker_start(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int docker_stop(struct cube_backend *b, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		struct cube_err *err);
int docker_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int docker_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);
int docker_limit(struct cube_backend *b, const char *id, const struct cube_limits *limits,
		 struct cube_err *err);

/* ---- look.c ---- */

int docker_inspect(struct cube_backend *b, const char *id, struct cube_info *ret, struct cube_err *err);
int docker_list(struct cube_backend *b, struct cube_cancel *cancel,
		void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err);
int docker_usage(struct cube_backend *b, const char *id, struct cube_usage *ret, struct cube_err *err);
int docker_access(struct cube_backend *b, const char *id, void (*each)(void *ctx, const char *line),
		  void *ctx, struct cube_err *err);

/* ---- proc.c ---- */

int docker_procs_open(struct cube_docker *d);
void docker_procs_close(struct cube_docker *d);
void docker_proc_forget(struct cube_docker *d, const char *id);
/* Why the processes of containers cannot be got at here; NULL: they can. */
const char *docker_proc_why(const struct cube_docker *d);
/* The directory in /proc of its first process (ns.h): a descriptor, or -EHOSTDOWN, -EHOSTUNREACH. */
int docker_proc(struct cube_docker *d, const char *id, struct cube_cancel *cancel, struct cube_err *err);
/* The watch of its memory limit (ns/oom.h); NULL: there is none. */
void *docker_proc_oom(struct cube_docker *d, const char *id);
int docker_dial(struct cube_backend *b, const char *id, const struct cube_target *target,
		struct cube_cancel *cancel, int *ret_fd, struct cube_err *err);
int docker_listening(struct cube_backend *b, const char *id,
		     void (*each)(void *ctx, const struct cube_listener *l), void *ctx, struct cube_err *err);

/* ---- bind.c ---- */

int docker_binds_open(struct cube_docker *d);
void docker_binds_close(struct cube_docker *d);
void docker_binds_forget(struct cube_docker *d, const char *id);
int docker_bind(struct cube_backend *b, const char *id, const struct cube_bind *bind,
		struct cube_cancel *cancel, struct cube_err *err);
int docker_unbind(struct cube_backend *b, const char *id, const char *path, struct cube_err *err);
/* It has just been started, and nothing of its own runs yet: those that it is to have. */
int docker_binds_started(struct cube_docker *d, const char *id, struct cube_cancel *cancel,
			 struct cube_err *err);
/* All of them are taken away. */
int docker_binds_leave(struct cube_docker *d, const char *id, struct cube_err *err);
/* Adds them to what is shown of it. -errno. */
int docker_binds_show(struct cube_docker *d, const char *id, struct cube_root *root);

/* ---- seed.c ---- */

/* Why that cannot be written; NULL: it can. */
const char *docker_seed_why(const struct cube_docker *d);
/* @box has just been started, and nothing of its own runs yet. Nothing where it cannot be. */
int docker_seed(struct cube_docker *d, const char *id, const json_t *box, struct cube_cancel *cancel,
		struct cube_err *err);
int docker_rename(struct cube_backend *b, const char *id, const char *name, struct cube_err *err);

/* ---- events.c ---- */

int docker_watch(struct cube_backend *b, const struct cube_news *news, struct cube_cancel *cancel,
		 struct cube_err *err);

/* ---- layers.c ---- */

/* The layers of an image or a container, topmost first, added to @ret. -EOPNOTSUPP: they are not directories. */
int docker_layers(const json_t *of, struct cube_names *ret);
bool docker_layers_can(void); /* this machine can mount them */
/* The files of a container that nobody has mounted; of an image, read only: a descriptor, or -errno. */
int docker_layers_mount(const json_t *box);
int docker_layers_view(const json_t *image);

/* ---- root.c ---- */

/* Why the files of containers cannot be shown here; NULL: they can. */
const char *docker_root_why(const struct cube_docker *d);
int docker_root(struct cube_backend *b, const char *id, struct cube_root *ret, struct cube_err *err);

/* Adds /workspace, where it is a directory of the root and no volume. -errno. */
int docker_root_workspace(struct cube_root *root, bool read_only);

/* ---- checkpoint.c ---- */

#define DOCKER_CP_REF    (sizeof(DOCKER_CHECKPOINT) + CUBE_ID_MAX + 1)
#define DOCKER_CP_VOLUME (sizeof(DOCKER_NAME) + 2 * CUBE_ID_MAX + 2)
void docker_checkpoint_ref(const char *cp, char out[DOCKER_CP_REF]);
int docker_checkpoint_get(struct cube_docker *d, const char *cp, struct cube_cancel *cancel, json_t **ret,
			  struct cube_err *err);
int docker_checkpoint(struct cube_backend *b, const char *id, const struct cube_take *take,
		      struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err);
int docker_checkpoint_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_checkpoint *c),
			   void *ctx, struct cube_err *err);
int docker_checkpoint_remove(struct cube_backend *b, const char *cp, struct cube_err *err);
int docker_checkpoint_root(struct cube_backend *b, const char *cp, struct cube_root *ret,
			   struct cube_err *err);
int docker_volume_copy(struct cube_backend *b, const char *cp, const char *from, const char *to,
		       struct cube_cancel *cancel, struct cube_err *err);

/* ---- remake.c ---- */

uint64_t docker_box_generation(const json_t *box);
/* The template that its files are over; of a container that cubefs did not make the name of its image. */
const char *docker_box_template(const json_t *box);
int docker_restore(struct cube_backend *b, const char *id, const char *cp, struct cube_cancel *cancel,
		   struct cube_err *err);
int docker_reset(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err);

/* ---- settle.c ---- */

enum docker_note { DOCKER_NOTE_TAKING, DOCKER_NOTE_REMAKING };
int docker_note(const struct cube_docker *d, const char *id, enum docker_note note, struct cube_err *err);
void docker_note_gone(const struct cube_docker *d, const char *id, enum docker_note note);
/* Ends what was cut off; first in each operation. */
int docker_settle(struct cube_docker *d, const char *id, struct cube_err *err);
/* The container cubefs-ID@suffix: looked at, removed, renamed to another suffix. */
int docker_other_get(struct cube_docker *d, const char *id, const char *suffix, json_t **ret,
		     struct cube_err *err);
int docker_other_gone(struct cube_docker *d, const char *id, const char *suffix, struct cube_err *err);
int docker_other_name(struct cube_docker *d, const char *id, const char *from, const char *to,
		      struct cube_err *err);
int docker_others_gone(struct cube_docker *d, const char *id, struct cube_err *err);
/* The container that it had has its name again, if it lost it; the others are removed. */
int docker_put_back(struct cube_docker *d, const char *id, struct cube_err *err);
/* A container that never runs, of a daemon that had our state directory before. */
bool docker_maker_stale(const struct cube_docker *d, const char *name);

/* ---- copy.c ---- */

/* Between volumes, by the engine's names; @to is empty. */
int docker_copy_volume(struct cube_docker *d, const char *from, const char *to, struct cube_cancel *cancel,
		       struct cube_err *err);
/* Between containers that do not run. */
int docker_copy_workspace(struct cube_docker *d, const json_t *from, const json_t *to,
			  struct cube_cancel *cancel, struct cube_err *err);

/* ---- changes.c, build.c ---- */

int docker_changes(struct cube_backend *b, const struct cube_changes *what, struct cube_cancel *cancel,
		   struct cube_err *err);
int docker_template_keep(struct cube_backend *b, const char *cp, const struct cube_template *t,
			 struct cube_cancel *cancel, struct cube_err *err);
int docker_template_commit(struct cube_backend *b, const char *id, const char *name,
			   struct cube_cancel *cancel, struct cube_err *err);
int docker_template_derive(struct cube_backend *b, const char *base, const struct cube_template *t,
			   const struct cube_template_config *config, struct cube_err *err);

/* ---- volume.c ---- */

int docker_volume_make(struct cube_backend *b, const char *uid, const char *name, struct cube_cancel *cancel,
		       struct cube_err *err);
int docker_volume_remove(struct cube_backend *b, const char *uid, struct cube_err *err);
int docker_volume_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_volume *v),
		       void *ctx, struct cube_err *err);
int docker_volume_root(struct cube_backend *b, const char *uid, struct cube_root *ret, struct cube_err *err);
/* -ENOENT: one that @spec names is not there. */
int docker_volumes_there(struct cube_docker *d, const struct cube_spec *spec, struct cube_cancel *cancel,
			 struct cube_err *err);
/* Adds the volumes of a container to what is shown of it. -errno. */
int docker_volume_mounts(const json_t *box, struct cube_root *root);

/* A directory of this machine as a mount of its own: a descriptor, or -errno. */
int docker_tree_open(const char *path, bool read_only);

/* ---- image.c ---- */

/* The nth tag that the image (as a list has it) has in @repo; NULL: there are no more. */
const char *docker_tag(const json_t *image, const char *repo, size_t n);
/* A label of what was inspected, an image or a container; "": none. */
const char *docker_image_label(const json_t *image, const char *key);
/* The list of images; @all: with those that have no tag and are part of another. */
int docker_images(struct cube_docker *d, bool all, struct cube_cancel *cancel, json_t **ret,
		  struct cube_err *err);
/* Adds a label to the query of a request that makes an image. */
void docker_query_label(struct cube_buf *query, const char *key, const char *value);
/* The image REPO:TAG of a container, with our mark. */
int docker_commit(struct cube_docker *d, const char *box, const char *ref, bool pause,
		  const struct cube_pair *labels, size_t n_labels, struct cube_err *err);
struct docker_image_order {
	const char *from; /* the image that it is made of */
	const char *ref;
	const char *name, *source, *print;
	const struct cube_template_config *config;
};
/* A template, one step above another image. */
int docker_image_make(struct cube_docker *d, const struct docker_image_order *o, struct cube_cancel *cancel,
		      struct cube_err *err);
/* What a template says of its programs: members as the engine's Config has them. A new reference. */
json_t *docker_image_config(const json_t *image);
#define DOCKER_MAKER_MAX (sizeof(DOCKER_MAKER) + 3 * 17)
/* A container that never runs; @out is its name. */
int docker_maker(struct cube_docker *d, const json_t *body, struct cube_cancel *cancel,
		 char out[DOCKER_MAKER_MAX], struct cube_err *err);
void docker_maker_gone(struct cube_docker *d, const char *name);
/* -ENOENT; -EBUSY: a container or an image is made of it. */
int docker_image_delete(struct cube_docker *d, const char *ref, struct cube_err *err);
/* What of ours nobody needs any more goes. */
void docker_images_sweep(struct cube_docker *d);
/* -EBUSY: an image is made of the template @name, whose id is @id. */
int docker_image_childless(struct cube_docker *d, const char *name, const char *id,
			   struct cube_cancel *cancel, struct cube_err *err);

/* ---- template.c, import.c ---- */

#define DOCKER_IMAGE (sizeof(DOCKER_REPO) + 2 * CUBE_ID_MAX + 4)
/* What the engine calls the template @name that was imported here. */
void docker_template_ref(const char *name, char out[DOCKER_IMAGE]);
/* The image @ref as the engine has it, a new reference. -ENOENT. */
int docker_image_get(struct cube_docker *d, const char *ref, struct cube_cancel *cancel, json_t **ret,
		     struct cube_err *err);
/* The image of a template: one that was imported, else the engine's own of that name. */
int docker_template_find(struct cube_docker *d, const char *name, char ret_ref[DOCKER_IMAGE], json_t **ret,
			 struct cube_cancel *cancel, struct cube_err *err);
/* -EBUSY: there is a container or an image of the template @name, whoever made that; @ref and @id are its image's. */
int docker_image_unused(struct cube_docker *d, const char *name, const char *ref, const char *id,
			struct cube_cancel *cancel, struct cube_err *err);
int docker_config_of(const json_t *image, const char *name, struct cube_template_config *ret,
		     struct cube_err *err);
int docker_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
			 void *ctx, struct cube_err *err);
int docker_template_remove(struct cube_backend *b, const char *name, struct cube_err *err);
int docker_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
			   struct cube_err *err);
int docker_template_check(struct cube_backend *b, const struct cube_template_order *o, struct cube_err *err);
int docker_template_import(struct cube_backend *b, const struct cube_template_order *o,
			   struct cube_cancel *cancel, struct cube_err *err);

/* ---- doctor.c ---- */

void docker_doctor(struct cube_backend *b, void (*say)(void *ctx, bool ok, const char *what, const char *fix),
		   void *ctx);

#endif
