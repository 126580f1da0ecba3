/* SPDX-License-Identifier: Apache-2.0 */
/* Open files as the kernel knows them. */
#include "fs/fuse/fh.h"

#include "backends/base/alloc.h"

/* Record and use: a close that comes again must not meet what took the record since. */
static uint32_t fh_index(uint64_t fh)
{
	return (uint32_t)fh - 1;
}

static bool fh_ok(const struct cube_fh *t, uint64_t fh)
{
	const struct cube_keep_handle *k;

	if ((uint32_t)fh == 0 || (uint32_t)fh > CUBE_FH_CHUNK * CUBE_FH_CHUNKS)
		return false;
	k = cube_keep_at(&t->keep->handles, fh_index(fh));
	return k->use == fh >> 32;
}

static uint64_t fh_number(const struct cube_fh *t, uint32_t i)
{
	const struct cube_keep_handle *k = cube_keep_at(&t->keep->handles, i);

	return ((uint64_t)k->use << 32) | (i + 1);
}

void cube_fh_init(struct cube_fh *t, struct cube_keep *keep)
{
	t->keep = keep;
	(void)pthread_mutex_init(&t->lock, NULL);
	for (unsigned i = 0; i < CUBE_FH_CHUNKS; i++)
		atomic_init(&t->chunks[i], NULL);
}

void cube_fh_done(struct cube_fh *t)
{
	for (unsigned i = 0; i < CUBE_FH_CHUNKS; i++)
		cube_free(atomic_load(&t->chunks[i]));
	(void)pthread_mutex_destroy(&t->lock);
}

static struct cube_fh_chunk *fh_chunk(struct cube_fh *t, unsigned i)
{
	struct cube_fh_chunk *chunk = atomic_load(&t->chunks[i]);

	if (chunk != NULL)
		return chunk;
	(void)pthread_mutex_lock(&t->lock);
	chunk = atomic_load(&t->chunks[i]);
	if (chunk == NULL) {
		chunk = cube_calloc(1, sizeof(*chunk));
		atomic_store(&t->chunks[i], chunk);
	}
	(void)pthread_mutex_unlock(&t->lock);
	return chunk;
}

uint64_t cube_fh_take(struct cube_fh *t, struct cube_keep_handle **ret)
{
	uint32_t i = cube_keep_take(&t->keep->handles);

	if (i == CUBE_KEEP_NONE)
		return 0;
	if (fh_chunk(t, i / CUBE_FH_CHUNK) == NULL) {
		cube_keep_give(&t->keep->handles, i);
		return 0;
	}
	*ret = cube_keep_at(&t->keep->handles, i);
	(*ret)->use++;
	return fh_number(t, i);
}

void cube_fh_give(struct cube_fh *t, uint64_t fh)
{
	if (!fh_ok(t, fh))
		return;
	cube_fh_set(t, fh, NULL);
	cube_keep_give(&t->keep->handles, fh_index(fh));
}

void cube_fh_set(struct cube_fh *t, uint64_t fh, void *what)
{
	struct cube_fh_chunk *chunk = fh_ok(t, fh) ? fh_chunk(t, fh_index(fh) / CUBE_FH_CHUNK) : NULL;

	if (chunk != NULL)
		atomic_store(&chunk->what[fh_index(fh) % CUBE_FH_CHUNK], what);
}

void cube_fh_adopt(struct cube_fh *t, uint32_t record, void *what)
{
	cube_fh_set(t, fh_number(t, record), what);
}

void *cube_fh_get(struct cube_fh *t, uint64_t fh)
{
	struct cube_fh_chunk *chunk =
		fh_ok(t, fh) ? atomic_load(&t->chunks[fh_index(fh) / CUBE_FH_CHUNK]) : NULL;

	return chunk != NULL ? atomic_load(&chunk->what[fh_index(fh) % CUBE_FH_CHUNK]) : NULL;
}

struct cube_keep_handle *cube_fh_record(struct cube_fh *t, uint64_t fh)
{
	return fh_ok(t, fh) ? cube_keep_at(&t->keep->handles, fh_index(fh)) : NULL;
}

uint64_t cube_fh_opened(struct cube_fh *t, uint64_t unique)
{
	for (uint32_t i = 0; i < cube_keep_used(&t->keep->handles); i++) {
		const struct cube_keep_handle *h = cube_keep_at(&t->keep->handles, i);

		if (atomic_load(&h->key) != 0 && h->opened == unique)
			return fh_number(t, i);
	}
	return 0;
}

uint64_t cube_fh_add(struct cube_fh *t, const struct cube_fh_real *real)
{
	struct cube_keep_handle *h;
	uint64_t fh = cube_fh_take(t, &h);

	if (fh == 0)
		return 0;
	h->opened = real->unique;
	h->kind = real->kind;
	h->flags = real->flags;
	h->fd = real->fd;
	h->backing = real->backing;
	h->shown_ino = real->shown_ino;
	h->in.fd = h->text.fd = -1;
	atomic_store(&h->poll, 0);
	cube_fh_set(t, fh, real->what);
	atomic_store(&h->key, real->node);
	return fh;
}
