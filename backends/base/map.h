/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps: from strings and from 64 bit numbers to pointers. Not thread safe. */
#ifndef CUBEFS_BACKENDS_BASE_MAP_H
#define CUBEFS_BACKENDS_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct cube_map;  /* string keys, copied */
struct cube_imap; /* uint64_t keys */

/* NULL when out of memory. free(NULL) is harmless; values belong to the caller throughout. */
struct cube_map *cube_map_new(void);
void cube_map_free(struct cube_map *m);
/* 0, or with nothing changed: -EEXIST, -ENOMEM, -EINVAL (@value must not be NULL). */
int cube_map_put(struct cube_map *m, const char *key, void *value);
void *cube_map_get(const struct cube_map *m, const char *key); /* NULL: not there */
void *cube_map_take(struct cube_map *m, const char *key);      /* removes; NULL: was not there */
size_t cube_map_count(const struct cube_map *m);

struct cube_imap *cube_imap_new(void);
void cube_imap_free(struct cube_imap *m);
int cube_imap_put(struct cube_imap *m, uint64_t key, void *value);
void *cube_imap_get(const struct cube_imap *m, uint64_t key);
void *cube_imap_take(struct cube_imap *m, uint64_t key);
size_t cube_imap_count(const struct cube_imap *m);

/* Visits every entry in no order. A non-zero result of @fn ends the walk and is returned. @fn must
 * not change the map. */
int cube_map_each(const struct cube_map *m, int (*fn)(void *ctx, const char *key, void *value), void *ctx);
int cube_imap_each(const struct cube_imap *m, int (*fn)(void *ctx, uint64_t key, void *value), void *ctx);

#endif
