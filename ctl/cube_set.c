/* SPDX-License-Identifier: Apache-2.0 */
/* What can be changed of a sandbox: its environment, settings, labels. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/cube.h"
#include "ctl/event.h"

int cube_cube_set_env(struct cube_cube *c, const char *env, size_t len, struct cube_err *err)
{
	struct cube_own *own = cube_own(c);
	struct cube_env_text *text;
	struct cube_buf fresh = CUBE_BUF(CUBE_ENV_MAX), old;

	if (c->phase == CUBE_REMOVED)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is being destroyed", c->name);
	int r = cube_buf_add(&fresh, env, len);
	text = r == 0 ? cube_create_env_text(env, len) : NULL;
	if (text == NULL) {
		cube_buf_done(&fresh);
		return cube_fail(err, r == -EMSGSIZE ? -EFBIG : -ENOMEM, "sandbox '%s': the environment: %s",
				 c->name, r == -EMSGSIZE ? "above 1 MiB" : "out of memory");
	}
	old = c->env;
	c->env = fresh;
	r = cube_state_save_env(c, err);
	if (r == 0) {
		c->env_version++;
		r = cube_state_save(c, err);
	}
	if (r < 0) {
		c->env = old;
		cube_buf_done(&fresh);
		cube_env_text_unref(text);
		return r;
	}
	cube_buf_done(&old);
	cube_env_text_unref(own->env_text);
	own->env_text = text;
	return 0;
}

/* ---- set key=value ---- */

static int set_resume(struct cube_cube *c, const char *value, struct cube_err *err)
{
	int on;

	if (cube_num_bool(value, &on) < 0)
		return cube_fail(err, -EINVAL, "resume=%s: yes or no", value);
	c->resume = on != 0;
	return 0;
}

static int set_timeout(struct cube_cube *c, const char *value, struct cube_err *err)
{
	uint64_t n;

	if (cube_num_u64(value, UINT32_MAX / 1000, &n) < 0)
		return cube_fail(err, -EINVAL, "command_timeout=%s: seconds, 0 for none", value);
	c->command_timeout_s = (uint32_t)n;
	return 0;
}

static const struct {
	const char *key;
	int (*set)(struct cube_cube *c, const char *value, struct cube_err *err);
} cube_settings[] = {
	{"resume", set_resume},
	{"command_timeout", set_timeout},
};

/* 0; 1: something of its times. */
static int set_find(struct cube_cube *c, const char *key, const char *value, struct cube_err *err)
{
	for (size_t i = 0; i < CUBE_COUNT(cube_settings); i++)
		if (strcmp(key, cube_settings[i].key) == 0)
			return cube_settings[i].set(c, value, err);
	if (strncmp(key, "label.", 6) == 0)
		return cube_label_set(c, key + 6, value, err);
	int r = cube_times_set(c, key, value, err);
	return r != 0 ? r
		      : cube_fail(err, -EINVAL,
				  "no setting '%s' of a sandbox; known: resume, command_timeout, idle, "
				  "idle_background, lifetime, at_end, cpus, memory, pids, label.NAME",
				  key);
}

int cube_cube_set(struct cube_cube *c, const char *key, const char *value, struct cube_err *err)
{
	const struct cube_times times = c->times;
	bool resume = c->resume;
	uint32_t timeout = c->command_timeout_s;

	if (c->phase == CUBE_REMOVED)
		return cube_fail(err, -EHOSTDOWN, "sandbox '%s' is being destroyed", c->name);
	int r = set_find(c, key, value, err);
	if (r < 0)
		return r;
	bool timed = r == 1;
	r = cube_state_save(c, err);
	if (r < 0) { /* a label stays in memory; what is on disk is the older one */
		c->resume = resume;
		c->command_timeout_s = timeout;
		c->times = times;
	}
	if (timed && r == 0)
		cube_times_changed(c);
	if (timed)
		cube_times_look(c);
	return r;
}

/* ---- The end ---- */

void cube_cube_finish_gone(struct cube_cube *c)
{
	cube_own(c)->gone = true;
	cube_cube_event(c, "destroyed", "");
	cube_list_remove(&c->link);
	cube_cube_changed(c);
	cube_cube_unref(c);
}
