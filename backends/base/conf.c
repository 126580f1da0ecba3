/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file. inih takes a line apart (key, value, comments); what it would let pass or lose is
 * done here, in the function that hands it the lines: section headers (it does not tell of them, so that
 * empty and repeated ones would go unseen), lines that are too long for it (it would cut them in two), a NUL
 * (it would end there), indented lines (it would take them for the rest of the value above). */
#include "backends/base/conf.h"

#include <errno.h>
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/map.h"

#define CONF_MAX  (1024 * 1024)
#define CONF_LINE 8192 /* bytes, where the library can be told so */

/* Debian's library can be told at run time; others are built for 200. */
extern int ini_max_line __attribute__((weak));

/* Objects in order and by name. */
struct conf_items {
	void **at;
	size_t count, cap;
	struct cube_map *by_name;
};

struct conf_value {
	char *key, *value;
	unsigned line;
};

struct cube_conf_section {
	const struct cube_conf *conf;
	char *name;
	struct conf_items values; /* struct conf_value */
};

struct cube_conf {
	char *what;
	struct conf_items sections; /* struct cube_conf_section */
};

struct conf_reader {
	struct cube_conf *conf;
	struct cube_conf_section *section; /* that is being read; NULL before the first */
	const char *next, *end;
	unsigned line;
	bool taken; /* the line that inih has was one: it called back */
	int error;  /* first failure; nothing is read after it */
	struct cube_err *err;
};

/* ---- what is kept ---- */

static int items_init(struct conf_items *items)
{
	items->by_name = cube_map_new();
	return items->by_name != NULL ? 0 : -ENOMEM;
}

static void items_done(struct conf_items *items)
{
	cube_free(items->at);
	cube_map_free(items->by_name);
}

/* -EEXIST: the name is taken. */
static int items_add(struct conf_items *items, const char *name, void *item)
{
	int r;

	if (items->count == items->cap) {
		size_t cap = items->cap > 0 ? items->cap * 2 : 8;
		void **at = cube_realloc(items->at, cap * sizeof(*at));

		if (at == NULL)
			return -ENOMEM;
		items->at = at;
		items->cap = cap;
	}
	r = cube_map_put(items->by_name, name, item);
	if (r == 0)
		items->at[items->count++] = item;
	return r;
}

static void *items_at(const struct conf_items *items, size_t index)
{
	return index < items->count ? items->at[index] : NULL;
}

static void value_free(struct conf_value *v)
{
	cube_free(v->key);
	cube_free(v->value);
	cube_free(v);
}

static void section_free(struct cube_conf_section *s)
{
	for (size_t i = 0; i < s->values.count; i++)
		value_free(s->values.at[i]);
	items_done(&s->values);
	cube_free(s->name);
	cube_free(s);
}

void cube_conf_free(struct cube_conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->sections.count; i++)
		section_free(c->sections.at[i]);
	items_done(&c->sections);
	cube_free(c->what);
	cube_free(c);
}

static struct cube_conf *conf_new(const char *what)
{
	struct cube_conf *c = cube_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->what = cube_strdup(what);
	if (c->what == NULL || items_init(&c->sections) < 0) {
		cube_conf_free(c);
		return NULL;
	}
	return c;
}

/* ---- reading ---- */

static int reader_fail(struct conf_reader *rd, int error, const char *why)
{
	rd->error = cube_fail(rd->err, error, "%s line %u: %s", rd->conf->what, rd->line, why);
	return rd->error;
}

static int reader_fail_twice(struct conf_reader *rd, const char *what, const char *name)
{
	rd->error = cube_fail(rd->err, -EINVAL, "%s line %u: %s '%s' is there twice", rd->conf->what,
			      rd->line, what, name);
	return rd->error;
}

static int reader_add_section(struct conf_reader *rd, const char *name, size_t len)
{
	struct cube_conf_section *s = cube_calloc(1, sizeof(*s));
	int r = s != NULL ? items_init(&s->values) : -ENOMEM;

	if (r == 0) {
		s->conf = rd->conf;
		s->name = cube_strndup(name, len);
		r = s->name != NULL ? items_add(&rd->conf->sections, s->name, s) : -ENOMEM;
	}
	if (r == 0) {
		rd->section = s;
		return 0;
	}
	if (r == -EEXIST)
		(void)reader_fail_twice(rd, "section", s->name);
	else
		(void)reader_fail(rd, r, "out of memory");
	if (s != NULL)
		section_free(s);
	return r;
}

static int reader_add_value(struct conf_reader *rd, const char *key, const char *value)
{
	struct conf_value *v = cube_calloc(1, sizeof(*v));
	int r = -ENOMEM;

	if (v != NULL) {
		v->line = rd->line;
		v->key = cube_strdup(key);
		v->value = cube_strdup(value);
		if (v->key != NULL && v->value != NULL)
			r = items_add(&rd->section->values, v->key, v);
	}
	if (r == 0)
		return 0;
	if (r == -EEXIST)
		(void)reader_fail_twice(rd, "key", key);
	else
		(void)reader_fail(rd, r, "out of memory");
	if (v != NULL)
		value_free(v);
	return r;
}

/* inih found a key and a value in the line that it was handed last. Non-zero: go on. */
static int reader_value(void *user, const char *section, const char *key, const char *value)
{
	struct conf_reader *rd = user;

	(void)section; /* cut at 49 bytes: rd->section has all of it */
	rd->taken = true;
	if (rd->error != 0)
		return 0;
	if (*key == '\0')
		return reader_fail(rd, -EINVAL, "there is no key before the '='") == 0;
	if (rd->section == NULL && reader_add_section(rd, "", 0) < 0)
		return 0;
	return reader_add_value(rd, key, value) == 0;
}

static bool line_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* A line that starts with '['. */
static int reader_header(struct conf_reader *rd, const char *s, size_t len)
{
	const char *end = memchr(s, ']', len), *name = s + 1, *behind;
	size_t name_len;

	if (end == NULL)
		return reader_fail(rd, -EINVAL, "the section's name has no ']' behind");
	for (behind = end + 1; behind < s + len && line_blank(*behind); behind++)
		;
	if (behind < s + len && *behind != ';' && *behind != '#')
		return reader_fail(rd, -EINVAL, "there is something behind the section's ']'");
	for (; name < end && line_blank(*name); name++)
		;
	for (name_len = (size_t)(end - name); name_len > 0 && line_blank(name[name_len - 1]); name_len--)
		;
	if (name_len == 0)
		return reader_fail(rd, -EINVAL, "a section needs a name");
	return reader_add_section(rd, name, name_len);
}

/* Looks at the next line: *ret_s without blanks at its ends, its length in *ret_len. */
static void reader_next(struct conf_reader *rd, const char **ret_s, size_t *ret_len)
{
	const char *s = rd->next, *end = memchr(s, '\n', (size_t)(rd->end - s));

	if (end == NULL)
		end = rd->end;
	rd->next = end < rd->end ? end + 1 : end;
	rd->line++;
	while (s < end && line_blank(*s))
		s++;
	while (end > s && line_blank(end[-1]))
		end--;
	*ret_s = s;
	*ret_len = (size_t)(end - s);
}

/* inih tells only at its end that a line was none, and only of the first. */
static void reader_check_taken(struct conf_reader *rd)
{
	if (rd->error == 0 && !rd->taken)
		(void)reader_fail(rd, -EINVAL, "neither [section] nor key = value nor a comment");
	rd->taken = true;
}

/* fgets for inih: the next line that has a key, into the @size bytes at @str. */
static char *reader_line(char *str, int size, void *stream)
{
	struct conf_reader *rd = stream;

	reader_check_taken(rd);
	while (rd->error == 0 && rd->next < rd->end) {
		const char *s;
		size_t len;

		reader_next(rd, &s, &len);
		if (memchr(s, '\0', len) != NULL) {
			(void)reader_fail(rd, -EINVAL, "there is a NUL in it");
		} else if (len >= (size_t)size) {
			(void)reader_fail(rd, -EINVAL, "the line is too long");
		} else if (len > 0 && *s == '[') {
			(void)reader_header(rd, s, len);
		} else if (len > 0 && *s != ';' && *s != '#') {
			memcpy(str, s, len);
			str[len] = '\0';
			rd->taken = false;
			return str;
		}
	}
	return NULL;
}

static void conf_tell_inih(void)
{
	if (&ini_max_line != NULL)
		ini_max_line = CONF_LINE;
}

int cube_conf_parse(const char *text, size_t len, const char *what, struct cube_conf **ret,
		    struct cube_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const char bom[] = "\xef\xbb\xbf";
	struct conf_reader rd = {.taken = true, .err = err};
	int r;

	if (len > CONF_MAX)
		return cube_fail(err, -EINVAL, "%s is larger than %d bytes", what, CONF_MAX);
	if (len >= strlen(bom) && memcmp(text, bom, strlen(bom)) == 0) {
		text += strlen(bom);
		len -= strlen(bom);
	}
	(void)pthread_once(&once, conf_tell_inih);
	rd.conf = conf_new(what);
	if (rd.conf == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", what);
	rd.next = text;
	rd.end = text + len;
	r = ini_parse_stream(reader_line, &rd, reader_value, &rd);
	reader_check_taken(&rd);     /* some builds of inih stop at the first error */
	if (r != 0 && rd.error == 0) /* inih's own: no memory for its line */
		(void)reader_fail(&rd, r == -2 ? -ENOMEM : -EINVAL, "cannot be read");
	if (rd.error != 0) {
		cube_conf_free(rd.conf);
		return rd.error;
	}
	*ret = rd.conf;
	return 0;
}

/* ---- looking ---- */

const struct cube_conf_section *cube_conf_find(const struct cube_conf *c, const char *section)
{
	return cube_map_get(c->sections.by_name, section);
}

const struct cube_conf_section *cube_conf_at(const struct cube_conf *c, size_t index)
{
	return items_at(&c->sections, index);
}

const char *cube_conf_section_name(const struct cube_conf_section *s)
{
	return s->name;
}

const char *cube_conf_get(const struct cube_conf_section *s, const char *key)
{
	const struct conf_value *v = s != NULL ? cube_map_get(s->values.by_name, key) : NULL;

	return v != NULL ? v->value : NULL;
}

const char *cube_conf_key(const struct cube_conf_section *s, size_t index)
{
	const struct conf_value *v = s != NULL ? items_at(&s->values, index) : NULL;

	return v != NULL ? v->key : NULL;
}

int cube_conf_check(const struct cube_conf_section *s, const char *const *known, struct cube_err *err)
{
	for (size_t i = 0; s != NULL && i < s->values.count; i++) {
		const struct conf_value *v = s->values.at[i];
		size_t k = 0;

		while (known[k] != NULL && strcmp(known[k], v->key) != 0)
			k++;
		if (known[k] == NULL)
			return cube_fail(err, -EINVAL, "%s line %u: unknown key '%s' in section [%s]",
					 s->conf->what, v->line, v->key, s->name);
	}
	return 0;
}
