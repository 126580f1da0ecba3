/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a template here: STATE/templates/BACKEND/NAME/record.json. What the backend keeps of it (its
 * files, where they came from, what they say of their programs) is not repeated. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"

#define RECORD_FILE "record.json"
#define RECORD_LOG  "log"
#define RECORD_MAX  ((size_t)16 << 20)

static const char *const record_texts[CUBE_TEMPLATE_TEXTS] = {
	[CUBE_TEMPLATE_ALIASES] = "aliases",   [CUBE_TEMPLATE_START] = "start",
	[CUBE_TEMPLATE_READY] = "ready",       [CUBE_TEMPLATE_BUILD] = "build",
	[CUBE_TEMPLATE_SERVICES] = "services",
};

/* The directory; made where a backend's own template has none yet. */
static int record_dir(struct cube_template_entry *t, int *ret)
{
	struct cube_domain_own *own = cube_domain_own(t->service->domain);
	cube_auto_fd dir = -1;
	int r = cube_file_mkdir(own->templates_fd, t->service->backend->name, 0700, &dir);

	return r == 0 ? cube_file_mkdir(dir, t->info.name, 0700, ret) : r;
}

static json_t *record_json(const struct cube_template_entry *t)
{
	const struct cube_limits *l = &t->keys.limits;
	json_t *o = json_pack("{s:I,s:I,s:i,s:s}", "memory", (json_int_t)l->memory, "disk",
			      (json_int_t)l->disk, "cpus", (int)l->cpus_milli, "os", t->keys.os);

	if (o != NULL) {
		(void)json_object_set_new(o, "layers",
					  cube_bytes_json(cube_buf_str(&t->layers), t->layers.len));
		(void)json_object_set_new(o, "box", json_string(t->box));
	}
	if (o != NULL && t->failure.code < 0) {
		(void)json_object_set_new(o, "failed", json_integer(t->failure.code));
		(void)json_object_set_new(o, "why",
					  cube_bytes_json(t->failure.text, strlen(t->failure.text)));
	}
	for (size_t i = 0; o != NULL && i < CUBE_TEMPLATE_TEXTS; i++)
		(void)json_object_set_new(o, record_texts[i],
					  cube_bytes_json(cube_buf_str(&t->texts[i]), t->texts[i].len));
	return o;
}

int cube_template_record_save(struct cube_template_entry *t, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = record_json(t);
	struct cube_buf text = CUBE_BUF(RECORD_MAX);
	cube_auto_fd dir = -1;
	int r = o != NULL ? cube_json_write(o, &text) : -ENOMEM;

	if (r == 0)
		r = record_dir(t, &dir);
	if (r == 0)
		r = cube_state_replace(dir, RECORD_FILE, text.data, text.len);
	cube_buf_done(&text);
	return r < 0 ? cube_fail(err, r, "template '%s': its record: %s", t->info.name, cube_errno_text(r))
		     : 0;
}

/* What the backend lists is something better. */
static void record_take_failure(struct cube_template_entry *t, const json_t *o)
{
	cube_auto_str why = cube_bytes_dup(o, "why");
	int code = (int)cube_json_int(o, "failed", 0);

	if (code >= 0 || why == NULL)
		return;
	(void)cube_fail(&t->failure, code, "%s", why);
	(void)snprintf(t->info.state, sizeof(t->info.state), "error");
}

static void record_take(struct cube_template_entry *t, const json_t *o)
{
	t->keys.limits.memory = (uint64_t)cube_json_int(o, "memory", 0);
	t->keys.limits.disk = (uint64_t)cube_json_int(o, "disk", 0);
	t->keys.limits.cpus_milli = (uint32_t)cube_json_int(o, "cpus", 0);
	(void)snprintf(t->keys.os, sizeof(t->keys.os), "%s", cube_json_str(o, "os", ""));
	(void)cube_bytes_read(json_object_get(o, "layers"), &t->layers);
	(void)snprintf(t->box, sizeof(t->box), "%s", cube_json_str(o, "box", ""));
	for (size_t i = 0; i < CUBE_TEMPLATE_TEXTS; i++)
		(void)cube_bytes_read(json_object_get(o, record_texts[i]), &t->texts[i]);
	record_take_failure(t, o);
}

void cube_template_record_load(struct cube_template_entry *t)
{
	struct cube_buf text = CUBE_BUF(RECORD_MAX);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_err err = {0};
	cube_auto_fd dir = -1;
	int r = record_dir(t, &dir);

	if (r == 0) {
		cube_linelog_load(&t->log, dir, RECORD_LOG);
		r = cube_file_read(dir, RECORD_FILE, &text);
	}
	if (r == 0)
		r = cube_json_parse(cube_buf_str(&text), text.len, RECORD_FILE, &o, &err);
	cube_buf_done(&text);
	if (r == 0)
		record_take(t, o);
	else if (r != -ENOENT)
		cube_log(CUBE_LOG_WARNING, "ctl", "template '%s': its record cannot be read: %s",
			 t->info.name, err.text[0] != '\0' ? err.text : cube_errno_text(r));
}

void cube_template_say(struct cube_template_entry *t, const char *line)
{
	cube_auto_fd dir = -1;

	cube_linelog_add(&t->log, line);
	cube_wake(&t->changed);
	if (!t->removed && !t->unsaved && record_dir(t, &dir) == 0)
		cube_linelog_keep(&t->log, dir, RECORD_LOG);
}
