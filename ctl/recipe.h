/* SPDX-License-Identifier: Apache-2.0 */
/* What a template is built from: steps, one a line, or a Dockerfile. Parsed into one list; nothing is looked at
 * but the text. */
#ifndef CUBEFS_CTL_RECIPE_H
#define CUBEFS_CTL_RECIPE_H

#include <stdbool.h>
#include <stddef.h>

#include "backends/base/buf.h"
#include "backends/base/err.h"

enum cube_step_kind {
	CUBE_STEP_FROM,       /* text: a template, an alias or a reference of an image */
	CUBE_STEP_RUN,        /* text: a command; with argv NUL-separated words */
	CUBE_STEP_COPY,       /* text: NUL-separated paths of this machine; to: where inside */
	CUBE_STEP_ENV,        /* text: NAME=VALUE */
	CUBE_STEP_WORKDIR,    /* text: an absolute path */
	CUBE_STEP_USER,       /* text: NAME, UID or UID:GID */
	CUBE_STEP_NET,        /* text: "open" or "none", for the commands behind it */
	CUBE_STEP_ENTRYPOINT, /* text: NUL-separated words */
	CUBE_STEP_CMD,        /* the same */
	CUBE_STEP_NOTE,       /* text: what is taken and changes nothing */
};

struct cube_step {
	enum cube_step_kind kind;
	unsigned line; /* where it begins, from 1 */
	bool argv;
	struct cube_buf text;
	struct cube_buf env; /* of a run: NUL-separated variables that only it has (ARG) */
	char *to;
};

#define CUBE_RECIPE_STEPS 512
#define CUBE_RECIPE_TEXT  ((size_t)1 << 20)

struct cube_recipe {
	struct cube_step *steps;
	size_t n;
	bool docker;  /* it is a Dockerfile */
	bool context; /* it has sources that are relative to a directory, which must be named */
};

/* -EINVAL with the number of the line; -EOPNOTSUPP for what no backend here can do. Where it is not @final the last
 * line counts only with its newline. No steps at all are none. *ret is empty after a
 * failure; else cube_recipe_done. */
int cube_recipe_parse(const char *text, size_t len, bool final, struct cube_recipe *ret,
		      struct cube_err *err);
void cube_recipe_done(struct cube_recipe *r);

/* For the two readers. NULL: memory, or too many. */
struct cube_step *cube_recipe_add(struct cube_recipe *r, enum cube_step_kind kind, unsigned line,
				  const char *text, size_t len);
int cube_recipe_parse_docker(const char *text, size_t len, struct cube_recipe *r, struct cube_err *err);
/* A logical line (continued by \ at the end of lines) from *at on into @out, its first line's number in *ret_line.
 * False at the end. @docker: lines that are comments or empty do not end it. */
bool cube_recipe_line(const char *text, size_t len, size_t *at, unsigned *number, bool docker,
		      struct cube_buf *out, unsigned *ret_line);
/* What is said once, for both: 0, or -EINVAL. */
int cube_recipe_env(struct cube_recipe *r, unsigned line, const char *word, struct cube_err *err);
int cube_recipe_workdir(struct cube_recipe *r, unsigned line, const char *dir, struct cube_err *err);
int cube_recipe_user(struct cube_recipe *r, unsigned line, const char *user, struct cube_err *err);
int cube_recipe_copy(struct cube_recipe *r, unsigned line, char *const *from, size_t n, const char *to,
		     struct cube_err *err);
int cube_recipe_bad(struct cube_err *err, int code, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
