/* SPDX-License-Identifier: Apache-2.0 */
/* put and get: from the verb to its answer, and over an end of the daemon. */
#include "ctl/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"
#include "ctl/transfer_priv.h"

/* ---- The way of one ---- */

static void order_free(struct cube_transfer_order *o)
{
	for (size_t i = 0; i < o->n_remove; i++)
		cube_free((void *)(uintptr_t)o->remove[i]);
	cube_free((void *)(uintptr_t)o->remove);
	cube_free((void *)(uintptr_t)o->host);
	cube_free((void *)(uintptr_t)o->path);
}

static int order_copy(struct cube_transfer_order *to, const struct cube_transfer_order *from)
{
	const char **remove = cube_calloc(from->n_remove + 1, sizeof(*remove));

	*to = *from;
	to->remove = remove;
	to->n_remove = 0;
	to->host = from->host != NULL ? cube_strdup(from->host) : NULL;
	to->path = cube_strdup(from->path);
	for (size_t i = 0; remove != NULL && i < from->n_remove; i++) {
		remove[i] = cube_strdup(from->remove[i]);
		if (remove[i] == NULL)
			return -ENOMEM;
		to->n_remove++;
	}
	return remove != NULL && to->path != NULL && (from->host == NULL || to->host != NULL) ? 0 : -ENOMEM;
}

static void transfer_free(struct cube_transfer *t)
{
	cube_root_close(&t->root);
	cube_list_remove(&t->link);
	order_free(&t->order);
	cube_cancel_unref(t->cancel);
	cube_cube_unref(t->cube);
	cube_free(t->note);
	cube_free(t);
}

static struct cube_transfer *transfer_new(struct cube_cube *c, const struct cube_transfer_order *o)
{
	struct cube_transfer *t = cube_calloc(1, sizeof(*t));
	uint64_t n = 0;

	if (t == NULL)
		return NULL;
	cube_list_init(&t->link);
	t->root.fd = -1;
	t->copying.mode = -1;
	t->cube = cube_cube_ref(c);
	t->cancel = cube_cancel_new();
	if (order_copy(&t->order, o) < 0 || t->cancel == NULL ||
	    getrandom(&n, sizeof(n), 0) != (ssize_t)sizeof(n)) {
		transfer_free(t);
		return NULL;
	}
	(void)snprintf(t->stage, sizeof(t->stage), STAGE_NAME "%016llx", (unsigned long long)n);
	return t;
}

/* The state names what grows, so that it is found after a kill. Not for get: that is not the sandbox's. */
static int transfer_note(struct cube_transfer *t, struct cube_err *err)
{
	const char *slash = strrchr(t->order.path, '/');

	cube_list_push(&cube_own(t->cube)->transfers, &t->link);
	if (t->order.get)
		return 0;
	t->note = cube_asprintf("%.*s/%s", (int)(slash - t->order.path), t->order.path, t->stage);
	if (t->note == NULL)
		return cube_fail(err, -ENOMEM, "put: out of memory");
	return cube_state_save(t->cube, err);
}

static void transfer_end(struct cube_transfer *t)
{
	struct cube_domain *d = t->cube->domain;
	struct cube_transfer_order *o = &t->order;
	const struct cube_copying *c = &t->copying;

	cube_domain_enter(d);
	cube_list_remove(&t->link);
	if (t->note != NULL && t->cube->phase != CUBE_REMOVED)
		(void)cube_state_save(t->cube, NULL); /* else the name is looked for once more, in vain */
	if (o->done != NULL)
		o->done(o->ctx, t->code, c->files, c->bytes, c->skipped, t->code < 0 ? &t->err : NULL);
	cube_use_end(t->cube);
	transfer_free(t);
	cube_task_end(d);
	cube_domain_leave(d);
}

static void transfer_run(struct cube_work *w)
{
	struct cube_transfer *t = cube_container_of(w, struct cube_transfer, work);

	if (t->code == 0 && t->clean)
		t->code = cube_transfer_clean(t);
	else if (t->code == 0)
		t->code = t->order.get ? cube_transfer_get(t) : cube_transfer_put(t);
	transfer_end(t);
}

/* On the sandbox's queue, which is not to be kept for as long as this takes. */
static void transfer_rooted(void *ctx, int code, struct cube_root *root, const struct cube_err *err)
{
	struct cube_transfer *t = ctx;
	struct cube_domain *d = t->cube->domain;

	t->code = code;
	if (code == 0)
		t->root = *root;
	else
		t->err = *err;
	t->work.run = transfer_run;
	cube_domain_enter(d);
	cube_task_submit(d, &t->work);
	cube_domain_leave(d);
}

static int transfer_start(struct cube_transfer *t, struct cube_err *err)
{
	int r = transfer_note(t, err);

	if (r == 0) {
		r = cube_cube_root_async(t->cube, transfer_rooted, t);
		if (r < 0)
			(void)cube_fail(err, r, "%s", cube_errno_text(r));
	}
	if (r < 0) {
		transfer_free(t);
		return r;
	}
	cube_use_begin(t->cube);
	return 0;
}

static int transfer_check(const struct cube_transfer_order *o, const struct cube_caller *by,
			  struct cube_err *err)
{
	const char *verb = o->get ? "get" : "put";

	if (!by->local)
		return cube_fail(err, -EPERM, "%s %s: a remote client cannot name a path of this machine",
				 verb, o->host);
	if (o->host[0] != '/')
		return cube_fail(err, -EINVAL, "%s %s: a path of this machine must be absolute", verb,
				 o->host);
	for (size_t i = 0; i <= o->n_remove; i++) {
		const char *path = i == 0 ? o->path : o->remove[i - 1];

		if (!cube_name_inside_ok(path))
			return cube_fail(err, -EINVAL,
					 "%s %s: an absolute path inside is wanted, without '.', '..' or "
					 "'//', and not "
					 "of /proc, /sys or /dev",
					 verb, path);
	}
	return 0;
}

int cube_transfer_begin(struct cube_cube *c, const struct cube_caller *by,
			const struct cube_transfer_order *o, struct cube_transfer **ret, struct cube_err *err)
{
	int r = transfer_check(o, by, err);
	struct cube_transfer *t;

	if (r == 0 && c->id == NULL)
		r = cube_fail(err, -EHOSTDOWN, "sandbox '%s' is not there", c->name);
	if (r < 0)
		return r;
	t = transfer_new(c, o);
	if (t == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", o->get ? "get" : "put");
	t->by = *by;
	t->room = (struct cube_copy_room){.fd = c->domain->state_fd,
					  .reserve = c->domain->disk_reserve,
					  .percent = c->domain->disk_percent};
	r = transfer_start(t, err);
	if (r == 0)
		*ret = t;
	return r;
}

void cube_transfer_leave(struct cube_transfer *t)
{
	t->order.done = NULL;
	cube_cancel_fire(t->cancel);
}

void cube_transfers_cancel(struct cube_cube *c)
{
	cube_list_each (i, &cube_own(c)->transfers)
		cube_cancel_fire(cube_list_entry(i, struct cube_transfer, link)->cancel);
}

/* ---- Over an end of the daemon ---- */

json_t *cube_transfers_save(const struct cube_cube *c)
{
	struct cube_own *own = cube_own((struct cube_cube *)(uintptr_t)c);
	json_t *list = json_array();

	for (struct cube_list *i = own->transfers.next; list != NULL && i != &own->transfers; i = i->next) {
		const struct cube_transfer *t = cube_list_entry(i, struct cube_transfer, link);

		if (t->note != NULL)
			(void)json_array_append_new(list, cube_bytes_json(t->note, strlen(t->note)));
	}
	return list;
}

int cube_transfers_load(struct cube_cube *c, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct cube_buf note = CUBE_BUF(CUBE_INSIDE_MAX + 64);
		int r = cube_bytes_read(json_array_get(list, i), &note);
		const struct cube_transfer_order o = {.path = cube_buf_str(&note)};
		struct cube_transfer *t =
			r == 0 && note.len > 0 && note.data[0] == '/' ? transfer_new(c, &o) : NULL;

		if (t != NULL)
			t->note = cube_strdup(o.path);
		cube_buf_done(&note);
		if (t == NULL || t->note == NULL) {
			if (t != NULL)
				transfer_free(t);
			return r == 0 ? -EINVAL : r;
		}
		t->clean = true;
		cube_cube_unref(
			t->cube); /* as long as it waits here the sandbox keeps it, not the other way round */
		cube_list_push(&cube_own(c)->transfers, &t->link);
	}
	return 0;
}

void cube_transfers_clean(struct cube_cube *c)
{
	cube_list_each (i, &cube_own(c)->transfers) {
		struct cube_transfer *t = cube_list_entry(i, struct cube_transfer, link);

		if (!t->clean || t->work.run != NULL || cube_cube_root_async(c, transfer_rooted, t) < 0)
			continue;
		cube_cube_ref(c);
		cube_use_begin(c);
	}
}

void cube_transfers_free(struct cube_cube *c)
{
	cube_list_each (i, &cube_own(c)->transfers) {
		struct cube_transfer *t = cube_list_entry(i, struct cube_transfer, link);

		t->cube = NULL;
		transfer_free(t);
	}
}
