/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: two layers, and a file that says which.
 *
 * Of a running machine: what was written goes to the disks and they are frozen from inside, the machine stands still, the
 * disks become layers and it gets empty ones over them, it goes on. That takes as long as the guest has to write, and copies
 * nothing. The file comes last, so that what was cut off is no checkpoint, and its layers are swept. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/libvirt/tree.h"

#define CP_FILE  ((size_t)64 << 10)
#define CP_JSON  ".json"
#define CP_DISKS 2
#define CP_MS_NS UINT64_C(1000000)

static const char *const cp_disks[CP_DISKS] = {LIBVIRT_ROOT, LIBVIRT_WORKSPACE};
static const char *const cp_targets[CP_DISKS] = {"vda", "vdb"};

/* ---- the file ---- */

static int cp_dir(const struct cube_libvirt *v, bool make, struct cube_err *err)
{
	char path[PATH_MAX];
	int fd, rc = 0;

	(void)snprintf(path, sizeof(path), "%s/checkpoints", v->dir);
	if (make)
		rc = cube_file_mkdir_path(path, 0700);
	fd = rc == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0)
		return fd;
	rc = rc < 0 ? rc : -errno;
	return cube_fail(err, rc, "%.300s: %s", path, cube_errno_text(rc));
}

static int kept_parse(int dir, const char *file, struct libvirt_kept *ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(CP_FILE);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct libvirt_kept k = {.size = 0};
	int rc = cube_file_read(dir, file, &text);

	if (rc == 0)
		rc = cube_json_parse(cube_buf_str(&text), text.len, file, &o, err);
	cube_buf_done(&text);
	if (rc < 0)
		return rc;
	(void)snprintf(k.of, sizeof(k.of), "%.64s", cube_json_str(o, "of", ""));
	(void)snprintf(k.template, sizeof(k.template), "%.64s", cube_json_str(o, "template", ""));
	(void)snprintf(k.root.name, sizeof(k.root.name), "%.16s", cube_json_str(o, LIBVIRT_ROOT, ""));
	(void)snprintf(k.workspace.name, sizeof(k.workspace.name), "%.16s",
		       cube_json_str(o, LIBVIRT_WORKSPACE, ""));
	k.size = (uint64_t)cube_json_int(o, "size", 0);
	*ret = k;
	return 0;
}

int libvirt_kept_read(const struct cube_libvirt *v, const char *cp, struct libvirt_kept *ret,
		      struct cube_err *err)
{
	char file[CUBE_ID_MAX + 16];
	cube_auto_fd dir = cp_dir(v, false, err);
	int rc = dir < 0 ? dir : 0;

	(void)snprintf(file, sizeof(file), "%.64s" CP_JSON, cp);
	if (rc == 0)
		rc = kept_parse(dir, file, ret, err);
	return rc == -ENOENT ? cube_fail(err, rc, "there is no checkpoint %s", cp) : rc;
}

struct kept_walk {
	void (*each)(void *ctx, const char *cp, const struct libvirt_kept *k);
	void *ctx;
};

static int kept_one(void *ctx, int dir, const char *file)
{
	const struct kept_walk *w = ctx;
	size_t len = strlen(file), end = strlen(CP_JSON);
	struct libvirt_kept k;
	char cp[CUBE_ID_MAX + 1];
	int rc;

	if (file[0] == '.' || len <= end || len - end > CUBE_ID_MAX || strcmp(file + len - end, CP_JSON) != 0)
		return 0;
	(void)snprintf(cp, sizeof(cp), "%.*s", (int)(len - end), file);
	rc = kept_parse(dir, file, &k, NULL);
	if (rc == 0)
		w->each(w->ctx, cp, &k);
	return rc == -ENOENT ? 0 : rc;
}

int libvirt_kept_each(const struct cube_libvirt *v,
		      void (*each)(void *ctx, const char *cp, const struct libvirt_kept *k), void *ctx,
		      struct cube_err *err)
{
	struct kept_walk w = {.each = each, .ctx = ctx};
	cube_auto_fd dir = open(v->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = dir < 0 ? -errno : cube_file_each(dir, "checkpoints", kept_one, &w);

	return rc == 0 || rc == -ENOENT
		       ? 0
		       : cube_fail(err, rc, "the checkpoints in %.200s: %s", v->dir, cube_errno_text(rc));
}

static int kept_write(const struct cube_libvirt *v, const char *cp, const struct libvirt_kept *k,
		      struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = json_object();
	struct cube_buf text = CUBE_BUF(CP_FILE);
	char file[CUBE_ID_MAX + 16];
	cube_auto_fd dir = cp_dir(v, true, err);
	int rc = dir < 0 ? dir : 0;

	(void)snprintf(file, sizeof(file), "%.64s" CP_JSON, cp);
	(void)json_object_set_new(o, "of", json_string(k->of));
	(void)json_object_set_new(o, "template", json_string(k->template));
	(void)json_object_set_new(o, LIBVIRT_ROOT, json_string(k->root.name));
	(void)json_object_set_new(o, LIBVIRT_WORKSPACE, json_string(k->workspace.name));
	(void)json_object_set_new(o, "size", json_integer((json_int_t)k->size));
	if (rc == 0) {
		rc = cube_json_write(o, &text);
		if (rc == 0)
			rc = cube_file_replace(dir, file, cube_buf_str(&text), text.len, 0600);
		rc = rc < 0 ? cube_fail(err, rc, "checkpoint %s: %s", cp, cube_errno_text(rc)) : 0;
	}
	cube_buf_done(&text);
	return rc;
}

/* ---- taking one ---- */

struct taking {
	struct cube_libvirt *v;
	const char *id;
	struct libvirt_note note;
	bool running;                          /* and is not paused */
	bool active;                           /* it has QEMU's process */
	const char *disk[CP_DISKS];            /* as they are now */
	char next[CP_DISKS][PATH_MAX];         /* those that come over them */
	struct libvirt_layer layer[CP_DISKS];  /* what they become */
	struct libvirt_layer before[CP_DISKS]; /* what is under them */
	int ready;                             /* of so many disks all that is known */
	int taken; /* so many have others over them, or may have: what is written goes there */
	uint64_t size;
};

/* Empty disks over layers that are not there yet. */
static int taking_prepare(struct taking *t, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = 0;

	t->disk[0] = t->note.root;
	t->disk[1] = t->note.workspace;
	for (int i = 0; i < CP_DISKS && rc == 0; i++) {
		char layer[PATH_MAX], name[64];
		uint64_t size = 0;

		rc = libvirt_layer_new(&t->layer[i]);
		if (rc == 0)
			rc = libvirt_disk_size(t->disk[i], &size);
		if (rc < 0)
			return cube_fail(err, rc, "disk %.200s: %s", t->disk[i], cube_errno_text(rc));
		(void)snprintf(name, sizeof(name), "%s-%s.qcow2", cp_disks[i], t->layer[i].name);
		rc = libvirt_box_path(t->v, t->id, name, t->next[i], err);
		if (rc == 0)
			rc = libvirt_layer_under(t->v, t->id, cp_disks[i], &t->before[i], err);
		t->ready += rc == 0;
		if (rc == 0)
			rc = libvirt_layer_path(t->v, &t->layer[i], layer, err);
		if (rc == 0)
			rc = libvirt_disk_make(t->next[i], layer, size, cancel, err);
		t->size = size > t->size ? size : t->size;
	}
	return rc;
}

static int taking_switch(struct libvirt_answer *a)
{
	const unsigned flags = VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY | VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA |
			       VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC | VIR_DOMAIN_SNAPSHOT_CREATE_REUSE_EXT;
	virDomainSnapshotPtr snapshot = virDomainSnapshotCreateXML(a->dom, a->text, flags);

	if (snapshot == NULL)
		return -1;
	(void)virDomainSnapshotFree(snapshot);
	return 0;
}

static int taking_xml(const struct taking *t, char **ret, struct cube_err *err)
{
	cube_auto(libvirt_tree_auto) xmlDocPtr doc = xmlNewDoc((const xmlChar *)"1.0");
	xmlNodePtr top = doc != NULL ? xmlNewNode(NULL, (const xmlChar *)"domainsnapshot") : NULL, disks;
	int rc;

	if (top == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	(void)xmlDocSetRootElement(doc, top);
	disks = libvirt_tree_add(top, "disks");
	for (int i = 0; i < CP_DISKS; i++) {
		xmlNodePtr disk = libvirt_tree_add(disks, "disk"), driver;

		libvirt_tree_set(disk, "name", cp_targets[i]);
		libvirt_tree_set(disk, "snapshot", "external");
		driver = libvirt_tree_add(disk, "driver");
		libvirt_tree_set(driver, "type", "qcow2");
		libvirt_tree_set(libvirt_tree_add(disk, "source"), "file", t->next[i]);
	}
	rc = libvirt_tree_text(doc, ret);
	return rc < 0 ? cube_fail(err, rc, "sandbox %s: its checkpoint cannot be described", t->id) : 0;
}

/* Was it refused for certain? What has not been answered may be done yet. */
static bool taking_refused(struct taking *t, int code)
{
	struct libvirt_note now = {.labels = NULL};
	bool is = code != -ETIMEDOUT && code != -EHOSTUNREACH &&
		  libvirt_box_note(t->v, t->id, NULL, &now, NULL) == 0 && strcmp(now.root, t->disk[0]) == 0 &&
		  strcmp(now.workspace, t->disk[1]) == 0;

	libvirt_note_done(&now);
	return is;
}

/* The machine goes on with the next disks; one that does not run finds them where the present ones were. */
static int taking_next(struct taking *t, struct cube_err *err)
{
	cube_auto_str xml = NULL;
	int rc = 0;

	if (!t->active) {
		for (int i = 0; i < CP_DISKS && rc == 0; i++) {
			if (rename(t->next[i], t->disk[i]) < 0)
				rc = cube_fail_errno(err, "disk %.200s", t->disk[i]);
			t->taken += rc == 0;
		}
		return rc;
	}
	rc = taking_xml(t, &xml, err);
	if (rc < 0)
		return rc;
	rc = libvirt_do(
		t->v,
		&(struct libvirt_ask){
			.fn = taking_switch, .id = t->id, .text = xml, .what = "take a checkpoint of"},
		NULL, NULL, err);
	if (rc == 0 || !taking_refused(t, rc))
		t->taken = CP_DISKS;
	return rc;
}

static int taking_layers(struct taking *t, struct cube_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&t->v->layers_lock);
	for (int i = 0; i < CP_DISKS && rc == 0; i++) {
		rc = libvirt_layer_of(t->v, t->disk[i], &t->before[i], &t->layer[i], err);
		if (rc == 0)
			rc = libvirt_layer_set_under(t->v, t->id, cp_disks[i], &t->layer[i], err);
	}
	pthread_mutex_unlock(&t->v->layers_lock);
	return rc;
}

/* Of a disk that has another one over it already nothing is: both are as good as the one was. */
static void taking_undo(struct taking *t)
{
	for (int i = t->taken; i < t->ready; i++) {
		(void)libvirt_layer_set_under(t->v, t->id, cp_disks[i], &t->before[i], NULL);
		(void)unlink(t->next[i]);
	}
	libvirt_layers_sweep(t->v);
}

/* Whatever happens it goes on. */
static int taking_still(struct taking *t, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = 0;

	if (t->running) {
		rc = libvirt_port_ask(&t->note, t->id, "freeze", cancel, err);
		if (rc == 0)
			rc = libvirt_pause(&t->v->base, t->id, cancel, err);
	}
	if (rc == 0)
		rc = taking_layers(t, err);
	if (rc == 0)
		rc = taking_next(t, err);
	if (t->running) {
		struct cube_err after = {0};
		int gone_on = libvirt_resume(&t->v->base, t->id, NULL, &after);

		(void)libvirt_port_ask(&t->note, t->id, "thaw", NULL, NULL);
		if (rc == 0 && gone_on < 0)
			rc = cube_fail(err, gone_on, "%s", after.text);
	}
	return rc;
}

static int taking_begin(struct taking *t, struct cube_cancel *cancel, struct cube_err *err)
{
	enum cube_state state = CUBE_IS_GONE;
	int rc = libvirt_box_state(t->v, t->id, cancel, &state, err);

	t->running = state == CUBE_IS_RUNNING;
	t->active = state != CUBE_IS_STOPPED;
	if (rc == 0)
		rc = libvirt_box_note(t->v, t->id, cancel, &t->note, err);
	if (rc == 0 && (t->note.root[0] == '\0' || t->note.workspace[0] == '\0'))
		rc = cube_fail(err, -EOPNOTSUPP, "sandbox %s has other disks than those of cubefs", t->id);
	return rc;
}

int libvirt_checkpoint(struct cube_backend *base, const char *id, const struct cube_take *take,
		       struct cube_cancel *cancel, uint32_t *ret_still_ms, struct cube_err *err)
{
	struct taking t = {.v = libvirt_of(base), .id = id};
	struct libvirt_kept k;
	uint64_t start;
	int rc;

	if (libvirt_kept_read(t.v, take->cp, &k, NULL) == 0) {
		*ret_still_ms = 0;
		return 0;
	}
	rc = taking_begin(&t, cancel, err);
	if (rc == 0)
		rc = taking_prepare(&t, cancel, err);
	start = cube_clock_mono();
	if (rc == 0)
		rc = taking_still(&t, cancel, err);
	if (rc < 0) {
		taking_undo(&t);
		libvirt_note_done(&t.note);
		return rc;
	}
	k = (struct libvirt_kept){.root = t.layer[0], .workspace = t.layer[1], .size = t.size};
	(void)snprintf(k.of, sizeof(k.of), "%s", id);
	(void)snprintf(k.template, sizeof(k.template), "%s", t.note.template);
	libvirt_note_done(&t.note);
	rc = kept_write(t.v, take->cp, &k, err);
	if (rc == 0)
		*ret_still_ms = t.active ? (uint32_t)((cube_clock_mono() - start) / CP_MS_NS) : 0;
	return rc;
}

/* ---- those that are there ---- */

struct cp_list {
	const struct cube_libvirt *v;
	void (*each)(void *ctx, const struct cube_checkpoint *c);
	void *ctx;
};

static void cp_tell(void *ctx, const char *cp, const struct libvirt_kept *k)
{
	const struct cp_list *l = ctx;
	const struct libvirt_layer *const layers[CP_DISKS] = {&k->root, &k->workspace};
	struct cube_checkpoint c = {.size = 0};

	(void)snprintf(c.id, sizeof(c.id), "%s", cp);
	(void)snprintf(c.of, sizeof(c.of), "%s", k->of);
	for (int i = 0; i < CP_DISKS; i++) {
		char path[PATH_MAX];
		struct stat st;

		if (libvirt_layer_path(l->v, layers[i], path, NULL) == 0 && stat(path, &st) == 0)
			c.size += (uint64_t)st.st_blocks * 512;
		else
			(void)snprintf(c.reason, sizeof(c.reason), "its layer %s is missing",
				       layers[i]->name);
	}
	l->each(l->ctx, &c);
}

int libvirt_checkpoint_list(struct cube_backend *base,
			    void (*each)(void *ctx, const struct cube_checkpoint *c), void *ctx,
			    struct cube_err *err)
{
	struct cp_list l = {.v = libvirt_of(base), .each = each, .ctx = ctx};

	return libvirt_kept_each(l.v, cp_tell, &l, err);
}

int libvirt_checkpoint_remove(struct cube_backend *base, const char *cp, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	cube_auto_fd dir = cp_dir(v, false, err);
	char file[CUBE_ID_MAX + 16];

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	(void)snprintf(file, sizeof(file), "%.64s" CP_JSON, cp);
	if (unlinkat(dir, file, 0) < 0 && errno != ENOENT)
		return cube_fail_errno(err, "checkpoint %s cannot be removed", cp);
	libvirt_layers_sweep(v);
	return 0;
}

int libvirt_checkpoint_root(struct cube_backend *base, const char *cp, struct cube_root *ret,
			    struct cube_err *err)
{
	(void)base;
	(void)ret;
	return cube_fail(err, -EOPNOTSUPP,
			 "the files of checkpoint %s are on disks of a machine, which are not mounted here",
			 cp);
}
