/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the daemon: one table for the configuration's [daemon] section and for the root verb `set`. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"

struct setting {
	const char *key;
	size_t offset;
	bool is_size; /* bytes, a uint64_t; else a number, a uint32_t */
	uint64_t min, max, fallback;
};

#define SETTING(name) .key = #name, .offset = offsetof(struct cube_domain, name)

static const struct setting settings[] = {
	{SETTING(output_limit), .is_size = true, .min = 64 << 10, .max = UINT64_C(1) << 50,
	 .fallback = 256 << 20},
	{SETTING(spool_limit), .is_size = true, .min = 64 << 10, .max = UINT64_C(1) << 50,
	 .fallback = 1 << 30},
	{SETTING(jobs_kept), .min = 1, .max = 100000, .fallback = 128},
	{SETTING(exit_patience_s), .min = 1, .max = 86400, .fallback = 30},
	{SETTING(ready_timeout_s), .min = 1, .max = 86400, .fallback = 300},
	{SETTING(port_connections), .min = 1, .max = 100000, .fallback = 4096},
	{SETTING(disk_reserve), .is_size = true, .min = 0, .max = UINT64_C(1) << 50, .fallback = 1 << 30},
	{SETTING(disk_percent), .min = 0, .max = 90, .fallback = 5},
	{SETTING(canary_s), .min = 0, .max = 86400, .fallback = 10},
};

/* The name that users write: without the unit. */
static int setting_name(const struct setting *s)
{
	size_t len = strlen(s->key);

	return (int)(len > 2 && strcmp(s->key + len - 2, "_s") == 0 ? len - 2 : len);
}

static const struct setting *setting_find(const char *key)
{
	for (size_t i = 0; i < CUBE_COUNT(settings); i++) {
		const size_t len = (size_t)setting_name(&settings[i]);

		if (strlen(key) == len && strncmp(settings[i].key, key, len) == 0)
			return &settings[i];
	}
	return NULL;
}

static void setting_write(struct cube_domain *d, const struct setting *s, uint64_t n)
{
	char *field = (char *)d + s->offset;

	if (s->is_size)
		memcpy(field, &n, sizeof(n));
	else
		memcpy(field, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
}

static uint64_t setting_read(const struct cube_domain *d, const struct setting *s)
{
	const char *field = (const char *)d + s->offset;
	uint64_t size;
	uint32_t n;

	memcpy(&size, field, s->is_size ? sizeof(size) : 0);
	memcpy(&n, field, sizeof(n));
	return s->is_size ? size : n;
}

static int setting_unknown(const char *key, struct cube_err *err)
{
	struct cube_buf known = CUBE_BUF(512);
	int r;

	for (size_t i = 0; i < CUBE_COUNT(settings); i++)
		cube_buf_printf(&known, "%s%.*s", i > 0 ? ", " : "", setting_name(&settings[i]),
				settings[i].key);
	r = cube_fail(err, -EINVAL, "no setting '%s'; known: %s", key, cube_buf_str(&known));
	cube_buf_done(&known);
	return r;
}

static void settings_tell(struct cube_domain *d)
{
	if (d->canary != NULL)
		atomic_store(d->canary, d->canary_s);
}

int cube_domain_set(struct cube_domain *d, const char *key, const char *value, struct cube_err *err)
{
	const struct setting *s = setting_find(key);
	uint64_t n;
	int r;

	if (s == NULL)
		return setting_unknown(key, err);
	r = s->is_size ? cube_num_size(value, &n) : cube_num_u64(value, s->max, &n);
	if (r < 0 || n < s->min || n > s->max)
		return cube_fail(err, -EINVAL, "%s=%s: a %s from %llu to %llu", key, value,
				 s->is_size ? "size" : "number", (unsigned long long)s->min,
				 (unsigned long long)s->max);
	setting_write(d, s, n);
	settings_tell(d);
	if (d->keeper.set != NULL)
		d->keeper.set(d->keeper.ctx, key, n);
	return 0;
}

void cube_settings_show(const struct cube_domain *d, struct cube_buf *out)
{
	for (size_t i = 0; i < CUBE_COUNT(settings); i++)
		cube_buf_printf(out, "%.*s %llu\n", setting_name(&settings[i]), settings[i].key,
				(unsigned long long)setting_read(d, &settings[i]));
}

int cube_settings_load(struct cube_domain *d, struct cube_err *err)
{
	const struct cube_conf_section *conf = d->conf != NULL ? cube_conf_find(d->conf, "daemon") : NULL;
	const char *key;

	for (size_t i = 0; i < CUBE_COUNT(settings); i++)
		setting_write(d, &settings[i], settings[i].fallback);
	settings_tell(d);
	for (size_t i = 0; conf != NULL && (key = cube_conf_key(conf, i)) != NULL; i++) {
		int r = cube_domain_set(d, key, cube_conf_get(conf, key), err);

		if (r < 0) {
			(void)cube_fail_in(err, "configuration: [daemon]");
			return r;
		}
	}
	return 0;
}
