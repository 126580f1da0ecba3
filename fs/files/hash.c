/* SPDX-License-Identifier: Apache-2.0 */
/* Chained hash tables with links inside the elements. */
#include "fs/files/hash.h"

#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"

#define HASH_SLOTS 256

int cube_fhash_init(struct cube_fhash *h)
{
	h->slots = cube_calloc(HASH_SLOTS, sizeof(struct cube_fhash_link *));
	h->n_slots = HASH_SLOTS;
	h->count = 0;
	return h->slots == NULL ? -ENOMEM : 0;
}

void cube_fhash_done(struct cube_fhash *h)
{
	cube_free(h->slots);
	h->slots = NULL;
	h->count = 0;
}

static void hash_insert(struct cube_fhash *h, struct cube_fhash_link *link)
{
	struct cube_fhash_link **slot = &h->slots[link->hash & (h->n_slots - 1)];

	link->next = *slot;
	*slot = link;
}

/* Twice as many slots. Without memory the chains just get longer. */
static void hash_grow(struct cube_fhash *h)
{
	struct cube_fhash_link **old = h->slots, *link, *next;
	size_t n_old = h->n_slots;
	struct cube_fhash_link **slots = cube_calloc(n_old * 2, sizeof(struct cube_fhash_link *));

	if (slots == NULL)
		return;
	h->slots = slots;
	h->n_slots = n_old * 2;
	for (size_t i = 0; i < n_old; i++) {
		for (link = old[i]; link != NULL; link = next) {
			next = link->next;
			hash_insert(h, link);
		}
	}
	cube_free(old);
}

void cube_fhash_add(struct cube_fhash *h, struct cube_fhash_link *link, uint64_t hash)
{
	if (h->count >= h->n_slots)
		hash_grow(h);
	link->hash = hash;
	hash_insert(h, link);
	h->count++;
}

void cube_fhash_remove(struct cube_fhash *h, struct cube_fhash_link *link)
{
	struct cube_fhash_link **at = &h->slots[link->hash & (h->n_slots - 1)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	h->count--;
}

static struct cube_fhash_link *hash_from(struct cube_fhash_link *link, uint64_t hash)
{
	while (link != NULL && link->hash != hash)
		link = link->next;
	return link;
}

struct cube_fhash_link *cube_fhash_first(const struct cube_fhash *h, uint64_t hash)
{
	return hash_from(h->slots[hash & (h->n_slots - 1)], hash);
}

struct cube_fhash_link *cube_fhash_next(const struct cube_fhash_link *link)
{
	return hash_from(link->next, link->hash);
}

uint64_t cube_fhash_mix(uint64_t a, uint64_t b)
{
	uint64_t x = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));

	/* the finalizer of SplitMix64, twice: each input bit reaches each output bit */
	for (int i = 0; i < 2; i++) {
		x += UINT64_C(0x9e3779b97f4a7c15);
		x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
		x ^= x >> 31;
	}
	return x;
}

uint64_t cube_fhash_text(uint64_t key, const char *s)
{
	size_t len = strlen(s);
	uint64_t h = key ^ len;

	while (len > 0) {
		uint64_t word = 0;
		size_t n = len < sizeof(word) ? len : sizeof(word);

		memcpy(&word, s, n);
		h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
		s += n;
		len -= n;
	}
	return cube_fhash_mix(h, key);
}
