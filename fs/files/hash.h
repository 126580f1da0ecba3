/* SPDX-License-Identifier: Apache-2.0 */
/* Hash tables whose links lie inside the elements: to add cannot fail, and an element may be in several. The
 * caller compares keys and locks. */
#ifndef CUBEFS_FS_FILES_HASH_H
#define CUBEFS_FS_FILES_HASH_H

#include <stddef.h>
#include <stdint.h>

struct cube_fhash_link {
	struct cube_fhash_link *next;
	uint64_t hash;
};

struct cube_fhash {
	struct cube_fhash_link **slots;
	size_t n_slots; /* a power of two */
	size_t count;
};

int cube_fhash_init(struct cube_fhash *h);  /* -ENOMEM */
void cube_fhash_done(struct cube_fhash *h); /* the elements are the caller's */

void cube_fhash_add(struct cube_fhash *h, struct cube_fhash_link *link, uint64_t hash);
void cube_fhash_remove(struct cube_fhash *h, struct cube_fhash_link *link);
/* The elements of that hash, one after the other; NULL at the end. */
struct cube_fhash_link *cube_fhash_first(const struct cube_fhash *h, uint64_t hash);
struct cube_fhash_link *cube_fhash_next(const struct cube_fhash_link *link);

/* Mixes two numbers into one, each bit of them into all of it. */
uint64_t cube_fhash_mix(uint64_t a, uint64_t b);
uint64_t cube_fhash_text(uint64_t key, const char *s);

#endif
