/* SPDX-License-Identifier: Apache-2.0 */
/* Names of templates, and the files of a template that are written as a whole. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/name.h"
#include "ctl/ctl_priv.h"
#include "ctl/recipe.h"

#define ALIAS_IMAGE "image:"
#define ALIASES_MAX 64

bool cube_template_alias_ok(const char *word)
{
	size_t n = strnlen(word, CUBE_TEMPLATE_ALIAS_MAX + 1);

	if (cube_name_template_ok(word))
		return true;
	if (strncmp(word, ALIAS_IMAGE, strlen(ALIAS_IMAGE)) != 0 || n > CUBE_TEMPLATE_ALIAS_MAX ||
	    word[strlen(ALIAS_IMAGE)] == '\0')
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)word[i] <= ' ' || (unsigned char)word[i] >= 0x7f)
			return false;
	return true;
}

/* ---- looking up ---- */

/* The next line behind @at, without its newline; false at the end. */
static bool text_line(const char *text, size_t len, size_t *at, const char **ret, size_t *ret_len)
{
	const char *end;

	if (*at >= len)
		return false;
	*ret = text + *at;
	end = memchr(*ret, '\n', len - *at);
	*ret_len = end != NULL ? (size_t)(end - *ret) : len - *at;
	*at += *ret_len + 1;
	return true;
}

static bool text_has(const struct cube_buf *text, const char *word)
{
	const char *line;
	size_t at = 0, n;

	while (text_line(cube_buf_str(text), text->len, &at, &line, &n))
		if (n == strlen(word) && memcmp(line, word, n) == 0)
			return true;
	return false;
}

struct cube_template_entry *cube_template_named(struct cube_service *s, const char *word)
{
	struct cube_template_entry *t = cube_template_find(s, word);

	if (t != NULL)
		return t;
	cube_list_each (i, &s->templates) {
		t = cube_list_entry(i, struct cube_template_entry, link);
		if (text_has(&t->texts[CUBE_TEMPLATE_ALIASES], word))
			return t;
	}
	return NULL;
}

/* ---- checking ---- */

/* One that is there already is not taken away from whoever has it. */
static int alias_check(const struct cube_template_entry *t, const char *word, struct cube_err *err)
{
	const struct cube_template_entry *other;

	if (!cube_template_alias_ok(word))
		return cube_fail(err, -EINVAL,
				 "'%s' is no alias: a name of a template, or image:REFERENCE, one a line",
				 word);
	other = cube_template_named(t->service, word);
	if (other != NULL && other != t)
		return cube_fail(err, -EEXIST, "'%s' is template '%s' of backend '%s' already", word,
				 other->info.name, t->service->backend->name);
	return 0;
}

static int aliases_check(const struct cube_template_entry *t, const char *text, size_t len, bool final,
			 struct cube_err *err)
{
	char word[CUBE_TEMPLATE_ALIAS_MAX + 2];
	const char *line;
	size_t at = 0, n, count = 0;
	int r = 0;

	while (r == 0 && text_line(text, len, &at, &line, &n)) {
		if (n == 0 || (!final && at > len))
			continue;
		(void)snprintf(word, sizeof(word), "%.*s", (int)n, line);
		r = alias_check(t, word, err);
		if (r == 0 && ++count > ALIASES_MAX)
			r = cube_fail(err, -EINVAL, "more than %d aliases", ALIASES_MAX);
	}
	return r;
}

static int build_check(const char *text, size_t len, bool final, struct cube_err *err)
{
	struct cube_recipe recipe;
	int r = cube_recipe_parse(text, len, final, &recipe, err);

	if (r == 0)
		cube_recipe_done(&recipe);
	return r;
}

int cube_template_check_text(const struct cube_template_entry *t, enum cube_template_text which,
			     const char *text, size_t len, bool final, struct cube_err *err)
{
	if (len > CUBE_TEMPLATE_TEXT_MAX)
		return cube_fail(err, -EFBIG, "more than %zu bytes", CUBE_TEMPLATE_TEXT_MAX);
	if (len > 0 && memchr(text, '\0', len) != NULL)
		return cube_fail(err, -EINVAL, "a NUL is no part of a text");
	if (which == CUBE_TEMPLATE_ALIASES)
		return aliases_check(t, text, len, final, err);
	if (which == CUBE_TEMPLATE_READY)
		return cube_boot_check(text, len, err);
	if (which == CUBE_TEMPLATE_SERVICES)
		return cube_services_check(text, len, final, err);
	return which == CUBE_TEMPLATE_BUILD ? build_check(text, len, final, err) : 0;
}

int cube_template_set_text(struct cube_template_entry *t, enum cube_template_text which, const char *text,
			   size_t len, struct cube_err *err)
{
	struct cube_buf *to = &t->texts[which], old = *to;
	int r;

	if (t->removed)
		return cube_fail(err, -ENOENT, "template '%s' is removed", t->info.name);
	cube_buf_init(to, CUBE_TEMPLATE_TEXT_MAX + 1);
	r = len > 0 ? cube_buf_add(to, text, len) : 0;
	if (r == 0 && len > 0 && text[len - 1] != '\n')
		r = cube_buf_addc(to, '\n');
	r = r < 0 ? cube_fail(err, r, "template '%s': out of memory", t->info.name)
		  : cube_template_record_save(t, err);
	if (r < 0) {
		cube_buf_done(to);
		*to = old;
		return r;
	}
	cube_buf_done(&old);
	return 0;
}
