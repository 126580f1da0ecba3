/* SPDX-License-Identifier: Apache-2.0 */
/* What differs, from the backend's words to a file. */
#include "ctl/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/ctl_priv.h"

#define CHANGES_PIECE ((size_t)64 << 10) /* bytes that are written at once */
#define HASH_FIRST    UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME    UINT64_C(0x100000001b3)

struct cube_changes_ask {
	struct cube_work work;
	struct cube_cube *cube; /* referenced */
	struct cube_cancel *cancel;
	char id[CUBE_ID_MAX + 1];
	char cp[CUBE_ID_MAX + 1], base[CUBE_ID_MAX + 1]; /* "": none */
	struct cube_changes_text *text;
	struct cube_buf piece; /* not written yet */
	int failed;            /* of writing it */
	void (*done)(void *ctx, int code, struct cube_changes_text *text, const struct cube_err *err);
	void *ctx;
};

void cube_changes_text_free(struct cube_changes_text *t)
{
	if (t == NULL)
		return;
	cube_close_auto(&t->fd);
	cube_free(t);
}

static void ask_free(struct cube_changes_ask *a)
{
	cube_changes_text_free(a->text);
	cube_buf_done(&a->piece);
	cube_cancel_unref(a->cancel);
	cube_cube_unref(a->cube);
	cube_free(a);
}

/* ---- Writing: no lock ---- */

static void ask_write(struct cube_changes_ask *a)
{
	int r = a->piece.error != 0 ? a->piece.error
				    : cube_file_write_all(a->text->fd, cube_buf_str(&a->piece), a->piece.len);

	for (size_t i = 0; i < a->piece.len; i++)
		a->text->hash = (a->text->hash ^ (unsigned char)a->piece.data[i]) * HASH_PRIME;
	a->text->size += a->piece.len;
	cube_buf_reset(&a->piece);
	if (r < 0 && a->failed == 0) {
		a->failed = r;
		cube_cancel_fire(a->cancel); /* the rest is for nobody */
	}
}

static void ask_each(void *ctx, char kind, const char *path)
{
	struct cube_changes_ask *a = ctx;

	if (a->failed != 0)
		return;
	cube_buf_addc(&a->piece, kind);
	cube_buf_addc(&a->piece, ' ');
	for (const char *at = path; *at != '\0'; at++) {
		if (*at == '\n')
			cube_buf_adds(&a->piece, "\\n");
		else if (*at == '\\')
			cube_buf_adds(&a->piece, "\\\\");
		else
			cube_buf_addc(&a->piece, *at);
	}
	cube_buf_addc(&a->piece, '\n');
	if (a->piece.len >= CHANGES_PIECE || a->piece.error != 0)
		ask_write(a);
}

/* A file that has no name any more: whatever becomes of the daemon, nothing is left of it. */
static int ask_open(struct cube_changes_ask *a, struct cube_err *err)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "changes.%llx", (unsigned long long)(uintptr_t)a);
	a->text->fd =
		openat(a->cube->dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (a->text->fd < 0)
		return cube_fail_errno(err, "changes: a file for them");
	(void)unlinkat(a->cube->dir_fd, name, 0);
	return 0;
}

static int ask_answer(struct cube_changes_ask *a, struct cube_err *err)
{
	const struct cube_changes what = {.id = a->id,
					  .cp = a->cp[0] != '\0' ? a->cp : NULL,
					  .base = a->base[0] != '\0' ? a->base : NULL,
					  .each = ask_each,
					  .ctx = a};
	int r = ask_open(a, err);

	if (r == 0)
		r = cube_backend_changes(a->cube->service->backend, &what, a->cancel, err);
	if (r == 0 && a->piece.len > 0)
		ask_write(a);
	if (a->failed != 0)
		r = cube_fail(err, a->failed, "changes: the file for them: %s", cube_errno_text(a->failed));
	return r;
}

static void ask_run(struct cube_work *w)
{
	struct cube_changes_ask *a = cube_container_of(w, struct cube_changes_ask, work);
	struct cube_domain *d = a->cube->domain;
	struct cube_err err = {0};
	int r = ask_answer(a, &err);

	cube_domain_enter(d);
	if (a->done != NULL)
		a->done(a->ctx, r, r == 0 ? cube_steal(a->text) : NULL, &err);
	ask_free(a);
	cube_task_end(d);
	cube_domain_leave(d);
}

/* ---- Asking ---- */

int cube_changes_begin(struct cube_cube *c, const char *cp, const char *base,
		       void (*done)(void *ctx, int code, struct cube_changes_text *text,
				    const struct cube_err *err),
		       void *ctx, struct cube_changes_ask **ret, struct cube_err *err)
{
	struct cube_changes_ask *a;

	if (c->domain->closing || c->phase == CUBE_REMOVED)
		return cube_fail(err, -EHOSTDOWN, "changes: sandbox '%s': %s", c->name,
				 c->domain->closing ? "the daemon is ending" : "it is being destroyed");
	a = cube_calloc(1, sizeof(*a));
	if (a == NULL)
		return cube_fail(err, -ENOMEM, "changes: out of memory");
	cube_buf_init(&a->piece, 4 * CHANGES_PIECE);
	a->cube = cube_cube_ref(c);
	a->cancel = cube_cancel_new();
	a->text = cube_calloc(1, sizeof(*a->text));
	if (a->cancel == NULL || a->text == NULL) {
		cube_free(cube_steal(a->text));
		ask_free(a);
		return cube_fail(err, -ENOMEM, "changes: out of memory");
	}
	*a->text = (struct cube_changes_text){.fd = -1, .hash = HASH_FIRST};
	(void)snprintf(a->id, sizeof(a->id), "%s", c->id != NULL ? c->id : "");
	(void)snprintf(a->cp, sizeof(a->cp), "%s", cp != NULL ? cp : "");
	(void)snprintf(a->base, sizeof(a->base), "%s", base != NULL ? base : "");
	a->done = done;
	a->ctx = ctx;
	a->work = (struct cube_work){.run = ask_run, .key = cube_backend_queue_key(c->service->backend, c)};
	cube_task_submit(c->domain, &a->work);
	*ret = a;
	return 0;
}

void cube_changes_leave(struct cube_changes_ask *a)
{
	a->done = NULL;
	cube_cancel_fire(a->cancel);
}
