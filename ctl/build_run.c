/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a build, one after the other, on a pool thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "ctl/build.h"

#define BUILD_SHOWN 120 /* bytes of a step in status */

void cube_build_say(struct cube_build *b, const char *line)
{
	cube_domain_enter(b->domain);
	cube_template_say(b->entry, line);
	cube_domain_leave(b->domain);
}

static int build_bad(struct cube_build *b, const struct cube_step *s, int code, const char *why)
{
	return cube_fail(&b->err, code, "line %u: %s", s->line, why);
}

/* ---- names of layers ---- */

static void key_part(struct cube_digest *d, const char *data, size_t len)
{
	char head[24];

	(void)snprintf(head, sizeof(head), "%zu:", len);
	cube_digest_add(d, head, strlen(head));
	if (len > 0)
		cube_digest_add(d, data, len);
}

/* What the next layer depends on, so far; the caller adds what it copies. NULL: memory. */
static struct cube_digest *key_begin(const struct cube_build *b, const struct cube_step *s)
{
	struct cube_digest *d = cube_digest_new();
	const char kind = (char)('0' + (int)s->kind);
	const char how[3] = {kind, s->argv ? 'v' : 't', b->net ? 'n' : '-'};

	if (d == NULL)
		return NULL;
	key_part(d, b->print, strlen(b->print));
	key_part(d, how, sizeof(how));
	key_part(d, s->text.data, s->text.len);
	key_part(d, s->to != NULL ? s->to : "", s->to != NULL ? strlen(s->to) : 0);
	if (s->kind == CUBE_STEP_RUN) {
		key_part(d, b->config.env.data, b->config.env.len);
		key_part(d, s->env.data, s->env.len);
		key_part(d, b->config.workdir, strlen(b->config.workdir));
		key_part(d, b->config.user, strlen(b->config.user));
	}
	return d;
}

static void key_end(struct cube_digest *d, char print[CUBE_DIGEST_TEXT], char name[CUBE_ID_MAX + 1])
{
	(void)cube_digest_end(d, print);
	cube_digest_free(d);
	(void)snprintf(name, CUBE_ID_MAX + 1, "~%.32s", print + strlen("sha256:"));
}

static bool layer_is_there(const struct cube_build *b, const char *name)
{
	struct cube_template_config config;
	bool there = cube_backend_template_config(b->entry->service->backend, name, &config, NULL) == 0;

	cube_template_config_done(&config);
	return there;
}

/* The layer is what the next step is made of. */
static int layer_use(struct cube_build *b, const char *name, const char *print)
{
	memcpy(b->print, print, sizeof(b->print));
	(void)snprintf(b->parent, sizeof(b->parent), "%s", name);
	(void)cube_buf_adds(&b->layers, name);
	return cube_buf_addc(&b->layers, '\n') < 0 ? cube_fail(&b->err, -ENOMEM, "out of memory") : 0;
}

/* ---- steps that change files ---- */

static int run_layer(struct cube_build *b, const struct cube_step *s, const char *name)
{
	struct cube_box *box = NULL;
	int r = cube_box_open(b, b->parent, &box, &b->err);

	if (r == 0)
		r = cube_box_run(box, s, &b->err);
	if (r == 0)
		r = cube_box_commit(box, name, &b->err);
	cube_box_close(box);
	return r;
}

static int step_run(struct cube_build *b, const struct cube_step *s)
{
	struct cube_digest *d = key_begin(b, s);
	char print[CUBE_DIGEST_TEXT], name[CUBE_ID_MAX + 1];
	int r = 0;

	if (d == NULL)
		return cube_fail(&b->err, -ENOMEM, "out of memory");
	key_end(d, print, name);
	if (layer_is_there(b, name))
		cube_build_say(b, "done before");
	else
		r = run_layer(b, s, name);
	return r == 0 ? layer_use(b, name, print) : r;
}

static int copy_layer(struct cube_build *b, const struct cube_step *s, int from, const char *name)
{
	struct cube_box *box = NULL;
	struct cube_root root = {.fd = -1};
	int r = cube_box_open(b, b->parent, &box, &b->err);

	if (r == 0)
		r = cube_box_root(box, &root, &b->err);
	if (r == 0)
		r = cube_build_place(s, from, &root, &b->err);
	cube_root_close(&root);
	if (r == 0)
		r = cube_box_commit(box, name, &b->err);
	cube_box_close(box);
	return r;
}

static int copy_gathered(struct cube_build *b, const struct cube_step *s, int from)
{
	struct cube_digest *d = key_begin(b, s);
	char print[CUBE_DIGEST_TEXT], name[CUBE_ID_MAX + 1];
	int r = d != NULL ? cube_build_gather(b, s, from, d, &b->err)
			  : cube_fail(&b->err, -ENOMEM, "out of memory");

	if (r < 0) {
		cube_digest_free(d);
		return r;
	}
	key_end(d, print, name);
	if (layer_is_there(b, name))
		cube_build_say(b, "done before");
	else
		r = copy_layer(b, s, from, name);
	return r == 0 ? layer_use(b, name, print) : r;
}

/* Copied aside first: what is put inside is what its name says, whoever changes the sources meanwhile. */
static int step_copy(struct cube_build *b, const struct cube_step *s)
{
	char path[2 * CUBE_ID_MAX + 8];
	int top = cube_domain_own(b->domain)->templates_fd, r;
	cube_auto_fd from = -1;

	(void)snprintf(path, sizeof(path), "%s/.%s.copy", b->entry->service->backend->name,
		       b->entry->info.name);
	r = cube_file_remove_tree(top, path);
	if (r == 0)
		r = cube_file_mkdir(top, path, 0700, &from);
	r = r < 0 ? build_bad(b, s, r, cube_errno_text(r)) : copy_gathered(b, s, from);
	(void)cube_file_remove_tree(top, path);
	return r;
}

/* It is made where it is missing, as its user would find it. */
static int step_workdir(struct cube_build *b, const struct cube_step *s)
{
	static const char script[] = "mkdir\0-p\0--";
	struct cube_step mk = {.kind = CUBE_STEP_RUN, .line = s->line, .argv = true, .text = CUBE_BUF(8192)};
	struct cube_template_config *c = &b->config;
	char user[sizeof(c->user)];
	int r;

	memcpy(user, c->user, sizeof(user));
	c->user[0] = c->workdir[0] = '\0';
	r = cube_buf_add(&mk.text, script, sizeof(script));
	if (r == 0)
		r = cube_buf_add(&mk.text, s->text.data, s->text.len);
	r = r < 0 ? build_bad(b, s, r, cube_errno_text(r)) : step_run(b, &mk);
	cube_buf_done(&mk.text);
	memcpy(c->user, user, sizeof(user));
	(void)snprintf(c->workdir, sizeof(c->workdir), "%s", cube_buf_str(&s->text));
	return r;
}

/* ---- steps that only say something ---- */

static int step_from(struct cube_build *b, const struct cube_step *s)
{
	char image[CUBE_TEMPLATE_ALIAS_MAX + 1];
	const char *word = cube_buf_str(&s->text);
	struct cube_template_entry *t;
	int r = 0;

	(void)snprintf(image, sizeof(image), "image:%s", word);
	cube_domain_enter(b->domain);
	t = cube_template_named(b->entry->service, word);
	if (t == NULL)
		t = cube_template_named(b->entry->service, image);
	if (t == b->entry)
		r = build_bad(b, s, -EINVAL, "a template cannot be built of itself");
	else if (t == NULL || strcmp(t->info.state, "ready") != 0)
		r = cube_fail(
			&b->err, -ENOENT,
			"line %u: backend '%s' has no template '%s' that is ready: import it, or give one "
			"this alias",
			s->line, b->entry->service->backend->name, word);
	else if (cube_template_config_copy(&b->config, &t->config) < 0)
		r = build_bad(b, s, -ENOMEM, "out of memory");
	else {
		(void)snprintf(b->parent, sizeof(b->parent), "%s", t->info.name);
		(void)snprintf(b->print, sizeof(b->print), "%s",
			       t->info.fingerprint[0] != '\0' ? t->info.fingerprint : t->info.name);
	}
	cube_domain_leave(b->domain);
	return r;
}

static int step_env(struct cube_build *b, const struct cube_step *s)
{
	struct cube_buf env = CUBE_BUF(CUBE_TEMPLATE_TEXT);
	int r = cube_env_apply(cube_buf_str(&b->config.env), b->config.env.len, cube_buf_str(&s->text),
			       s->text.len, &env);

	if (r < 0) {
		cube_buf_done(&env);
		return build_bad(b, s, r == -EMSGSIZE ? -EINVAL : r, "the environment is too large");
	}
	cube_buf_done(&b->config.env);
	b->config.env = env;
	return 0;
}

static int step_user(struct cube_build *b, const struct cube_step *s)
{
	(void)snprintf(b->config.user, sizeof(b->config.user), "%s", cube_buf_str(&s->text));
	return 0;
}

static int step_net(struct cube_build *b, const struct cube_step *s)
{
	b->net = strcmp(cube_buf_str(&s->text), "open") == 0;
	return b->net ? cube_backend_need(b->entry->service->backend, CUBE_CAP_NET_OPEN, &b->err) : 0;
}

static int step_entrypoint(struct cube_build *b, const struct cube_step *s)
{
	cube_buf_reset(&b->config.entrypoint);
	return cube_buf_add(&b->config.entrypoint, s->text.data, s->text.len) < 0
		       ? build_bad(b, s, -EINVAL, "it is too long")
		       : 0;
}

static int step_cmd(struct cube_build *b, const struct cube_step *s)
{
	return cube_buf_add(&b->config.entrypoint, s->text.data, s->text.len) < 0
		       ? build_bad(b, s, -EINVAL, "it is too long")
		       : 0;
}

static int step_note(struct cube_build *b, const struct cube_step *s)
{
	(void)s;
	cube_build_say(b, "taken, and without effect");
	return 0;
}

static const struct {
	const char *word;
	int (*take)(struct cube_build *b, const struct cube_step *s);
} build_steps[] = {
	[CUBE_STEP_FROM] = {"from", step_from},
	[CUBE_STEP_RUN] = {"run", step_run},
	[CUBE_STEP_COPY] = {"copy", step_copy},
	[CUBE_STEP_ENV] = {"env", step_env},
	[CUBE_STEP_WORKDIR] = {"workdir", step_workdir},
	[CUBE_STEP_USER] = {"user", step_user},
	[CUBE_STEP_NET] = {"net", step_net},
	[CUBE_STEP_ENTRYPOINT] = {"entrypoint", step_entrypoint},
	[CUBE_STEP_CMD] = {"cmd", step_cmd},
	[CUBE_STEP_NOTE] = {"note", step_note},
};

/* ---- all of them ---- */

static void build_show(struct cube_build *b, size_t n)
{
	const struct cube_step *s = &b->recipe.steps[n];
	struct cube_buf line = CUBE_BUF(4096);
	size_t len = s->text.len < BUILD_SHOWN ? s->text.len : BUILD_SHOWN;

	cube_buf_printf(&line, "%zu/%zu %s ", n + 1, b->recipe.n, build_steps[s->kind].word);
	for (size_t i = 0; i < len; i++) /* words, and a command of several lines, in one */
		cube_buf_addc(&line,
			      s->text.data[i] == '\0' || s->text.data[i] == '\n' ? ' ' : s->text.data[i]);
	if (s->to != NULL)
		cube_buf_adds(&line, s->to);
	cube_domain_enter(b->domain);
	(void)snprintf(b->entry->step, sizeof(b->entry->step), "%s", cube_buf_str(&line));
	cube_template_say(b->entry, cube_buf_str(&line));
	cube_domain_leave(b->domain);
	cube_buf_done(&line);
}

static int build_name(struct cube_build *b)
{
	struct cube_template t = {.source = "build", .size = UINT64_MAX};
	struct cube_digest *d = cube_digest_new();

	if (d == NULL)
		return cube_fail(&b->err, -ENOMEM, "out of memory");
	key_part(d, b->print, strlen(b->print));
	key_part(d, b->config.env.data, b->config.env.len);
	key_part(d, b->config.entrypoint.data, b->config.entrypoint.len);
	key_part(d, b->config.workdir, strlen(b->config.workdir));
	key_part(d, b->config.user, strlen(b->config.user));
	(void)cube_digest_end(d, t.fingerprint);
	cube_digest_free(d);
	(void)snprintf(t.name, sizeof(t.name), "%s", b->entry->info.name);
	return cube_backend_template_derive(b->entry->service->backend, b->parent, &t, &b->config, &b->err);
}

void cube_build_run(struct cube_build *b)
{
	b->code = 0;
	for (size_t n = 0; b->code == 0 && n < b->recipe.n; n++) {
		const struct cube_step *s = &b->recipe.steps[n];

		build_show(b, n);
		b->code = cube_cancel_fired(b->cancel) ? cube_fail(&b->err, -EINTR,
								   "the build was interrupted; the next goes "
								   "on with the steps that are done")
						       : build_steps[s->kind].take(b, s);
	}
	if (b->code == 0)
		b->code = build_name(b);
}
