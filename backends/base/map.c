/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps: one open-addressing table behind both kinds of key. */
#include "backends/base/map.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

#include "backends/base/alloc.h"

#define MAP_FIRST 16 /* slots of the first table; always a power of two */

/* A free slot has no value. In a map of strings `key` is the hash of `name`. */
struct map_slot {
	uint64_t key;
	char *name;
	void *value;
};

/* Linear probing, at most three quarters full; removal moves later ones back, so there are no tombstones. */
struct map_table {
	struct map_slot *slots;
	size_t size;
	size_t count;
};

struct cube_map {
	struct map_table t;
};

struct cube_imap {
	struct map_table t;
};

static uint64_t map_seed;

/* Names come from outside: without a seed of our own someone could choose ones that collide. */
static void map_seed_init(void)
{
	if (getrandom(&map_seed, sizeof(map_seed), GRND_NONBLOCK) != (ssize_t)sizeof(map_seed))
		map_seed = (uint64_t)(uintptr_t)&map_seed;
}

/* The finalizer of MurmurHash3: every bit of the key reaches every bit of the slot number. */
static uint64_t map_mix(uint64_t k)
{
	k ^= map_seed;
	k ^= k >> 33;
	k *= UINT64_C(0xff51afd7ed558ccd);
	k ^= k >> 33;
	k *= UINT64_C(0xc4ceb9fe1a85ec53);
	return k ^ k >> 33;
}

static uint64_t map_hash(const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ map_seed; /* FNV-1a */

	for (; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
	return h;
}

static size_t table_home(const struct map_table *t, uint64_t key)
{
	return (size_t)map_mix(key) & (t->size - 1);
}

static int table_init(struct map_table *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, map_seed_init);
	t->slots = cube_calloc(MAP_FIRST, sizeof(*t->slots));
	t->size = MAP_FIRST;
	t->count = 0;
	return t->slots != NULL ? 0 : -ENOMEM;
}

static void table_done(struct map_table *t)
{
	for (size_t i = 0; i < t->size; i++)
		cube_free(t->slots[i].name);
	cube_free(t->slots);
}

/* The slot that holds the key, or the free one where it would be put. @name is NULL for numbers. */
static struct map_slot *table_find(const struct map_table *t, uint64_t key, const char *name)
{
	for (size_t i = table_home(t, key);; i = (i + 1) & (t->size - 1)) {
		struct map_slot *s = &t->slots[i];

		if (s->value == NULL)
			return s;
		if (s->key == key && (name == NULL || strcmp(s->name, name) == 0))
			return s;
	}
}

static int table_grow(struct map_table *t)
{
	struct map_table bigger = {.size = t->size * 2, .count = t->count};

	if (t->count + 1 <= t->size / 4 * 3)
		return 0;
	bigger.slots = cube_calloc(bigger.size, sizeof(*bigger.slots));
	if (bigger.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->size; i++) {
		if (t->slots[i].value != NULL)
			*table_find(&bigger, t->slots[i].key, t->slots[i].name) = t->slots[i];
	}
	cube_free(t->slots);
	*t = bigger;
	return 0;
}

static int table_put(struct map_table *t, uint64_t key, const char *name, void *value)
{
	char *copy = NULL;
	struct map_slot *s;
	int r;

	if (value == NULL)
		return -EINVAL;
	if (table_find(t, key, name)->value != NULL)
		return -EEXIST;
	r = table_grow(t);
	if (r < 0)
		return r;
	if (name != NULL) {
		copy = cube_strdup(name);
		if (copy == NULL)
			return -ENOMEM;
	}
	s = table_find(t, key, name);
	*s = (struct map_slot){.key = key, .name = copy, .value = value};
	t->count++;
	return 0;
}

/* Closes the gap at @hole: an entry behind it may move there unless its home lies between. */
static void table_close_gap(struct map_table *t, size_t hole)
{
	size_t mask = t->size - 1;

	for (size_t i = (hole + 1) & mask; t->slots[i].value != NULL; i = (i + 1) & mask) {
		size_t home = table_home(t, t->slots[i].key);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		t->slots[hole] = t->slots[i];
		hole = i;
	}
	t->slots[hole] = (struct map_slot){.value = NULL};
}

static void *table_take(struct map_table *t, uint64_t key, const char *name)
{
	struct map_slot *s = table_find(t, key, name);
	void *value = s->value;

	if (value == NULL)
		return NULL;
	cube_free(s->name);
	table_close_gap(t, (size_t)(s - t->slots));
	t->count--;
	return value;
}

struct cube_map *cube_map_new(void)
{
	struct cube_map *m = cube_malloc(sizeof(*m));

	if (m != NULL && table_init(&m->t) < 0) {
		cube_free(m);
		return NULL;
	}
	return m;
}

void cube_map_free(struct cube_map *m)
{
	if (m == NULL)
		return;
	table_done(&m->t);
	cube_free(m);
}

int cube_map_put(struct cube_map *m, const char *key, void *value)
{
	return table_put(&m->t, map_hash(key), key, value);
}

void *cube_map_get(const struct cube_map *m, const char *key)
{
	return table_find(&m->t, map_hash(key), key)->value;
}

void *cube_map_take(struct cube_map *m, const char *key)
{
	return table_take(&m->t, map_hash(key), key);
}

size_t cube_map_count(const struct cube_map *m)
{
	return m->t.count;
}

int cube_map_each(const struct cube_map *m, int (*fn)(void *ctx, const char *key, void *value), void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < m->t.size && r == 0; i++) {
		if (m->t.slots[i].value != NULL)
			r = fn(ctx, m->t.slots[i].name, m->t.slots[i].value);
	}
	return r;
}

struct cube_imap *cube_imap_new(void)
{
	struct cube_imap *m = cube_malloc(sizeof(*m));

	if (m != NULL && table_init(&m->t) < 0) {
		cube_free(m);
		return NULL;
	}
	return m;
}

void cube_imap_free(struct cube_imap *m)
{
	if (m == NULL)
		return;
	table_done(&m->t);
	cube_free(m);
}

int cube_imap_put(struct cube_imap *m, uint64_t key, void *value)
{
	return table_put(&m->t, key, NULL, value);
}

void *cube_imap_get(const struct cube_imap *m, uint64_t key)
{
	return table_find(&m->t, key, NULL)->value;
}

void *cube_imap_take(struct cube_imap *m, uint64_t key)
{
	return table_take(&m->t, key, NULL);
}

size_t cube_imap_count(const struct cube_imap *m)
{
	return m->t.count;
}

int cube_imap_each(const struct cube_imap *m, int (*fn)(void *ctx, uint64_t key, void *value), void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < m->t.size && r == 0; i++) {
		if (m->t.slots[i].value != NULL)
			r = fn(ctx, m->t.slots[i].key, m->t.slots[i].value);
	}
	return r;
}
