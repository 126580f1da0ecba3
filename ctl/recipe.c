/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a build, one a line; and what they share with Dockerfiles. */
#include "ctl/recipe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/macros.h"
#include "backends/base/name.h"
#include "ctl/words.h"

#define RECIPE_BLANK " \t"

int cube_recipe_bad(struct cube_err *err, int code, unsigned line, const char *fmt, ...)
{
	char why[CUBE_ERR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return cube_fail(err, code, "line %u: %s", line, why);
}

/* ---- the list ---- */

void cube_recipe_done(struct cube_recipe *r)
{
	for (size_t i = 0; i < r->n; i++) {
		cube_buf_done(&r->steps[i].text);
		cube_buf_done(&r->steps[i].env);
		cube_free(r->steps[i].to);
	}
	cube_free(r->steps);
	*r = (struct cube_recipe){0};
}

struct cube_step *cube_recipe_add(struct cube_recipe *r, enum cube_step_kind kind, unsigned line,
				  const char *text, size_t len)
{
	struct cube_step *s;

	if (r->steps == NULL)
		r->steps = cube_calloc(CUBE_RECIPE_STEPS, sizeof(*r->steps));
	if (r->steps == NULL || r->n == CUBE_RECIPE_STEPS)
		return NULL;
	s = &r->steps[r->n++];
	*s = (struct cube_step){.kind = kind,
				.line = line,
				.text = CUBE_BUF(CUBE_RECIPE_TEXT),
				.env = CUBE_BUF(CUBE_RECIPE_TEXT)};
	return cube_buf_add(&s->text, text, len) < 0 ? NULL : s;
}

static int recipe_put(struct cube_recipe *r, enum cube_step_kind kind, unsigned line, const char *text,
		      struct cube_err *err)
{
	if (cube_recipe_add(r, kind, line, text, strlen(text)) == NULL)
		return cube_recipe_bad(err, -EINVAL, line, "more than %d steps", CUBE_RECIPE_STEPS);
	return 0;
}

/* ---- lines ---- */

static bool line_is_comment(const char *line, size_t n)
{
	size_t at = 0;

	while (at < n && strchr(RECIPE_BLANK, line[at]) != NULL)
		at++;
	return at == n || line[at] == '#';
}

bool cube_recipe_line(const char *text, size_t len, size_t *at, unsigned *number, bool docker,
		      struct cube_buf *out, unsigned *ret_line)
{
	bool more = false;

	cube_buf_reset(out);
	while (*at < len) {
		const char *line = text + *at;
		const char *end = memchr(line, '\n', len - *at);
		size_t n = end != NULL ? (size_t)(end - line) : len - *at, all = n;

		*at += n + 1;
		++*number;
		if (n > 0 && line[n - 1] == '\r')
			n--;
		if ((!more || docker) && line_is_comment(line, n))
			continue;
		if (!more)
			*ret_line = *number;
		more = n > 0 && line[n - 1] == '\\';
		(void)cube_buf_add(out, line, more ? n - 1 : n);
		if (!more)
			return true;
		if (!docker && all > 0)
			(void)cube_buf_addc(out, '\n');
	}
	return more;
}

/* ---- what both have ---- */

int cube_recipe_env(struct cube_recipe *r, unsigned line, const char *word, struct cube_err *err)
{
	const char *eq = strchr(word, '=');

	if (eq == NULL || !cube_name_env_ok(word, (size_t)(eq - word)))
		return cube_recipe_bad(err, -EINVAL, line, "'%.100s' is no NAME=VALUE", word);
	return recipe_put(r, CUBE_STEP_ENV, line, word, err);
}

int cube_recipe_workdir(struct cube_recipe *r, unsigned line, const char *dir, struct cube_err *err)
{
	if (dir[0] != '/' || strlen(dir) > 255)
		return cube_recipe_bad(err, -EINVAL, line, "'%.100s' is no absolute path", dir);
	return recipe_put(r, CUBE_STEP_WORKDIR, line, dir, err);
}

int cube_recipe_user(struct cube_recipe *r, unsigned line, const char *user, struct cube_err *err)
{
	size_t n = strspn(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:");

	if (n == 0 || user[n] != '\0' || n > 64)
		return cube_recipe_bad(err, -EINVAL, line, "'%.100s' is no user: NAME, UID or UID:GID", user);
	return recipe_put(r, CUBE_STEP_USER, line, user, err);
}

int cube_recipe_copy(struct cube_recipe *r, unsigned line, char *const *from, size_t n, const char *to,
		     struct cube_err *err)
{
	struct cube_step *s;

	if (to[0] != '/')
		return cube_recipe_bad(err, -EINVAL, line, "'%.100s' is no absolute path", to);
	if (strcmp(to, "/workspace") == 0 || strncmp(to, "/workspace/", 11) == 0)
		return cube_recipe_bad(err, -EINVAL, line,
				       "/workspace is each sandbox's own and begins empty: copy to another "
				       "place");
	s = cube_recipe_add(r, CUBE_STEP_COPY, line, "", 0);
	for (size_t i = 0; s != NULL && i < n; i++) {
		r->context = r->context || from[i][0] != '/' || r->docker;
		(void)cube_buf_add(&s->text, from[i], strlen(from[i]) + 1);
	}
	if (s == NULL || s->text.error != 0 || (s->to = cube_strdup(to)) == NULL)
		return cube_recipe_bad(err, -EINVAL, line, "more than %d steps", CUBE_RECIPE_STEPS);
	return 0;
}

/* ---- steps ---- */

struct step_line {
	struct cube_recipe *r;
	unsigned line;
	const char *rest; /* behind the word */
	char **words;
	unsigned n;
	const char *how; /* of a package manager */
	struct cube_err *err;
};

static int step_from(struct step_line *l)
{
	if (l->r->n > 0)
		return cube_recipe_bad(l->err, -EINVAL, l->line, "from stands once, before all else");
	return recipe_put(l->r, CUBE_STEP_FROM, l->line, l->words[1], l->err);
}

static int step_run(struct step_line *l)
{
	return recipe_put(l->r, CUBE_STEP_RUN, l->line, l->rest, l->err);
}

static int step_copy(struct step_line *l)
{
	if (l->words[1][0] != '/')
		return cube_recipe_bad(l->err, -EINVAL, l->line,
				       "'%.100s' is no absolute path of this machine", l->words[1]);
	return cube_recipe_copy(l->r, l->line, &l->words[1], 1, l->words[2], l->err);
}

static int step_env(struct step_line *l)
{
	return cube_recipe_env(l->r, l->line, l->words[1], l->err);
}

static int step_workdir(struct step_line *l)
{
	return cube_recipe_workdir(l->r, l->line, l->words[1], l->err);
}

static int step_user(struct step_line *l)
{
	return cube_recipe_user(l->r, l->line, l->words[1], l->err);
}

static int step_net(struct step_line *l)
{
	if (strcmp(l->words[1], "open") != 0 && strcmp(l->words[1], "none") != 0)
		return cube_recipe_bad(l->err, -EINVAL, l->line, "net open, or net none");
	return recipe_put(l->r, CUBE_STEP_NET, l->line, l->words[1], l->err);
}

/* Names go to a shell: each in quotes. */
static int step_packages(struct step_line *l)
{
	struct cube_buf text = CUBE_BUF(CUBE_RECIPE_TEXT);
	int code = 0;

	cube_buf_adds(&text, l->how);
	for (unsigned i = 1; code == 0 && i < l->n; i++) {
		if (l->words[i][0] == '-' || strchr(l->words[i], '\'') != NULL)
			code = cube_recipe_bad(l->err, -EINVAL, l->line, "'%.100s' is no name of a package",
					       l->words[i]);
		cube_buf_printf(&text, " '%s'", l->words[i]);
	}
	if (code == 0)
		code = recipe_put(l->r, CUBE_STEP_RUN, l->line, cube_buf_str(&text), l->err);
	cube_buf_done(&text);
	return code;
}

static int step_cannot(struct step_line *l)
{
	return cube_recipe_bad(l->err, -EOPNOTSUPP, l->line, "%s: no sandbox here runs a system that has it",
			       l->words[0]);
}

#define APT                                                                                                  \
	"export DEBIAN_FRONTEND=noninteractive; apt-get -q update && apt-get -qy install "                   \
	"--no-install-recommends"

static const struct {
	const char *word;
	unsigned min, max;
	int (*take)(struct step_line *l);
	const char *how;
} step_words[] = {
	{"from", 1, 1, step_from, NULL},
	{"run", 1, 4096, step_run, NULL},
	{"copy", 2, 2, step_copy, NULL},
	{"env", 1, 1, step_env, NULL},
	{"workdir", 1, 1, step_workdir, NULL},
	{"user", 1, 1, step_user, NULL},
	{"net", 1, 1, step_net, NULL},
	{"apt", 1, 4096, step_packages, APT},
	{"apk", 1, 4096, step_packages, "apk add --no-cache"},
	{"pip", 1, 4096, step_packages, "pip install --no-cache-dir"},
	{"uv", 1, 4096, step_packages, "uv pip install --system"},
	{"npm", 1, 4096, step_packages, "npm install -g"},
	{"choco", 0, 4096, step_cannot, NULL},
	{"winget", 0, 4096, step_cannot, NULL},
	{"brew", 0, 4096, step_cannot, NULL},
};

/* A command is the shell's own matter: its quotes are not ours. */
static int step_split(struct step_line *l, const char *text, size_t word)
{
	if (word == 3 && strncmp(text, "run", 3) == 0) {
		l->n = l->rest[0] != '\0' ? 2 : 1;
		return 0;
	}
	int code = cube_words_split(text, strlen(text), &l->words, &l->n, l->err);
	return code < 0 ? cube_recipe_bad(l->err, code, l->line, "%s", l->err->text) : 0;
}

static int step_take(struct step_line *l, const char *text)
{
	size_t word, lead = strspn(text, RECIPE_BLANK);
	int code;

	text += lead;
	word = strcspn(text, RECIPE_BLANK);
	l->rest = text + word + strspn(text + word, RECIPE_BLANK);
	code = step_split(l, text, word);
	if (code < 0)
		return code;
	for (size_t i = 0; i < CUBE_COUNT(step_words); i++) {
		if (strlen(step_words[i].word) != word || strncmp(step_words[i].word, text, word) != 0)
			continue;
		if (l->n - 1 < step_words[i].min || l->n - 1 > step_words[i].max)
			return cube_recipe_bad(l->err, -EINVAL, l->line, "%s takes %u%s", step_words[i].word,
					       step_words[i].min,
					       step_words[i].max > step_words[i].min ? " or more" : "");
		l->how = step_words[i].how;
		return step_words[i].take(l);
	}
	return cube_recipe_bad(l->err, -EINVAL, l->line, "'%.*s' is no step", (int)(word < 40 ? word : 40),
			       text);
}

static int steps_parse(const char *text, size_t len, struct cube_recipe *r, struct cube_err *err)
{
	struct cube_buf line = CUBE_BUF(CUBE_RECIPE_TEXT);
	struct cube_err why = {0};
	size_t at = 0;
	unsigned number = 0, first = 0;
	int code = 0;

	while (code == 0 && cube_recipe_line(text, len, &at, &number, false, &line, &first)) {
		struct step_line l = {.r = r, .line = first, .err = &why};

		code = step_take(&l, cube_buf_str(&line));
		cube_free(l.words);
	}
	cube_buf_done(&line);
	return code < 0 ? cube_fail(err, code, "%s", why.text) : 0;
}

/* The first word is in capitals. */
static bool recipe_is_docker(const char *text, size_t len)
{
	struct cube_buf line = CUBE_BUF(CUBE_RECIPE_TEXT);
	size_t at = 0;
	unsigned number = 0, first;
	bool docker = false;

	if (cube_recipe_line(text, len, &at, &number, false, &line, &first)) {
		const char *word = cube_buf_str(&line);

		word += strspn(word, RECIPE_BLANK);
		docker = word[0] >= 'A' && word[0] <= 'Z' && word[1] >= 'A' && word[1] <= 'Z';
	}
	cube_buf_done(&line);
	return docker;
}

/* Without what is not ended yet. */
static size_t recipe_ended(const char *text, size_t len, bool final)
{
	while (!final && len > 0 && text[len - 1] != '\n')
		len--;
	return len;
}

int cube_recipe_parse(const char *text, size_t len, bool final, struct cube_recipe *ret, struct cube_err *err)
{
	int code;

	*ret = (struct cube_recipe){0};
	len = recipe_ended(text, len, final);
	ret->docker = recipe_is_docker(text, len);
	code = ret->docker ? cube_recipe_parse_docker(text, len, ret, err) : steps_parse(text, len, ret, err);
	if (code == 0 && ret->n > 0 && ret->steps[0].kind != CUBE_STEP_FROM)
		code = cube_fail(err, -EINVAL, "a build begins with `from TEMPLATE`");
	if (code < 0)
		cube_recipe_done(ret);
	return code;
}
