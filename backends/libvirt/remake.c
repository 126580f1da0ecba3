/* SPDX-License-Identifier: Apache-2.0 */
/* A machine gets other disks: those of a checkpoint, or of its template. They are made before anything of it ends. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/file.h"

#define REMAKE_NEXT ".next"

struct remake {
	struct cube_libvirt *v;
	const char *id;
	struct libvirt_note note;
	struct libvirt_template template;
	struct libvirt_kept kept;
	bool workspace; /* that too */
	bool active, paused;
};

/* The disk @name over @layer, or over @base, beside the present one. */
static int remake_disk(struct remake *r, const char *name, const struct libvirt_layer *layer,
		       const char *base, struct cube_cancel *cancel, struct cube_err *err)
{
	char file[64], path[PATH_MAX], under[PATH_MAX];
	uint64_t size = r->kept.size > r->note.disk ? r->kept.size : r->note.disk;
	int rc;

	(void)snprintf(file, sizeof(file), "%s" REMAKE_NEXT, name);
	rc = libvirt_box_path(r->v, r->id, file, path, err);
	if (rc == 0 && layer->name[0] != '\0') {
		rc = libvirt_layer_path(r->v, layer, under, err);
		if (rc == 0 && access(under, R_OK) < 0)
			rc = cube_fail_errno(err, "a layer of the checkpoint, %.200s", under);
		base = under;
	}
	return rc == 0 ? libvirt_disk_make(path, base, size, cancel, err) : rc;
}

static int remake_prepare(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	int rc = remake_disk(r, LIBVIRT_ROOT, &r->kept.root, r->template.disk, cancel, err);

	if (rc == 0 && r->workspace)
		rc = remake_disk(r, LIBVIRT_WORKSPACE, &r->kept.workspace, "", cancel, err);
	return rc;
}

/* What was prepared and will not be. */
static void remake_undo(const struct remake *r)
{
	static const char *const files[] = {LIBVIRT_ROOT REMAKE_NEXT, LIBVIRT_WORKSPACE REMAKE_NEXT};
	char path[PATH_MAX];

	for (size_t i = 0; i < CUBE_COUNT(files); i++)
		if (libvirt_box_path(r->v, r->id, files[i], path, NULL) == 0)
			(void)unlink(path);
}

/* What is under it is noted first: a layer too many is kept until the next sweep, one too few would be lost. */
static int remake_take(struct remake *r, const char *name, const struct libvirt_layer *layer,
		       struct cube_err *err)
{
	char file[64], next[PATH_MAX] = "", usual[PATH_MAX] = "";
	int rc = libvirt_layer_set_under(r->v, r->id, name, layer, err);

	(void)snprintf(file, sizeof(file), "%s" REMAKE_NEXT, name);
	if (rc == 0)
		rc = libvirt_box_path(r->v, r->id, file, next, err);
	(void)snprintf(file, sizeof(file), "%s.qcow2", name);
	if (rc == 0)
		rc = libvirt_box_path(r->v, r->id, file, usual, err);
	if (rc == 0 && rename(next, usual) < 0)
		rc = cube_fail_errno(err, "disk %.200s", usual);
	return rc;
}

/* Disks that checkpoints put over each other; its description has named the last of them until now. */
static int remake_drop(void *ctx, int dir, const char *file)
{
	const struct remake *r = ctx;

	if (strncmp(file, LIBVIRT_ROOT "-", strlen(LIBVIRT_ROOT) + 1) == 0 ||
	    (r->workspace && strncmp(file, LIBVIRT_WORKSPACE "-", strlen(LIBVIRT_WORKSPACE) + 1) == 0))
		(void)unlinkat(dir, file, 0);
	return 0;
}

static int remake_switch(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	char box[PATH_MAX];
	int rc = libvirt_box_path(r->v, r->id, "", box, err);

	if (rc == 0 && r->active) {
		libvirt_links_end(r->v, r->id);
		rc = libvirt_box_cut(r->v, r->id, NULL, err);
	}
	if (rc == 0)
		rc = remake_take(r, LIBVIRT_ROOT, &r->kept.root, err);
	r->note.root[0] = '\0';
	if (rc == 0 && r->workspace) {
		rc = remake_take(r, LIBVIRT_WORKSPACE, &r->kept.workspace, err);
		r->note.workspace[0] = '\0';
	}
	if (rc == 0)
		rc = libvirt_box_define(r->v, &r->note, &r->template, NULL, err);
	if (rc == 0)
		(void)cube_file_each(AT_FDCWD, box, remake_drop, r);
	libvirt_layers_sweep(r->v);
	if (rc == 0 && r->active)
		rc = libvirt_start(&r->v->base, r->id, cancel, err);
	return rc;
}

static int remake(struct remake *r, struct cube_cancel *cancel, struct cube_err *err)
{
	enum cube_state state = CUBE_IS_GONE;
	int rc = libvirt_box_state(r->v, r->id, cancel, &state, err);

	r->active = state != CUBE_IS_STOPPED;
	if (rc == 0)
		rc = libvirt_box_note(r->v, r->id, cancel, &r->note, err);
	if (rc < 0)
		return rc;
	if (r->kept.template[0] != '\0')
		(void)snprintf(r->note.template, sizeof(r->note.template), "%s", r->kept.template);
	rc = libvirt_template_find(r->v, r->note.template, &r->template, err);
	if (rc == 0) {
		rc = remake_prepare(r, cancel, err);
		if (rc < 0)
			remake_undo(r);
	}
	if (rc == 0)
		rc = remake_switch(r, cancel, err);
	libvirt_note_done(&r->note);
	return rc;
}

int libvirt_restore(struct cube_backend *base, const char *id, const char *cp, struct cube_cancel *cancel,
		    struct cube_err *err)
{
	struct remake r = {.v = libvirt_of(base), .id = id, .workspace = true};
	int rc = libvirt_kept_read(r.v, cp, &r.kept, err);

	return rc == 0 ? remake(&r, cancel, err) : rc;
}

int libvirt_reset(struct cube_backend *base, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	struct remake r = {.v = libvirt_of(base), .id = id};

	return remake(&r, cancel, err);
}
