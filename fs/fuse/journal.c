/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that must not be done twice. */
#include "fs/fuse/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>

#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "fs/files/files.h"

/* A request's record is one of so many, beginning at a place that its number says. */
#define JOURNAL_WINDOW 32

static const bool journal_ops[] = {
	[FUSE_MKNOD] = true,    [FUSE_MKDIR] = true,       [FUSE_UNLINK] = true,  [FUSE_RMDIR] = true,
	[FUSE_RENAME] = true,   [FUSE_RENAME2] = true,     [FUSE_LINK] = true,    [FUSE_SYMLINK] = true,
	[FUSE_CREATE] = true,   [FUSE_OPEN] = true,        [FUSE_WRITE] = true,   [FUSE_FLUSH] = true,
	[FUSE_SETXATTR] = true, [FUSE_REMOVEXATTR] = true, [FUSE_OPENDIR] = true, [FUSE_FALLOCATE] = true,
};

static _Thread_local struct cube_fuse_journal_now journal_served;

struct cube_fuse_journal_now cube_fuse_journal_now(void)
{
	return journal_served;
}

static struct cube_keep_call *journal_slot(const struct cube_fuse_journal *j, uint64_t unique, unsigned i)
{
	uint32_t at = (uint32_t)(unique >> 1) + i; /* the kernel's numbers are even */

	return cube_keep_at(&j->keep->calls, at % j->keep->calls.max);
}

static struct cube_keep_call *journal_find(const struct cube_fuse_journal *j, uint64_t unique)
{
	for (unsigned i = 0; i < JOURNAL_WINDOW; i++) {
		struct cube_keep_call *c = journal_slot(j, unique, i);

		if (atomic_load_explicit(&c->key, memory_order_acquire) == unique)
			return c;
	}
	return NULL;
}

/* Answers that a worker before has given, and had no time to forget. */
static bool journal_stale(const struct cube_fuse_journal *j, const struct cube_keep_call *c)
{
	return atomic_load(&c->stage) == CUBE_KEEP_DONE && c->life + 1 < atomic_load(&j->keep->head->lives);
}

/* Where the window is full of what is under way it is served without a record. */
static void journal_begin(const struct cube_fuse_journal *j, uint64_t unique)
{
	for (unsigned i = 0; i < JOURNAL_WINDOW; i++) {
		struct cube_keep_call *c = journal_slot(j, unique, i);
		uint64_t key = atomic_load_explicit(&c->key, memory_order_relaxed);

		if (key != 0 && !journal_stale(j, c))
			continue;
		if (!atomic_compare_exchange_strong(&c->key, &key, UINT64_MAX))
			continue;
		c->life = atomic_load_explicit(&j->keep->head->lives, memory_order_relaxed);
		c->has_aux = 0;
		atomic_store_explicit(&c->stage, CUBE_KEEP_STARTED, memory_order_relaxed);
		atomic_store_explicit(&c->key, unique, memory_order_release);
		return;
	}
}

static void journal_repeat(const struct cube_fuse_journal *j, struct cube_keep_call *c, uint64_t unique)
{
	const struct fuse_out_header *head = (const void *)c->reply;
	int r = cube_wire_send(j->fd, unique, head->error, c->reply + sizeof(*head), c->len - sizeof(*head));

	if (r < 0 && r != -ENOENT)
		cube_log(CUBE_LOG_ERROR, "fuse", "an answer cannot be given again: %s", cube_errno_text(r));
	atomic_store(&c->key, 0);
}

/* Of writes to real files those need a record that go to the end, wherever that is. */
static bool journal_wanted(const struct fuse_in_header *h)
{
	const struct fuse_write_in *w = (const void *)(h + 1);

	if (h->opcode >= CUBE_COUNT(journal_ops) || !journal_ops[h->opcode])
		return false;
	if (!(h->nodeid & CUBE_FILES_ID))
		return true;
	if (h->opcode == FUSE_WRITE)
		return h->len >= sizeof(*h) + sizeof(*w) && (w->flags & O_APPEND) != 0;
	return h->opcode != FUSE_FLUSH;
}

/* A poller's number must outlive the worker that was to wake it. */
static void journal_poll(const struct cube_fuse_journal *j, const struct fuse_in_header *h)
{
	const struct fuse_poll_in *p = (const void *)(h + 1);
	struct cube_keep_handle *k;

	if (h->len < sizeof(*h) + sizeof(*p) || !(p->flags & FUSE_POLL_SCHEDULE_NOTIFY) ||
	    (uint32_t)p->fh == 0 || (uint32_t)p->fh > j->keep->handles.max)
		return;
	k = cube_keep_at(&j->keep->handles, (uint32_t)p->fh - 1);
	atomic_store(&k->poll, p->kh + 1);
}

static bool journal_in(void *ctx, struct cube_wire_in *m)
{
	struct cube_fuse_journal *j = ctx;
	uint64_t unique = m->head->unique & ~CUBE_WIRE_RESENT;
	struct cube_keep_call *c = NULL;

	journal_served = (struct cube_fuse_journal_now){.unique = unique};
	if (m->head->opcode == FUSE_POLL)
		journal_poll(j, m->head);
	if (m->head->unique & CUBE_WIRE_RESENT) {
		journal_served.resent = true;
		c = journal_find(j, unique);
	}
	if (c != NULL && atomic_load(&c->stage) == CUBE_KEEP_DONE) {
		journal_repeat(j, c, m->head->unique);
		return false;
	}
	journal_served.again = c != NULL;
	if (c == NULL && journal_wanted(m->head))
		journal_begin(j, unique);
	return true;
}

/* Its answer: kept before it is given. */
static bool journal_out(void *ctx, struct cube_wire_out *m)
{
	struct cube_fuse_journal *j = ctx;
	struct cube_keep_call *c;
	size_t at = 0;

	if (m->head->unique == 0 || m->head->len > CUBE_KEEP_REPLY)
		return true;
	c = journal_find(j, m->head->unique & ~CUBE_WIRE_RESENT);
	if (c == NULL)
		return true;
	for (int i = 0; i < m->count; i++) {
		memcpy(c->reply + at, m->iov[i].iov_base, m->iov[i].iov_len);
		at += m->iov[i].iov_len;
	}
	c->len = (uint32_t)at;
	atomic_store_explicit(&c->stage, CUBE_KEEP_DONE, memory_order_release);
	return true;
}

static void journal_written(void *ctx, const struct cube_wire_out *m, int code)
{
	struct cube_fuse_journal *j = ctx;
	struct cube_keep_call *c;

	(void)code; /* -ENOENT: nobody will ask again */
	if (m->head->unique == 0 || m->head->len > CUBE_KEEP_REPLY)
		return;
	c = journal_find(j, m->head->unique & ~CUBE_WIRE_RESENT);
	if (c != NULL)
		atomic_store_explicit(&c->key, 0, memory_order_release);
}

void cube_fuse_journal_note(struct cube_fuse_journal *j, uint64_t unique, uint64_t number)
{
	struct cube_keep_call *c = journal_find(j, unique);

	if (c == NULL)
		return;
	c->aux = number;
	atomic_thread_fence(memory_order_release);
	c->has_aux = 1;
}

bool cube_fuse_journal_noted(struct cube_fuse_journal *j, uint64_t unique, uint64_t *ret)
{
	const struct cube_keep_call *c = journal_find(j, unique);

	if (c == NULL || c->has_aux == 0)
		return false;
	*ret = c->aux;
	return true;
}

void cube_fuse_journal_add(struct cube_fuse_journal *j, struct cube_keep *keep, int fd, struct cube_wire *w)
{
	*j = (struct cube_fuse_journal){.keep = keep, .fd = fd};
	atomic_store(keep->calls.used, keep->calls.max);
	cube_wire_add(w, &(struct cube_wire_hook){
				 .ctx = j, .in = journal_in, .out = journal_out, .written = journal_written});
}
