/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, end, start and stop, pause and limits. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <libvirt/virterror.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/log.h"

#define LIFE_DISK    ((uint64_t)8 << 30) /* of a sandbox that names none; it takes what is written to it */
#define LIFE_CPUS    1
#define LIFE_MILLI   1000
#define LIFE_LABELS  ((size_t)1 << 20)
#define LIFE_LOOK_MS 100
#define LIFE_FORCE_S 10 /* for what a machine has still to write, after its grace */
#define LIFE_S_NS    UINT64_C(1000000000)

/* ---- on the threads of questions ---- */

static int life_define(struct libvirt_answer *a)
{
	virDomainPtr dom = virDomainDefineXMLFlags(a->conn, a->text, VIR_DOMAIN_DEFINE_VALIDATE);

	if (dom == NULL)
		return -1;
	(void)virDomainFree(dom);
	return 0;
}

/* Whatever state it is in. */
static int life_undefine(struct libvirt_answer *a)
{
	if (virDomainIsActive(a->dom) == 1 && virDomainDestroyFlags(a->dom, VIR_DOMAIN_DESTROY_DEFAULT) < 0 &&
	    virDomainIsActive(a->dom) == 1)
		return -1;
	if (virDomainUndefineFlags(a->dom, VIR_DOMAIN_UNDEFINE_MANAGED_SAVE | VIR_DOMAIN_UNDEFINE_NVRAM |
						   VIR_DOMAIN_UNDEFINE_SNAPSHOTS_METADATA) == 0)
		return 0;
	return virDomainUndefine(a->dom);
}

static int life_boot(struct libvirt_answer *a)
{
	return virDomainIsActive(a->dom) == 1 ? 0 : virDomainCreate(a->dom);
}

static int life_suspend(struct libvirt_answer *a)
{
	return virDomainSuspend(a->dom);
}

static int life_go_on(struct libvirt_answer *a)
{
	return virDomainResume(a->dom);
}

static int life_button(struct libvirt_answer *a)
{
	return virDomainShutdownFlags(a->dom, VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN);
}

static int life_cut(struct libvirt_answer *a)
{
	if (virDomainIsActive(a->dom) != 1)
		return 0;
	return virDomainDestroyFlags(a->dom, VIR_DOMAIN_DESTROY_DEFAULT) == 0 ||
			       virDomainIsActive(a->dom) != 1
		       ? 0
		       : -1;
}

static int life_do(struct cube_libvirt *v, const char *id, int (*fn)(struct libvirt_answer *a),
		   const char *what, struct cube_cancel *cancel, struct cube_err *err)
{
	return libvirt_do(v, &(struct libvirt_ask){.fn = fn, .id = id, .what = what}, cancel, NULL, err);
}

int libvirt_box_cut(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_do(v, id, life_cut, "cut off", cancel, err);
}

/* ---- the end ---- */

int libvirt_destroy(struct cube_backend *base, const char *id, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	int rc;

	libvirt_links_end(v, id);
	rc = life_do(v, id, life_undefine, "destroy", NULL, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (!libvirt_is_ours(id))
		return 0;
	rc = libvirt_box_forget(v, id, err);
	libvirt_layers_sweep(v);
	return rc;
}

/* ---- create ---- */

/* An earlier attempt whose answer was lost: one that runs is the answer, half of one is removed. */
static int create_again(struct cube_libvirt *v, const char *uid, bool *ret_done, struct cube_cancel *cancel,
			struct cube_err *err)
{
	enum cube_state state;
	int rc = libvirt_box_state(v, uid, cancel, &state, err);

	*ret_done = rc == 0 && state != CUBE_IS_STOPPED;
	if (rc == -ENOENT)
		return libvirt_box_forget(v, uid, err); /* files whose domain was never made */
	if (rc == 0 && !*ret_done)
		rc = libvirt_destroy(&v->base, uid, err);
	return rc;
}

static int create_note(const struct cube_libvirt *v, const struct cube_spec *spec,
		       const struct libvirt_template *t, struct libvirt_note *n, struct cube_err *err)
{
	struct cube_buf labels = CUBE_BUF(LIFE_LABELS);
	uint32_t milli = spec->limits.cpus_milli != 0 ? spec->limits.cpus_milli : v->base.defaults.cpus_milli;
	int rc = cube_spec_labels(spec, &labels);

	if (rc < 0) {
		cube_buf_done(&labels);
		return cube_fail(err, rc, "the labels of sandbox %s: %s", spec->uid, cube_errno_text(rc));
	}
	*n = (struct libvirt_note){
		.created = cube_clock_wall(),
		.net = spec->net,
		.disk = spec->limits.disk != 0 ? spec->limits.disk : LIFE_DISK,
		.memory = spec->limits.memory != 0 ? spec->limits.memory : v->base.defaults.memory,
		.cpus = milli != 0 ? (milli + LIFE_MILLI - 1) / LIFE_MILLI : LIFE_CPUS,
		.labels = cube_buf_steal(&labels, NULL),
	};
	(void)snprintf(n->uid, sizeof(n->uid), "%s", spec->uid);
	(void)snprintf(n->name, sizeof(n->name), "%s", spec->name);
	(void)snprintf(n->template, sizeof(n->template), "%s", t->name);
	return n->labels != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}

int libvirt_box_files(const struct cube_libvirt *v, const char *id, struct libvirt_files *f,
		      struct cube_err *err)
{
	char *const to[] = {f->root, f->workspace, f->console, f->socket, f->asked};
	static const char *const names[] = {LIBVIRT_ROOT ".qcow2", LIBVIRT_WORKSPACE ".qcow2",
					    LIBVIRT_CONSOLE, LIBVIRT_SOCKET, LIBVIRT_ASKING};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(to); i++)
		rc = libvirt_box_path(v, id, names[i], to[i], err);
	return rc;
}

/* Where its own path is too long for a socket libvirt chooses one. */
static const char *life_socket(const char *path)
{
	return strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path) ? path : NULL;
}

int libvirt_box_define(struct cube_libvirt *v, const struct libvirt_note *note,
		       const struct libvirt_template *t, struct cube_cancel *cancel, struct cube_err *err)
{
	struct libvirt_files files;
	cube_auto_str xml = NULL;
	struct libvirt_machine m = {.id = note->uid, .note = note, .template = t, .test = v->host.test};
	int rc = libvirt_box_files(v, note->uid, &files, err);

	if (rc < 0)
		return rc;
	m.root = note->root[0] != '\0' ? note->root : files.root;
	m.workspace = note->workspace[0] != '\0' ? note->workspace : files.workspace;
	m.console = files.console;
	m.socket = life_socket(files.socket);
	m.asked = life_socket(files.asked);
	m.kvm = libvirt_kvm(v, cancel);
	rc = libvirt_xml(&m, &xml, err);
	if (rc == 0)
		rc = libvirt_do(
			v,
			&(struct libvirt_ask){.fn = life_define, .text = xml, .what = "define the machine"},
			cancel, NULL, err);
	return rc;
}

struct life_disk {
	const char *id, *name, *path;
	const char *base;                  /* what it is over where there is no layer; "" */
	const struct libvirt_layer *layer; /* of a checkpoint */
	uint64_t size;
};

static int create_disk(struct cube_libvirt *v, const struct life_disk *d, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	char under[PATH_MAX];
	const char *base = d->base;
	int rc = libvirt_layer_set_under(v, d->id, d->name, d->layer, err);

	if (rc == 0 && d->layer->name[0] != '\0') {
		rc = libvirt_layer_path(v, d->layer, under, err);
		if (rc == 0 && access(under, R_OK) < 0)
			rc = cube_fail_errno(err, "a layer of the checkpoint, %.200s", under);
		base = under;
	}
	return rc == 0 ? libvirt_disk_make(d->path, base, d->size, cancel, err) : rc;
}

static int create_files(struct cube_libvirt *v, const struct libvirt_note *n,
			const struct libvirt_template *t, const struct libvirt_kept *from,
			struct cube_cancel *cancel, struct cube_err *err)
{
	struct libvirt_files f;
	const struct life_disk disks[] = {
		{n->uid, LIBVIRT_ROOT, f.root, t->disk, &from->root, n->disk},
		{n->uid, LIBVIRT_WORKSPACE, f.workspace, "", &from->workspace, n->disk},
	};
	int rc = libvirt_box_files(v, n->uid, &f, err);

	if (rc == 0)
		rc = libvirt_box_make(v, n->uid, err);
	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(disks); i++)
		rc = create_disk(v, &disks[i], cancel, err);
	return rc;
}

static int create_domain(struct cube_libvirt *v, const struct cube_spec *spec, struct cube_cancel *cancel,
			 struct cube_err *err)
{
	const char *name = spec->template != NULL ? spec->template : v->base.template;
	struct libvirt_kept from = {.size = 0};
	struct libvirt_note note = {.labels = NULL};
	struct libvirt_template t;
	int rc = spec->from != NULL ? libvirt_kept_read(v, spec->from, &from, err) : 0;

	if (rc == 0)
		rc = libvirt_template_find(v, spec->from != NULL ? from.template : name, &t, err);
	if (rc == 0)
		rc = create_note(v, spec, &t, &note, err);
	if (rc == 0 && note.disk < from.size)
		note.disk = from.size; /* what is there must fit */
	if (rc == 0)
		rc = create_files(v, &note, &t, &from, cancel, err);
	if (rc == 0)
		rc = libvirt_box_define(v, &note, &t, cancel, err);
	libvirt_note_done(&note);
	return rc;
}

int libvirt_create(struct cube_backend *base, const struct cube_spec *spec, struct cube_cancel *cancel,
		   char **ret_id, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	cube_auto_str id = cube_strdup(spec->uid);
	bool done = false;
	int rc = id != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");

	if (rc == 0)
		rc = create_again(v, spec->uid, &done, cancel, err);
	if (rc == 0 && !done) {
		rc = create_domain(v, spec, cancel, err);
		if (rc == 0)
			rc = libvirt_start(base, spec->uid, cancel, err);
		if (rc < 0)
			(void)libvirt_destroy(base, spec->uid, NULL);
	}
	if (rc == 0)
		*ret_id = cube_steal(id);
	return rc;
}

/* ---- start, stop ---- */

/* What the last run said is of no use in the next. */
static void life_new_console(const struct cube_libvirt *v, const char *id)
{
	char path[PATH_MAX];

	if (libvirt_box_path(v, id, LIBVIRT_CONSOLE, path, NULL) == 0 && truncate(path, 0) < 0 &&
	    errno != ENOENT)
		cube_log(CUBE_LOG_WARNING, "libvirt", "%s is not emptied: %s", path, cube_errno_text(-errno));
}

int libvirt_start(struct cube_backend *base, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	enum cube_state state;
	int rc = libvirt_box_state(v, id, cancel, &state, err);

	if (rc < 0 || state != CUBE_IS_STOPPED)
		return rc;
	if (libvirt_is_ours(id))
		life_new_console(v, id);
	rc = life_do(v, id, life_boot, "start", cancel, err);
	if (rc == 0 && !v->host.test)
		rc = libvirt_enter(v, id, cancel, err);
	if (rc < 0)
		(void)life_do(v, id, life_cut, "cut off", NULL, NULL);
	return rc;
}

/* Until it has stopped, for @ms at most. -ETIMEDOUT. */
static int stop_wait(struct cube_libvirt *v, const char *id, uint64_t ns, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	struct pollfd fd = {.fd = cube_cancel_fd(cancel), .events = POLLIN};
	uint64_t end = cube_clock_mono() + ns;
	enum cube_state state = CUBE_IS_RUNNING;
	int rc;

	do {
		rc = libvirt_box_state(v, id, cancel, &state, err);
		if (rc == 0 && state != CUBE_IS_STOPPED)
			(void)poll(&fd, 1, LIFE_LOOK_MS);
		if (rc == 0 && cube_cancel_fired(cancel))
			rc = cube_fail(err, -EINTR, "cancelled");
	} while (rc == 0 && state != CUBE_IS_STOPPED && cube_clock_mono() < end);
	return rc == 0 && state != CUBE_IS_STOPPED ? -ETIMEDOUT : rc;
}

/* The button once asks what runs to end, twice makes it end; in both cases what was written is on the disks. */
static int stop_running(struct cube_libvirt *v, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
			struct cube_err *err)
{
	int rc = life_do(v, id, life_button, "stop", cancel, err);

	if (rc == 0)
		rc = stop_wait(v, id, grace_s * LIFE_S_NS, cancel, err);
	if (rc == -ETIMEDOUT) {
		rc = life_do(v, id, life_button, "stop", cancel, err);
		if (rc == 0)
			rc = stop_wait(v, id, LIFE_FORCE_S * LIFE_S_NS, cancel, err);
	}
	if (rc == 0 || rc == -EINTR || rc == -ENOENT)
		return rc;
	return life_do(v, id, life_cut, "cut off", cancel, err);
}

int libvirt_stop(struct cube_backend *base, const char *id, uint32_t grace_s, struct cube_cancel *cancel,
		 struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	enum cube_state state;
	int rc = libvirt_box_state(v, id, cancel, &state, err);

	if (rc == 0 && state == CUBE_IS_PAUSED)
		rc = libvirt_resume(base, id, cancel, err);
	if (rc < 0 || state == CUBE_IS_STOPPED)
		return rc;
	rc = stop_running(v, id, grace_s, cancel, err);
	if (rc == 0)
		libvirt_links_end(v, id);
	return rc;
}

/* ---- pause, limits ---- */

static int life_move(struct cube_libvirt *v, const char *id, enum cube_state to,
		     int (*fn)(struct libvirt_answer *a), const char *what, struct cube_cancel *cancel,
		     struct cube_err *err)
{
	enum cube_state state;
	int rc = libvirt_box_state(v, id, cancel, &state, err);

	if (rc < 0 || state == to)
		return rc;
	if (state == CUBE_IS_STOPPED)
		return cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	return life_do(v, id, fn, what, cancel, err);
}

int libvirt_pause(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_move(libvirt_of(b), id, CUBE_IS_PAUSED, life_suspend, "pause", cancel, err);
}

int libvirt_resume(struct cube_backend *b, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	return life_move(libvirt_of(b), id, CUBE_IS_RUNNING, life_go_on, "resume", cancel, err);
}
