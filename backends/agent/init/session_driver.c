/* SPDX-License-Identifier: Apache-2.0 */
/* Shell text around commands. */
#include "backends/agent/init/session_driver.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct init_text *t, size_t more)
{
	size_t cap = t->cap > 0 ? t->cap : 512;
	char *data;

	if (t->bad || t->len + more <= t->cap)
		return !t->bad;
	while (cap < t->len + more)
		cap *= 2;
	data = realloc(t->data, cap);
	if (data == NULL) {
		t->bad = true;
		return false;
	}
	t->data = data;
	t->cap = cap;
	return true;
}

void init_text_add(struct init_text *t, const char *s, size_t len)
{
	if (len == 0 || !text_reserve(t, len))
		return;
	memcpy(t->data + t->len, s, len);
	t->len += len;
}

void init_text_printf(struct init_text *t, const char *fmt, ...)
{
	char part[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(part, sizeof(part), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(part))
		t->bad = true;
	else
		init_text_add(t, part, (size_t)n);
}

void init_text_quote(struct init_text *t, const char *s, size_t len)
{
	const char *end = s + len;

	init_text_add(t, "'", 1);
	while (s < end) {
		const char *quote = memchr(s, '\'', (size_t)(end - s));
		size_t n = (size_t)((quote != NULL ? quote : end) - s);

		init_text_add(t, s, n);
		if (quote != NULL)
			init_text_add(t, "'\\''", 4);
		s += n + (quote != NULL);
	}
	init_text_add(t, "'", 1);
}

void init_text_done(struct init_text *t)
{
	free(t->data);
	*t = (struct init_text){0};
}

/* Before a name that is to mean the builtin. Functions come first in bash, whatever stands before them but
 * `builtin` and `command`; elsewhere only special builtins are safe from them. */
static const char *driver_builtin(const struct init_driver *d)
{
	return d->bash ? "builtin" : "\\command";
}

/* Before `.`: without it dash and busybox end at a syntax error in the text; bash does not, and nothing can
 * stand in for a plain dot there. */
static const char *driver_dot(const struct init_driver *d)
{
	return d->bash ? "." : "\\command .";
}

void init_driver_begin(struct init_text *t, const struct init_driver *d, bool exports)
{
	init_text_printf(t,
			 "trap '{ export -p >|%s/x; %s printf \"x %%s\\ne x\\n\" \"$PWD\" >|%s/s; } "
			 "2>/dev/null' EXIT\n",
			 d->path, driver_builtin(d), d->path);
	/* The directory that the shell was started in counts, not the PWD among the exports. */
	if (exports)
		init_text_printf(t, ". %s/e\ncd .\n", d->path);
}

void init_driver_run(struct init_text *t, const struct init_driver *d, uint64_t seq, unsigned status,
		     bool input)
{
	const char *dot = driver_dot(d);
	const char *builtin = driver_builtin(d);

	/* Not a redirection of the text alone: what an EXIT trap of the user's prints belongs to the command.
	 */
	init_text_printf(t, "exec <%s%s >|%s/o 2>&1\n", input ? d->path : "/dev/null", input ? "/i" : "",
			 d->path);
	if (input)
		init_text_printf(t, "%s printf 'i %" PRIu64 "\\n' >|%s/s\n", builtin, seq, d->path);
	/* In front of `||` a status other than 0 is no failure: neither set -e nor an ERR trap sees it. */
	if (status != 0)
		init_text_printf(t, "%s %s/r || ", dot, d->path);
	init_text_printf(t, "%s %s/t\n", dot, d->path);
	init_text_printf(t, "{ __cube_s=$? __cube_o=$-; set +xv; export -p >|%s/x; exec >/dev/null; ",
			 d->path);
	/* A function may stand in for exec in bash; then the pipe is still there, and the next command's
	 * output would go nowhere. */
	if (d->bash)
		init_text_printf(t, "[[ -p /dev/fd/1 ]] && __cube_o=!$__cube_o; ");
	init_text_printf(t, "%s printf 'd %" PRIu64 " %%s %%s %%s\\ne %" PRIu64 "\\n'", builtin, seq, seq);
	init_text_printf(t, " \"$__cube_s\" \"$__cube_o\" \"$PWD\" >|%s/s; } 2>/dev/null\nexec 2>/dev/null\n",
			 d->path);
}

const char *init_driver_prefix(const char *options)
{
	bool x = strchr(options, 'x') != NULL;
	bool v = strchr(options, 'v') != NULL;

	return x && v ? "set -xv;" : x ? "set -x;" : v ? "set -v;" : "";
}

static bool driver_name_ok(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		      (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return len > 0;
}

/* `\command` keeps dash alive where a variable is read only. */
static void driver_var(struct init_text *t, const struct init_driver *d, const char *var)
{
	const char *safe = d->bash ? "" : "\\command ";
	size_t len = strcspn(var, "=");

	if (!driver_name_ok(var, len))
		return; /* no shell can hold it */
	if (var[len] == '\0') {
		init_text_printf(t, "%sunset ", safe);
		init_text_add(t, var, len);
	} else {
		init_text_printf(t, "%sexport ", safe);
		init_text_add(t, var, len + 1);
		init_text_quote(t, var + len + 1, strlen(var + len + 1));
	}
	init_text_add(t, "\n", 1);
}

void init_driver_vars(struct init_text *t, const struct init_driver *d, uint64_t seq, const char *env,
		      size_t env_len, const char *cwd)
{
	for (size_t at = 0; at < env_len;) {
		size_t len = strnlen(env + at, env_len - at);
		char *var = strndup(env + at, len);

		if (var == NULL)
			t->bad = true;
		else
			driver_var(t, d, var);
		free(var);
		at += len + 1;
	}
	if (cwd != NULL) {
		init_text_printf(t, "%s cd -- ", driver_builtin(d));
		init_text_quote(t, cwd, strlen(cwd));
		init_text_add(t, " && __cube_s=0 || __cube_s=1\n", 29);
	} else {
		init_text_add(t, "__cube_s=0\n", 11);
	}
	init_text_printf(t, "%s printf 'v %" PRIu64 " %%s\\n' \"$__cube_s\" >|%s/s\n", driver_builtin(d), seq,
			 d->path);
}
