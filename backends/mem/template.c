/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: copies of directories in STATE/templates, and one that is built in. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/mem/mem_priv.h"

#define FOLDER        "templates"
#define IMPORT_SUFFIX ".part" /* no template name begins with a dot, so this cannot be one: "." NAME this */

struct mem_template *mem_template_find(struct mem *m, const char *name)
{
	cube_list_each (i, &m->templates) {
		struct mem_template *t = cube_list_entry(i, struct mem_template, link);

		if (strcmp(t->t.name, name) == 0)
			return t;
	}
	return NULL;
}

static void template_set(struct cube_template *t, const char *state, const char *source,
			 const char *fingerprint, uint64_t size)
{
	(void)snprintf(t->state, sizeof(t->state), "%s", state);
	(void)snprintf(t->source, sizeof(t->source), "%s", source);
	(void)snprintf(t->fingerprint, sizeof(t->fingerprint), "%s", fingerprint);
	t->size = size;
}

struct mem_template *mem_template_add(struct mem *m, const char *name)
{
	struct mem_template *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	(void)snprintf(t->t.name, sizeof(t->t.name), "%s", name);
	cube_template_config_init(&t->config);
	cube_list_push(&m->templates, &t->link);
	return t;
}

static void template_drop(struct mem_template *t)
{
	cube_list_remove(&t->link);
	cube_template_config_done(&t->config);
	cube_free(t);
}

void mem_template_clear(struct mem *m)
{
	cube_list_each (i, &m->templates)
		template_drop(cube_list_entry(i, struct mem_template, link));
}

/* Nothing of an earlier daemon is used: its sandboxes and its list were in its memory. */
int mem_template_load(struct mem *m, struct cube_err *err)
{
	struct mem_template *base = mem_template_add(m, MEM_TEMPLATE_BASE);
	int r = base != NULL ? cube_file_remove_tree(m->dir, FOLDER) : -ENOMEM;

	if (r == 0 && mkdirat(m->dir, FOLDER, 0700) < 0)
		r = -errno;
	if (base != NULL)
		template_set(&base->t, "ready", "built in", "", 0);
	return r < 0 ? cube_fail(err, r, "make %s/%s: %s", m->env->state_dir, FOLDER, cube_errno_text(r)) : 0;
}

/* ---- Listing ---- */

static size_t count(const struct cube_list *head)
{
	size_t n = 0;

	for (struct cube_list *i = head->next; i != head; i = i->next)
		n++;
	return n;
}

int mem_template_list(struct cube_backend *b, void (*each)(void *ctx, const struct cube_template *t),
		      void *ctx, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct cube_template *all;
	size_t n = 0;

	pthread_mutex_lock(&m->lock);
	all = cube_calloc(count(&m->templates) + 1, sizeof(*all));
	cube_list_each (i, &m->templates) {
		if (all != NULL)
			all[n++] = cube_list_entry(i, struct mem_template, link)->t;
	}
	pthread_mutex_unlock(&m->lock);
	if (all == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		each(ctx, &all[i]);
	cube_free(all);
	return 0;
}

/* ---- Import ---- */

struct import {
	struct mem *m;
	const char *name, *source;
	struct mem_template *entry;
	bool fresh; /* there was none of that name */
	int source_fd, folder;
	char part[CUBE_ID_MAX + 16];
	char fingerprint[72];
	struct mem_copied copied;
	const struct cube_template_order *order;
};

int mem_template_check(struct cube_backend *b, const struct cube_template_order *o, struct cube_err *err)
{
	if (strcmp(o->name, MEM_TEMPLATE_BASE) == 0)
		return cube_fail(err, -EBUSY, "template %s is built in: take another name", o->name);
	if (o->source[0] != '/' || o->sha256 != NULL)
		return cube_fail(err, -EOPNOTSUPP, "'%s': backend %s takes directories of this machine only",
				 o->source, b->name);
	if (o->os != NULL || o->uefi || o->tpm || o->specialized)
		return cube_fail(err, -EOPNOTSUPP,
				 "backend %s has no machines: no os, uefi, tpm, specialized", b->name);
	return 0;
}

static int import_check(const struct import *im, struct cube_err *err)
{
	struct stat st;

	if (im->source_fd < 0)
		return cube_fail(err, -EOPNOTSUPP, "'%s': backend %s takes directories of this machine only",
				 im->source, im->m->base.name);
	if (fstat(im->source_fd, &st) < 0)
		return cube_fail_errno(err, "'%s'", im->source);
	if (!S_ISDIR(st.st_mode))
		return cube_fail(err, -EOPNOTSUPP, "'%s' is no directory, and backend %s takes nothing else",
				 im->source, im->m->base.name);
	return 0;
}

/* Into a directory beside, which takes its place when it is complete. */
static int import_copy(struct import *im, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd to = -1;
	int r = cube_file_remove_tree(im->folder, im->part);

	if (r == 0 && mkdirat(im->folder, im->part, 0755) < 0)
		r = -errno;
	if (r == 0)
		to = openat(im->folder, im->part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r < 0 || to < 0)
		return cube_fail(err, r < 0 ? r : -errno, "make template %s: %s", im->name,
				 cube_errno_text(r < 0 ? r : errno));
	r = mem_copy_tree(im->source_fd, to, cancel, &im->copied, err);
	if (r < 0)
		return cube_fail_in(err, "import '%s'", im->source);
	(void)snprintf(im->fingerprint, sizeof(im->fingerprint), "fnv1a:%016" PRIx64, im->copied.hash);
	return 0;
}

static int used_by(void *ctx, const char *key, void *value)
{
	const struct mem_box *b = value;

	(void)key;
	return strcmp(b->template, ctx) == 0 ? 1 : 0;
}

int mem_template_unused(struct mem *m, const char *name, struct cube_err *err)
{
	char copy[CUBE_ID_MAX + 1];

	(void)snprintf(copy, sizeof(copy), "%s", name);
	if (cube_map_each(m->boxes, used_by, copy) != 0)
		return cube_fail(err, -EBUSY, "template %s is in use: destroy the sandboxes made of it first",
				 name);
	return 0;
}

/* Puts the copy in its place. The same content again is nothing. */
static int import_place(struct import *im, struct cube_err *err)
{
	struct cube_template *t = &im->entry->t;
	int r = 0;

	if (strcmp(t->fingerprint, im->fingerprint) == 0)
		return 0;
	if (!im->fresh)
		r = mem_template_unused(im->m, im->name, err);
	if (r < 0)
		return r;
	r = cube_file_remove_tree(im->folder, im->name);
	if (r == 0 && renameat(im->folder, im->part, im->folder, im->name) < 0)
		r = -errno;
	if (r == 0)
		r = mem_template_drop_workspace(im->m, im->name); /* of a checkpoint that it was before */
	if (r < 0)
		return cube_fail(err, r, "make template %s: %s", im->name, cube_errno_text(r));
	template_set(t, "ready", im->source, im->fingerprint, im->copied.bytes);
	return 0;
}

static void import_tell(const struct import *im)
{
	char line[160];

	(void)snprintf(line, sizeof(line), "copied %" PRIu64 " files, %" PRIu64 " bytes, %s",
		       im->copied.files, im->copied.bytes, im->fingerprint);
	im->order->log(im->order->ctx, line);
	if (im->copied.skipped == 0)
		return;
	(void)snprintf(line, sizeof(line), "left out %" PRIu64 " devices and sockets", im->copied.skipped);
	im->order->log(im->order->ctx, line);
}

/* The entry that this import works on; it alone. */
static int import_claim(struct import *im, struct cube_err *err)
{
	im->entry = mem_template_find(im->m, im->name);
	if (im->entry != NULL && im->entry->busy)
		return cube_fail(err, -EBUSY, "template %s is being imported", im->name);
	im->fresh = im->entry == NULL;
	if (im->fresh)
		im->entry = mem_template_add(im->m, im->name);
	if (im->entry == NULL) {
		(void)cube_fail(err, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	if (im->fresh)
		template_set(&im->entry->t, "importing", im->source, "", UINT64_MAX);
	im->entry->busy = true;
	return 0;
}

static void import_release(struct import *im, int r)
{
	im->entry->busy = false;
	if (r < 0 && im->fresh)
		template_drop(im->entry);
}

static int import_run(struct import *im, struct cube_cancel *cancel, struct cube_err *err)
{
	int r;

	pthread_mutex_lock(&im->m->lock);
	r = import_claim(im, err);
	pthread_mutex_unlock(&im->m->lock);
	if (r < 0)
		return r;
	r = import_copy(im, cancel, err);
	pthread_mutex_lock(&im->m->lock);
	if (r == 0)
		r = import_place(im, err);
	import_release(im, r);
	pthread_mutex_unlock(&im->m->lock);
	(void)cube_file_remove_tree(im->folder, im->part);
	if (r == 0)
		import_tell(im);
	return r;
}

int mem_template_import(struct cube_backend *b, const struct cube_template_order *o,
			struct cube_cancel *cancel, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	struct import im = {.m = m, .name = o->name, .source = o->source, .source_fd = o->fd, .order = o};
	cube_auto_fd folder = openat(m->dir, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = import_check(&im, err);

	if (r < 0)
		return r;
	if (folder < 0)
		return cube_fail_errno(err, "open %s/%s", m->env->state_dir, FOLDER);
	im.folder = folder;
	(void)snprintf(im.part, sizeof(im.part), ".%s" IMPORT_SUFFIX, o->name);
	return import_run(&im, cancel, err);
}

int mem_template_remove(struct cube_backend *b, const char *name, struct cube_err *err)
{
	struct mem *m = mem_of(b);
	cube_auto_str path = cube_asprintf(FOLDER "/%s", name);
	struct mem_template *t;
	int r = 0;

	if (path == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	if (strcmp(name, MEM_TEMPLATE_BASE) == 0)
		return cube_fail(err, -EBUSY, "template %s is built in", name);
	pthread_mutex_lock(&m->lock);
	t = mem_template_find(m, name);
	if (t != NULL && t->busy)
		r = cube_fail(err, -EBUSY, "template %s is being imported", name);
	else if (t != NULL)
		r = mem_template_unused(m, name, err);
	if (t != NULL && r == 0)
		template_drop(t);
	pthread_mutex_unlock(&m->lock);
	if (r < 0)
		return r;
	r = mem_template_drop_workspace(m, name);
	if (r == 0)
		r = cube_file_remove_tree(m->dir, path);
	return r < 0 ? cube_fail(err, r, "remove template %s: %s", name, cube_errno_text(r)) : 0;
}

int mem_template_config(struct cube_backend *b, const char *name, struct cube_template_config *ret,
			struct cube_err *err)
{
	struct mem *m = mem_of(b);
	const struct mem_template *t;
	int r;

	pthread_mutex_lock(&m->lock);
	t = mem_template_find(m, name);
	r = t == NULL ? -ENOENT : cube_template_config_copy(ret, &t->config);
	pthread_mutex_unlock(&m->lock);
	return r < 0 ? cube_fail(err, r, "template %s: %s", name, cube_errno_text(r)) : 0;
}
