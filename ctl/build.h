/* SPDX-License-Identifier: Apache-2.0 */
/* Templates that are built from steps: each step that changes files is a layer under a name that its content
 * gives (`~` and a part of the digest of its parent, its text, its environment and what it copies), so that it is
 * made once. A command runs in a sandbox of the backend that nobody sees, on the thread of the build. Private to
 * ctl/. */
#ifndef CUBEFS_CTL_BUILD_H
#define CUBEFS_CTL_BUILD_H

#include "ctl/ctl_priv.h"
#include "backends/base/digest.h"
#include "ctl/recipe.h"

struct cube_build {
	struct cube_work work;
	struct cube_template_entry *entry;
	struct cube_domain *domain;
	struct cube_cancel *cancel;
	struct cube_caller by;
	char *context; /* directory of relative sources; NULL: not said */
	int code;
	struct cube_err err;
	void (*done)(struct cube_build *b); /* under the lock; NULL: nobody waits */
	void *ctx;
	/* the build's thread's */
	struct cube_recipe recipe;
	char parent[CUBE_ID_MAX + 1]; /* what the next step is made of */
	char print[CUBE_DIGEST_TEXT]; /* and what that is */
	struct cube_template_config config;
	bool net;
	struct cube_buf layers; /* names of those that the build has, a line each, the lowest first */
};

/* Starts a build of what is in the template's `build`; its end comes to @done under the lock. */
int cube_template_build(struct cube_domain *d, struct cube_template_entry *t, const struct cube_caller *by,
			const char *context, struct cube_build **ret, struct cube_err *err);
/* ---- of build_run.c ---- */
void cube_build_run(struct cube_build *b); /* on a pool thread; sets code and err */
void cube_build_say(struct cube_build *b, const char *line);

/* ---- build_box.c: the sandbox of one step; on the build's thread ---- */

struct cube_box;
/* @template, `net`; runs when it returns. */
int cube_box_open(struct cube_build *b, const char *template, struct cube_box **ret, struct cube_err *err);
/* Runs a step's command; its output goes to the log. -ECANCELED: it ended with another code than 0. */
int cube_box_run(struct cube_box *x, const struct cube_step *s, struct cube_err *err);
int cube_box_root(struct cube_box *x, struct cube_root *ret, struct cube_err *err);
/* Stops it and keeps what it is now as the layer @name. */
int cube_box_commit(struct cube_box *x, const char *name, struct cube_err *err);
void cube_box_close(struct cube_box *x); /* destroys it; NULL is harmless */

/* ---- build_copy.c: sources ---- */

/* Copies the sources of @s, opened with the rights of who builds, into the empty directory @to, each under its
 * number; adds all that they are to @digest. */
int cube_build_gather(struct cube_build *b, const struct cube_step *s, int to, struct cube_digest *digest,
		      struct cube_err *err);
/* Puts what was gathered where the step says. */
int cube_build_place(const struct cube_step *s, int from, const struct cube_root *root, struct cube_err *err);

#endif
