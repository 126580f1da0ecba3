/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the daemon: one table for the configuration's [daemon] section and for the root verb `set`. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"

struct setting {
	const char *key;
	size_t offset;
	bool is_size; /* bytes, a uint64_t; else a number, a uint32_t */
	uint64_t min, max;
};

#define SETTING(name) .key = #name, .offset = offsetof(struct cube_domain, name)

static const struct setting settings[] = {
	{SETTING(output_limit), .is_size = true, .min = 64 << 10, .max = UINT64_C(1) << 50},
	{SETTING(spool_limit), .is_size = true, .min = 64 << 10, .max = UINT64_C(1) << 50},
	{SETTING(jobs_kept), .min = 1, .max = 100000},
	{SETTING(exit_patience_s), .min = 1, .max = 86400},
	{SETTING(disk_reserve), .is_size = true, .min = 0, .max = UINT64_C(1) << 50},
	{SETTING(disk_percent), .min = 0, .max = 90},
};

/* The name that users write: without the unit. */
static bool setting_is(const struct setting *s, const char *key)
{
	size_t len = strlen(s->key);

	if (len > 2 && strcmp(s->key + len - 2, "_s") == 0)
		len -= 2;
	return strlen(key) == len && strncmp(s->key, key, len) == 0;
}

static const struct setting *setting_find(const char *key)
{
	for (size_t i = 0; i < CUBE_COUNT(settings); i++)
		if (setting_is(&settings[i], key))
			return &settings[i];
	return NULL;
}

int cube_domain_set(struct cube_domain *d, const char *key, const char *value, struct cube_err *err)
{
	const struct setting *s = setting_find(key);
	char *field;
	uint64_t n;

	if (s == NULL)
		return cube_fail(err, -EINVAL,
				 "no setting '%s'; known: output_limit, spool_limit, jobs_kept, "
				 "exit_patience, disk_reserve, disk_percent",
				 key);
	int r = s->is_size ? cube_num_size(value, &n) : cube_num_u64(value, s->max, &n);
	if (r < 0 || n < s->min || n > s->max)
		return cube_fail(err, -EINVAL, "%s=%s: a %s from %llu to %llu", key, value,
				 s->is_size ? "size" : "number", (unsigned long long)s->min,
				 (unsigned long long)s->max);
	field = (char *)d + s->offset;
	if (s->is_size)
		memcpy(field, &n, sizeof(n));
	else
		memcpy(field, &(uint32_t){(uint32_t)n}, sizeof(uint32_t));
	return 0;
}

int cube_settings_load(struct cube_domain *d, struct cube_err *err)
{
	const struct cube_conf_section *conf = d->conf != NULL ? cube_conf_find(d->conf, "daemon") : NULL;
	const char *key;

	d->output_limit = UINT64_C(256) << 20;
	d->spool_limit = UINT64_C(1) << 30;
	d->jobs_kept = 128;
	d->exit_patience_s = 30;
	d->disk_reserve = UINT64_C(1) << 30;
	d->disk_percent = 5;
	for (size_t i = 0; conf != NULL && (key = cube_conf_key(conf, i)) != NULL; i++) {
		int r = cube_domain_set(d, key, cube_conf_get(conf, key), err);

		if (r < 0) {
			(void)cube_fail_in(err, "configuration: [daemon]");
			return r;
		}
	}
	return 0;
}
