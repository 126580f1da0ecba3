/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox is taken from a pool: the line of its template and of who creates, the names that change hands. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/stock_priv.h"
#include "ctl/words.h"

/* ---- Lines ---- */

/* Beside pool= of a create line: what a sandbox that runs already can still get, or (net) is chosen by. */
static const char *const order_keys[] = {"backend", "net"};
static const char *const order_families[] = {"env.", "label."};

static bool order_may(const char *key)
{
	for (size_t i = 0; i < CUBE_COUNT(order_keys); i++)
		if (strcmp(key, order_keys[i]) == 0)
			return true;
	for (size_t i = 0; i < CUBE_COUNT(order_families); i++)
		if (strncmp(key, order_families[i], strlen(order_families[i])) == 0)
			return true;
	return false;
}

static const char *order_value(const struct cube_create_key *keys, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(keys[i].key, key) == 0)
			return keys[i].value;
	return NULL;
}

/* Adds a key, or gives it another value. */
static void order_put(struct cube_stock_order *o, const char *key, const char *value)
{
	for (size_t i = 0; i < o->n; i++) {
		if (strcmp(o->own[i].key, key) == 0) {
			o->own[i].value = value;
			return;
		}
	}
	o->own[o->n++] = (struct cube_create_key){.key = key, .value = value};
}

static int order_word(struct cube_stock_order *o, char *word, struct cube_err *err)
{
	char *eq = strchr(word, '=');

	if (eq == NULL || eq == word)
		return cube_fail(err, -EINVAL,
				 "template: '%.64s' is no key=value (it is a create line without the name)",
				 word);
	*eq = '\0';
	if (strcmp(word, "pool") == 0)
		return cube_fail(err, -EINVAL, "template: a pool is not made from a pool");
	if (strcmp(word, "backend") == 0 && strcmp(eq + 1, o->stock->service->backend->name) != 0)
		return cube_fail(err, -EINVAL, "template: backend=%.64s: this pool is of backend '%s'",
				 eq + 1, o->stock->service->backend->name);
	if (order_value(o->own, o->n, word) != NULL && strcmp(word, "backend") != 0)
		return cube_fail(err, -EINVAL, "template: '%s' is given twice", word);
	order_put(o, word, eq + 1);
	return 0;
}

/* With room for @more keys. */
static int order_begin(struct cube_stock *p, const char *template, size_t more, struct cube_stock_order *o,
		       struct cube_err *err)
{
	unsigned n = 0;
	int r;

	*o = (struct cube_stock_order){.stock = p};
	if (strchr(template, '\n') != NULL)
		return cube_fail(err, -EINVAL, "template: it is one line, a create line without the name");
	r = cube_words_split(template, strlen(template), &o->words, &n, err);
	if (r < 0)
		return r;
	o->own = cube_calloc(n + more + 1, sizeof(*o->own));
	if (o->own == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	o->keys = o->own;
	order_put(o, "backend", p->service->backend->name);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = order_word(o, o->words[i], err);
	return r;
}

int cube_stock_order_template(struct cube_stock *p, const char *template, struct cube_stock_order *ret,
			      struct cube_err *err)
{
	return order_begin(p, template, 0, ret, err);
}

void cube_stock_order_done(struct cube_stock_order *o)
{
	cube_free(o->words);
	cube_free(o->own);
	*o = (struct cube_stock_order){0};
}

/* Of the backend that is named, else of the default one, else of the first that has it. */
static struct cube_stock *order_find(struct cube_domain *d, const char *backend, const char *name)
{
	cube_list_each (i, &d->services) {
		struct cube_service *s = cube_list_entry(i, struct cube_service, link);
		struct cube_stock *p = cube_stock_find(s, name);

		if (p != NULL && (backend == NULL || strcmp(backend, s->backend->name) == 0))
			return p;
	}
	return NULL;
}

int cube_stock_order(struct cube_domain *d, const struct cube_create_key *keys, size_t n,
		     struct cube_stock_order *ret, struct cube_err *err)
{
	const char *name = order_value(keys, n, "pool");
	struct cube_stock *p;

	*ret = (struct cube_stock_order){.keys = keys, .n = n};
	if (name == NULL)
		return 0;
	p = order_find(d, order_value(keys, n, "backend"), name);
	if (p == NULL)
		return cube_fail(err, -ENOENT, "no pool '%.64s' (mkdir backends/NAME/pools/%.64s makes one)",
				 name, name);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i].key, "pool") != 0 && !order_may(keys[i].key))
			return cube_fail(
				err, -EINVAL,
				"%.64s: with pool=%s only env.NAME, label.NAME and net can be given, the "
				"rest is in the pool's template",
				keys[i].key, p->name);
	}
	int r = order_begin(p, p->template, n, ret, err);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (strcmp(keys[i].key, "pool") != 0 && strcmp(keys[i].key, "backend") != 0)
			order_put(ret, keys[i].key, keys[i].value);
	return r;
}

/* ---- Taking ---- */

static struct cube_cube *take_find(struct cube_stock *p, const struct cube_cube *wanted)
{
	cube_list_each (i, &p->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);

		if (cube_stock_is_ready(p, c) && c->net == wanted->net)
			return c;
	}
	return NULL;
}

#define TAKE_SWAP(field)                                                                                     \
	do {                                                                                                 \
		__typeof__(a->field) kept = a->field;                                                        \
                                                                                                             \
		a->field = b->field;                                                                         \
		b->field = kept;                                                                             \
	} while (0)

static void take_swap(struct cube_own *a, struct cube_own *b)
{
	TAKE_SWAP(c.name);
	TAKE_SWAP(c.labels);
	TAKE_SWAP(c.env);
	TAKE_SWAP(env_keys);
	TAKE_SWAP(env_text);
}

struct cube_cube *cube_stock_take(struct cube_stock *p, struct cube_cube *wanted)
{
	struct cube_cube *c = take_find(p, wanted);

	if (c == NULL) {
		wanted->pool_cold = true;
		p->cold++;
		cube_stock_say(p, "cold for '%s': %s", wanted->name,
			       cube_stock_ready(p) > 0 ? "none that is ready has this net" : "none is ready");
		return NULL;
	}
	cube_stock_let_go(c);
	take_swap(cube_own(c), cube_own(wanted));
	cube_own(c)->unseen = false;
	cube_own(c)->keep = false;
	c->env_version++;
	c->phase = CUBE_CREATING;
	c->created_wall = c->used_wall = cube_clock_wall();
	p->taken++;
	cube_stock_say(p, "%s is taken as '%s'", c->uid, c->name);
	return c;
}
