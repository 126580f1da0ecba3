/* SPDX-License-Identifier: Apache-2.0 */
/* The root's files, and the pieces that all `key value` texts are made of. */
#include "ctl/show_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "ctl/domain_priv.h"
#include "ctl/version.h"

#include "cube_readme_text.h"

void cube_show_str(struct cube_buf *out, const char *key, const char *value)
{
	cube_buf_printf(out, "%s ", key);
	if (value == NULL || value[0] == '\0')
		cube_buf_addc(out, '-');
	else
		cube_buf_add_escaped(out, value, strlen(value), false);
	cube_buf_addc(out, '\n');
}

void cube_show_num(struct cube_buf *out, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		cube_buf_printf(out, "%s -\n", key);
	else
		cube_buf_printf(out, "%s %" PRIu64 "\n", key, value);
}

void cube_show_time(struct cube_buf *out, const char *key, uint64_t wall_ns)
{
	char text[CUBE_TIME_TEXT];

	cube_buf_printf(out, "%s %s\n", key, cube_clock_text(wall_ns, text));
}

void cube_show_milli(struct cube_buf *out, const char *key, uint64_t milli)
{
	if (milli % 1000 == 0)
		cube_buf_printf(out, "%s %" PRIu64 "\n", key, milli / 1000);
	else
		cube_buf_printf(out, "%s %" PRIu64 ".%03" PRIu64 "\n", key, milli / 1000, milli % 1000);
}

void cube_show_caps(struct cube_buf *out, uint32_t caps)
{
	for (unsigned n = 0; n < CUBE_CAP_COUNT; n++) {
		if (caps & (1u << n))
			cube_buf_printf(out, " %s", cube_cap_name(n));
	}
}

int cube_show_usage(enum cube_scope scope, void *object, struct cube_buf *out)
{
	cube_buf_addc(out, '\n');
	return cube_verb_usage(scope, object, out);
}

/* ---- labels, in the order of their names ---- */

struct label_list {
	const char **names;
	size_t n;
};

static int show_label_name(void *ctx, const char *key, void *value)
{
	struct label_list *l = ctx;

	(void)value;
	l->names[l->n++] = key;
	return 0;
}

static int show_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void cube_show_labels(const struct cube_map *labels,
		      void (*each)(void *ctx, const char *name, const char *value), void *ctx)
{
	size_t count = labels != NULL ? cube_map_count(labels) : 0;
	struct label_list l = {.names = count > 0 ? cube_calloc(count, sizeof(*l.names)) : NULL};

	if (l.names == NULL)
		return;
	(void)cube_map_each(labels, show_label_name, &l);
	qsort(l.names, l.n, sizeof(*l.names), show_compare);
	for (size_t i = 0; i < l.n; i++)
		each(ctx, l.names[i], cube_map_get(labels, l.names[i]));
	cube_free(l.names);
}

void cube_show_label_line(void *ctx, const char *name, const char *value)
{
	struct cube_buf *out = ctx;

	cube_buf_printf(out, "label.%s ", name);
	cube_buf_add_escaped(out, value, strlen(value), false);
	cube_buf_addc(out, '\n');
}

/* ---- the root ---- */

int cube_show_readme(struct cube_domain *d, struct cube_buf *out)
{
	(void)d;
	return cube_buf_add(out, cube_readme_text, sizeof(cube_readme_text));
}

int cube_show_clone(struct cube_domain *d, struct cube_buf *out)
{
	(void)d;
	return cube_buf_adds(
		out,
		"open for reading and writing (cat <>clone): makes a sandbox, a read gives its name; write "
		"`hold` and it is destroyed when this is closed\n");
}

int cube_show_root_ctl(struct cube_domain *d, struct cube_buf *out)
{
	uint64_t phases[CUBE_REMOVED + 1] = {0}, total = 0;

	cube_list_each (i, &d->cubes) {
		phases[cube_list_entry(i, struct cube_cube, link)->phase]++;
		total++;
	}
	cube_show_str(out, "version", CUBEFS_VERSION);
	cube_show_time(out, "started", d->started_wall);
	cube_show_str(out, "state", d->state_dir);
	cube_show_str(out, "backend", d->default_service != NULL ? d->default_service->backend->name : NULL);
	cube_show_num(out, "sandboxes", total);
	for (unsigned p = 0; p < CUBE_REMOVED; p++)
		cube_show_num(out, cube_phase_name((enum cube_phase)p), phases[p]);
	cube_settings_show(d, out);
	cube_buf_add(out, d->done.data, d->done.len);
	return cube_show_usage(CUBE_SCOPE_ROOT, NULL, out);
}

static void show_list_number(struct cube_buf *out, uint64_t value)
{
	if (value == UINT64_MAX)
		cube_buf_adds(out, " -");
	else
		cube_buf_printf(out, " %" PRIu64, value);
}

void cube_show_word(struct cube_buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == ' ' || text[i] == '\\')
			cube_buf_printf(out, "\\x%02x", (unsigned char)text[i]);
		else
			cube_buf_addc(out, text[i]);
	}
}

void cube_show_label_word(void *ctx, const char *name, const char *value)
{
	struct cube_buf *out = ctx;

	cube_buf_printf(out, " label.%s=", name);
	cube_show_word(out, value, strlen(value));
}

/* From @from to @to; 0 where that lies behind. */
static uint64_t show_seconds(uint64_t from, uint64_t to)
{
	return to > from ? (to - from) / UINT64_C(1000000000) : 0;
}

static void show_list_times(struct cube_cube *c, struct cube_buf *out, uint64_t now)
{
	uint64_t idle = cube_use_idle_since(c), ends = c->times.ends_wall;

	show_list_number(out, idle != 0 ? show_seconds(idle, now) : 0);
	show_list_number(out, ends != 0 ? show_seconds(now, ends) : UINT64_MAX);
}

int cube_show_list(struct cube_domain *d, struct cube_buf *out)
{
	uint64_t now = cube_clock_wall();

	cube_list_each (i, &d->cubes) {
		struct cube_cube *c = cube_list_entry(i, struct cube_cube, link);
		bool known = c->usage_wall != 0;

		cube_buf_printf(out, "%s %s %s %s", c->name, cube_phase_name(c->phase),
				c->service->backend->name,
				cube_cube_template(c) != NULL ? cube_cube_template(c) : "-");
		show_list_times(c, out, now);
		show_list_number(out, known ? c->usage.pids : UINT64_MAX);
		show_list_number(out, known && c->usage.cpu_ns != UINT64_MAX
					      ? c->usage.cpu_ns / UINT64_C(1000000000)
					      : UINT64_MAX);
		show_list_number(out, known ? c->usage.memory : UINT64_MAX);
		show_list_number(out, known ? c->usage.disk : UINT64_MAX);
		cube_show_labels(c->labels, cube_show_label_word, out);
		cube_buf_addc(out, '\n');
	}
	return out->error;
}
