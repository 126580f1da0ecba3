/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel has one file system for all workers: what the first one agreed with it holds for those that follow. */
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/log.h"
#include "fs/fuse/life.h"

#define LIFE_NOTIFY_POLL  1
#define LIFE_NOTIFY_AGAIN 7 /* Linux 6.9: what was read and not answered comes again */
#define LIFE_NOTIFY_EPOCH 8 /* Linux 6.16: no name is believed any more */

static bool life_in(void *ctx, struct cube_wire_in *m)
{
	struct cube_fuse_life *l = ctx;
	struct cube_keep_head *h = l->keep->head;

	if (m->head->opcode != FUSE_INIT)
		return true;
	l->init = m->head->unique;
	if (l->replays || m->len > sizeof(h->init))
		return true;
	memcpy(h->init, m->head, m->len);
	atomic_store(&h->init_len, (uint32_t)m->len);
	return true;
}

static size_t life_copy(const struct cube_wire_out *m, char *out, size_t size)
{
	size_t at = 0;

	for (int i = 0; i < m->count && at + m->iov[i].iov_len <= size; i++) {
		memcpy(out + at, m->iov[i].iov_base, m->iov[i].iov_len);
		at += m->iov[i].iov_len;
	}
	return at;
}

/* The kernel keeps to what the first reply said. */
static bool life_out(void *ctx, struct cube_wire_out *m)
{
	struct cube_fuse_life *l = ctx;
	struct cube_keep_head *h = l->keep->head;
	char answer[CUBE_KEEP_INIT];
	size_t len;

	if (l->init == 0 || m->head->unique != l->init)
		return true;
	if (!l->replays) {
		len = life_copy(m, h->answer, sizeof(h->answer));
		atomic_store(&h->answer_len, (uint32_t)len);
		return true;
	}
	len = life_copy(m, answer, sizeof(answer));
	if (len != h->answer_len || memcmp(answer, h->answer, len) != 0)
		cube_log(CUBE_LOG_WARNING, "fuse",
			 "this worker would agree on something else with the kernel than the first one did");
	l->init = 0;
	return false;
}

static ssize_t life_first(void *ctx, void *buf, size_t size)
{
	struct cube_fuse_life *l = ctx;
	size_t len = l->keep->head->init_len;

	if (l->given || len == 0 || len > size)
		return 0;
	l->given = true;
	memcpy(buf, l->keep->head->init, len);
	return (ssize_t)len;
}

void cube_fuse_life_add(struct cube_fuse_life *l, struct cube_keep *keep, int fd, struct cube_wire *w)
{
	*l = (struct cube_fuse_life){
		.keep = keep, .fd = fd, .replays = atomic_load(&keep->head->answer_len) > 0};
	cube_wire_add(w, &(struct cube_wire_hook){.ctx = l, .in = life_in, .out = life_out});
	if (l->replays) {
		w->first = life_first;
		w->first_ctx = l;
	}
}

/* Whoever polls looks again. */
static void life_wake_pollers(const struct cube_fuse_life *l)
{
	const struct cube_keep_table *t = &l->keep->handles;

	for (uint32_t i = 0; i < cube_keep_used(t); i++) {
		struct cube_keep_handle *h = cube_keep_at(t, i);
		struct fuse_notify_poll_wakeup_out out;

		if (atomic_load(&h->key) == 0)
			continue;
		out.kh = atomic_exchange(&h->poll, 0);
		if (out.kh-- > 0)
			(void)cube_wire_send(l->fd, 0, LIFE_NOTIFY_POLL, &out, sizeof(out));
	}
}

int cube_fuse_life_go_on(struct cube_fuse_life *l)
{
	int r;

	if (!l->replays)
		return 0;
	(void)cube_wire_send(l->fd, 0, LIFE_NOTIFY_EPOCH, NULL,
			     0); /* without it names are believed for a minute */
	r = cube_wire_send(l->fd, 0, LIFE_NOTIFY_AGAIN, NULL, 0);
	life_wake_pollers(l);
	return r;
}
