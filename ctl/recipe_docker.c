/* SPDX-License-Identifier: Apache-2.0 */
/* Dockerfiles: instructions, their forms, variables. What is not taken is refused with its line. */
#include "ctl/recipe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "backends/base/alloc.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"

#define DOCKER_BLANK " \t"
#define DOCKER_WORDS 256

struct docker {
	struct cube_recipe *r;
	unsigned line;
	const char *name;     /* of the instruction */
	const char *rest;     /* behind it */
	struct cube_buf args; /* NUL-separated NAME=VALUE of ARG */
	struct cube_buf vars; /* of ENV and ARG, the later ones first to be found at the end */
	char workdir[256];
	bool begun; /* FROM was there */
	struct cube_err *err;
};

/* ---- variables ---- */

static const char *vars_get(const struct cube_buf *vars, const char *name, size_t n)
{
	const char *found = NULL;

	for (size_t at = 0; at < vars->len; at += strlen(vars->data + at) + 1)
		if (strncmp(vars->data + at, name, n) == 0 && vars->data[at + n] == '=')
			found = vars->data + at + n + 1;
	return found;
}

static void vars_set(struct cube_buf *vars, const char *word)
{
	(void)cube_buf_add(vars, word, strlen(word) + 1);
}

static size_t name_len(const char *s)
{
	size_t n = 0;

	while (cube_name_env_ok(s, n + 1) && s[n] != '\0')
		n++;
	return n;
}

/* ${NAME}, ${NAME:-other}, ${NAME:+other}. Returns what was read, 0 for none of these. */
static size_t expand_braces(const struct docker *d, const char *s, struct cube_buf *out)
{
	size_t n = name_len(s + 2), end = strcspn(s, "}");
	const char *value = vars_get(&d->vars, s + 2, n), *how = s + 2 + n;

	if (n == 0 || s[end] != '}')
		return 0;
	if (*how == '}') {
		cube_buf_adds(out, value != NULL ? value : "");
		return end + 1;
	}
	if (how[0] != ':' || (how[1] != '-' && how[1] != '+'))
		return 0;
	bool set = value != NULL && *value != '\0';
	if (how[1] == '-' && set)
		cube_buf_adds(out, value);
	else if ((how[1] == '-') == !set)
		(void)cube_buf_add(out, how + 2, (size_t)(s + end - how - 2));
	return end + 1;
}

static int docker_expand(const struct docker *d, const char *s, struct cube_buf *out)
{
	while (*s != '\0') {
		size_t n = s[0] == '$' ? name_len(s + 1) : 0;

		if (s[0] == '\\' && s[1] == '$') {
			cube_buf_addc(out, '$');
			s += 2;
		} else if (s[0] == '$' && s[1] == '{') {
			size_t took = expand_braces(d, s, out);

			if (took == 0)
				return cube_recipe_bad(d->err, -EINVAL, d->line, "'%.60s' cannot be replaced",
						       s);
			s += took;
		} else if (n > 0) {
			const char *value = vars_get(&d->vars, s + 1, n);

			cube_buf_adds(out, value != NULL ? value : "");
			s += n + 1;
		} else {
			cube_buf_addc(out, *s++);
		}
	}
	return out->error;
}

/* ---- words ---- */

/* The next word of *s, its quotes taken away and its variables replaced; false: there is none. */
static bool docker_word(const struct docker *d, const char **s, struct cube_buf *out, int *code)
{
	struct cube_buf raw = CUBE_BUF(CUBE_RECIPE_TEXT);
	const char *p = *s + strspn(*s, DOCKER_BLANK);
	char quote = '\0';

	cube_buf_reset(out);
	if (*p == '\0')
		return false;
	for (; *p != '\0' && (quote != '\0' || strchr(DOCKER_BLANK, *p) == NULL); p++) {
		if (quote == '\0' && (*p == '"' || *p == '\'')) {
			quote = *p;
		} else if (quote == *p) {
			quote = '\0';
		} else if (*p == '$' && quote == '\'') {
			cube_buf_adds(&raw, "\\$");
		} else if (*p == '\\' && quote != '\'' && p[1] != '\0' && p[1] != '$') {
			cube_buf_addc(&raw, *++p);
		} else {
			cube_buf_addc(&raw, *p);
		}
	}
	*s = p;
	if (quote != '\0')
		*code = cube_recipe_bad(d->err, -EINVAL, d->line, "a quote does not end");
	else
		*code = docker_expand(d, cube_buf_str(&raw), out);
	cube_buf_done(&raw);
	return *code == 0;
}

struct docker_words {
	char *at[DOCKER_WORDS];
	size_t n;
};

static void words_done(struct docker_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		cube_free(w->at[i]);
}

static int docker_split(const struct docker *d, struct docker_words *w)
{
	struct cube_buf word = CUBE_BUF(CUBE_RECIPE_TEXT);
	const char *s = d->rest;
	int code = 0;

	w->n = 0;
	while (docker_word(d, &s, &word, &code)) {
		w->at[w->n] = w->n < DOCKER_WORDS - 1 ? cube_strdup(cube_buf_str(&word)) : NULL;
		if (w->at[w->n] == NULL) {
			code = cube_recipe_bad(d->err, -EINVAL, d->line, "too many words");
			break;
		}
		w->n++;
	}
	cube_buf_done(&word);
	return code;
}

/* ["a", "b"] as NUL-separated words: 1; 0: it is no such list. */
static int docker_json(const struct docker *d, struct cube_buf *out)
{
	cube_auto(cube_json_auto) json_t *list = NULL;
	size_t i;
	json_t *word;

	if (d->rest[0] != '[' || cube_json_parse(d->rest, strlen(d->rest), "list", &list, NULL) < 0 ||
	    json_array_size(list) == 0)
		return 0;
	json_array_foreach(list, i, word)
	{
		if (!json_is_string(word))
			return 0;
		(void)cube_buf_add(out, json_string_value(word), json_string_length(word) + 1);
	}
	return out->error == 0 ? 1 : 0;
}

/* ---- instructions ---- */

static int docker_refuse(struct docker *d)
{
	return cube_recipe_bad(d->err, -EINVAL, d->line, "%s is not taken", d->name);
}

static int docker_note(struct docker *d)
{
	return cube_recipe_add(d->r, CUBE_STEP_NOTE, d->line, d->name, strlen(d->name)) != NULL ? 0 : -EINVAL;
}

static int docker_no_flags(const struct docker *d)
{
	return strncmp(d->rest, "--", 2) == 0
		       ? cube_recipe_bad(d->err, -EINVAL, d->line, "%s %.40s: flags are not taken", d->name,
					 d->rest)
		       : 0;
}

static int docker_from(struct docker *d)
{
	struct docker_words w;
	int code = docker_no_flags(d);

	if (code == 0 && d->begun)
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "a second FROM: one stage is taken");
	if (code < 0)
		return code;
	code = docker_split(d, &w);
	if (code == 0 && w.n != 1 && !(w.n == 3 && strcasecmp(w.at[1], "as") == 0))
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "FROM TEMPLATE");
	if (code == 0 && strcmp(w.at[0], "scratch") == 0)
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "FROM scratch: a template is needed");
	if (code == 0 && cube_recipe_add(d->r, CUBE_STEP_FROM, d->line, w.at[0], strlen(w.at[0])) == NULL)
		code = -ENOMEM;
	words_done(&w);
	d->begun = true;
	return code;
}

static int docker_run(struct docker *d)
{
	struct cube_buf words = CUBE_BUF(CUBE_RECIPE_TEXT);
	struct cube_step *s;
	int argv, code = docker_no_flags(d);

	if (code == 0 && strstr(d->rest, "<<") != NULL)
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "here-documents are not taken");
	if (code < 0)
		return code;
	argv = docker_json(d, &words);
	s = argv ? cube_recipe_add(d->r, CUBE_STEP_RUN, d->line, words.data, words.len)
		 : cube_recipe_add(d->r, CUBE_STEP_RUN, d->line, d->rest, strlen(d->rest));
	cube_buf_done(&words);
	if (s == NULL)
		return cube_recipe_bad(d->err, -EINVAL, d->line, "too many steps");
	s->argv = argv == 1;
	return d->args.len > 0 ? cube_buf_add(&s->env, d->args.data, d->args.len) : 0;
}

static int docker_inside(const struct docker *d, const char *path, char *out, size_t size)
{
	int n = path[0] == '/' ? snprintf(out, size, "%s", path)
			       : snprintf(out, size, "%s/%s", d->workdir[1] != '\0' ? d->workdir : "", path);

	return (size_t)n < size ? 0 : cube_recipe_bad(d->err, -EINVAL, d->line, "'%.60s' is too long", path);
}

static bool docker_is_archive(const char *name)
{
	static const char *const ends[] = {".tar", ".tar.gz",  ".tgz",    ".tar.xz",
					   ".txz", ".tar.bz2", ".tar.zst"};
	size_t n = strlen(name);

	for (size_t i = 0; i < CUBE_COUNT(ends); i++)
		if (n > strlen(ends[i]) && strcmp(name + n - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static int docker_source(const struct docker *d, const char *from)
{
	if (strpbrk(from, "*?[") != NULL)
		return cube_recipe_bad(d->err, -EINVAL, d->line, "'%.60s': patterns are not taken", from);
	if (strstr(from, "://") != NULL || strncmp(from, "git@", 4) == 0 || strncmp(from, "<<", 2) == 0)
		return cube_recipe_bad(d->err, -EINVAL, d->line,
				       "'%.60s': only files of the context are taken", from);
	if (strcasecmp(d->name, "ADD") == 0 && docker_is_archive(from))
		return cube_recipe_bad(d->err, -EINVAL, d->line,
				       "'%.60s': ADD unpacks no archives here; COPY it and unpack it by RUN",
				       from);
	return 0;
}

static int docker_copy_words(struct docker *d, char *const *words, size_t n)
{
	char to[4096];
	int code = 0;

	if (n < 2)
		return cube_recipe_bad(d->err, -EINVAL, d->line, "%s SOURCE ... PATH", d->name);
	for (size_t i = 0; code == 0 && i + 1 < n; i++)
		code = docker_source(d, words[i]);
	if (code == 0)
		code = docker_inside(d, words[n - 1], to, sizeof(to));
	if (code == 0 && n > 2 && to[strlen(to) - 1] != '/')
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "of several sources PATH ends in /");
	return code == 0 ? cube_recipe_copy(d->r, d->line, words, n - 1, to, d->err) : code;
}

static int docker_copy(struct docker *d)
{
	struct cube_buf list = CUBE_BUF(CUBE_RECIPE_TEXT);
	struct docker_words w = {.n = 0};
	int code = docker_no_flags(d);

	if (code < 0)
		return code;
	if (docker_json(d, &list) == 1) {
		for (size_t at = 0; at < list.len && w.n < DOCKER_WORDS - 1;
		     at += strlen(list.data + at) + 1) {
			w.at[w.n] = cube_strdup(list.data + at);
			w.n += w.at[w.n] != NULL;
		}
	} else {
		code = docker_split(d, &w);
	}
	if (code == 0)
		code = docker_copy_words(d, w.at, w.n);
	words_done(&w);
	cube_buf_done(&list);
	return code;
}

static int docker_env_one(struct docker *d, const char *word)
{
	int code = cube_recipe_env(d->r, d->line, word, d->err);

	if (code == 0)
		vars_set(&d->vars, word);
	return code;
}

/* ENV NAME VALUE, the old form: all behind the name is the value. */
static int docker_env_old(struct docker *d, const char *name)
{
	const char *value = d->rest + strcspn(d->rest, DOCKER_BLANK);
	struct cube_buf word = CUBE_BUF(CUBE_RECIPE_TEXT);
	int code;

	cube_buf_printf(&word, "%s=", name);
	code = docker_expand(d, value + strspn(value, DOCKER_BLANK), &word);
	if (code == 0)
		code = docker_env_one(d, cube_buf_str(&word));
	cube_buf_done(&word);
	return code;
}

static int docker_env(struct docker *d)
{
	struct docker_words w;
	int code = docker_split(d, &w);

	if (code == 0 && w.n > 1 && strchr(w.at[0], '=') == NULL)
		code = docker_env_old(d, w.at[0]);
	else
		for (size_t i = 0; code == 0 && i < w.n; i++)
			code = docker_env_one(d, w.at[i]);
	if (code == 0 && w.n == 0)
		code = cube_recipe_bad(d->err, -EINVAL, d->line, "ENV NAME=VALUE ...");
	words_done(&w);
	return code;
}

/* Without a default it is nothing: there is nobody who could give it a value. */
static int docker_arg(struct docker *d)
{
	struct docker_words w;
	int code = docker_split(d, &w);

	for (size_t i = 0; code == 0 && i < w.n; i++) {
		const char *eq = strchr(w.at[i], '=');
		size_t n = eq != NULL ? (size_t)(eq - w.at[i]) : strlen(w.at[i]);

		if (!cube_name_env_ok(w.at[i], n))
			code = cube_recipe_bad(d->err, -EINVAL, d->line, "'%.60s' is no NAME=VALUE", w.at[i]);
		else if (eq != NULL && vars_get(&d->vars, w.at[i], n) == NULL) {
			vars_set(&d->vars, w.at[i]);
			vars_set(&d->args, w.at[i]);
		}
	}
	words_done(&w);
	return code;
}

static int docker_one(const struct docker *d, struct cube_buf *out)
{
	const char *s = d->rest;
	int code = 0;

	if (!docker_word(d, &s, out, &code))
		return code < 0 ? code
				: cube_recipe_bad(d->err, -EINVAL, d->line, "%s takes a word", d->name);
	if (s[strspn(s, DOCKER_BLANK)] != '\0')
		return cube_recipe_bad(d->err, -EINVAL, d->line, "%s takes one word", d->name);
	return 0;
}

static int docker_workdir(struct docker *d)
{
	struct cube_buf word = CUBE_BUF(CUBE_RECIPE_TEXT);
	char dir[sizeof(d->workdir)];
	int code = docker_one(d, &word);

	if (code == 0)
		code = docker_inside(d, cube_buf_str(&word), dir, sizeof(dir));
	if (code == 0)
		code = cube_recipe_workdir(d->r, d->line, dir, d->err);
	if (code == 0)
		memcpy(d->workdir, dir, sizeof(dir));
	cube_buf_done(&word);
	return code;
}

static int docker_user(struct docker *d)
{
	struct cube_buf word = CUBE_BUF(CUBE_RECIPE_TEXT);
	int code = docker_one(d, &word);

	if (code == 0)
		code = cube_recipe_user(d->r, d->line, cube_buf_str(&word), d->err);
	cube_buf_done(&word);
	return code;
}

static int docker_program(struct docker *d)
{
	enum cube_step_kind kind = strcasecmp(d->name, "CMD") == 0 ? CUBE_STEP_CMD : CUBE_STEP_ENTRYPOINT;
	struct cube_buf words = CUBE_BUF(CUBE_RECIPE_TEXT);

	if (docker_json(d, &words) == 0) {
		cube_buf_reset(&words);
		(void)cube_buf_add(&words, "/bin/sh\0-c\0", 11);
		(void)cube_buf_add(&words, d->rest, strlen(d->rest) + 1);
	}
	int code = cube_recipe_add(d->r, kind, d->line, words.data, words.len) != NULL
			   ? 0
			   : cube_recipe_bad(d->err, -EINVAL, d->line, "too many steps");
	cube_buf_done(&words);
	return code;
}

static const struct {
	const char *name;
	int (*take)(struct docker *d);
} docker_names[] = {
	{"FROM", docker_from},
	{"RUN", docker_run},
	{"COPY", docker_copy},
	{"ADD", docker_copy},
	{"ENV", docker_env},
	{"ARG", docker_arg},
	{"WORKDIR", docker_workdir},
	{"USER", docker_user},
	{"ENTRYPOINT", docker_program},
	{"CMD", docker_program},
	{"LABEL", docker_note},
	{"EXPOSE", docker_note},
	{"MAINTAINER", docker_note},
	{"HEALTHCHECK", docker_refuse},
	{"ONBUILD", docker_refuse},
	{"SHELL", docker_refuse},
	{"STOPSIGNAL", docker_refuse},
	{"VOLUME", docker_refuse},
};

static int docker_take(struct docker *d, const char *text)
{
	char name[16];
	size_t n;

	text += strspn(text, DOCKER_BLANK);
	n = strcspn(text, DOCKER_BLANK);
	(void)snprintf(name, sizeof(name), "%.*s", (int)(n < sizeof(name) ? n : sizeof(name) - 1), text);
	d->name = name;
	d->rest = text + n + strspn(text + n, DOCKER_BLANK);
	for (size_t i = 0; i < CUBE_COUNT(docker_names); i++) {
		if (strcasecmp(docker_names[i].name, name) != 0)
			continue;
		d->name = docker_names[i].name;
		if (!d->begun && docker_names[i].take != docker_from && docker_names[i].take != docker_arg)
			return cube_recipe_bad(d->err, -EINVAL, d->line, "FROM stands before all else");
		if (d->rest[0] == '\0')
			return cube_recipe_bad(d->err, -EINVAL, d->line, "%s lacks what it is about",
					       d->name);
		return docker_names[i].take(d);
	}
	return cube_recipe_bad(d->err, -EINVAL, d->line, "'%s' is no instruction", name);
}

int cube_recipe_parse_docker(const char *text, size_t len, struct cube_recipe *r, struct cube_err *err)
{
	struct cube_buf line = CUBE_BUF(CUBE_RECIPE_TEXT);
	struct cube_err why = {0};
	struct docker d = {.r = r,
			   .args = CUBE_BUF(CUBE_RECIPE_TEXT),
			   .vars = CUBE_BUF(CUBE_RECIPE_TEXT),
			   .workdir = "/",
			   .err = &why};
	size_t at = 0;
	unsigned number = 0;
	int code = 0;

	while (code == 0 && cube_recipe_line(text, len, &at, &number, true, &line, &d.line))
		code = docker_take(&d, cube_buf_str(&line));
	if (code < 0)
		(void)cube_fail(err, code, "%s", why.text[0] != '\0' ? why.text : cube_errno_text(code));
	cube_buf_done(&line);
	cube_buf_done(&d.args);
	cube_buf_done(&d.vars);
	return code;
}
