/* SPDX-License-Identifier: Apache-2.0 */
/* The section [9p] of the configuration. */
#include <errno.h>
#include <stddef.h>

#include "backends/base/macros.h"
#include "backends/base/num.h"
#include "fs/p9/listen.h"

struct conf_limit {
	const char *key;
	size_t at; /* in struct cube_p9_limits */
	unsigned min, max;
};

static const struct conf_limit conf_limits[] = {
	{"connections", offsetof(struct cube_p9_limits, connections), 1, 65536},
	{"fids", offsetof(struct cube_p9_limits, fids), 16, 1u << 20},
	{"tags", offsetof(struct cube_p9_limits, tags), 1, 65535},
	{"msize", offsetof(struct cube_p9_limits, msize), CUBE_P9_MSIZE_MIN, CUBE_P9_MSIZE_MAX},
};

static int conf_limit(const struct cube_conf_section *s, const struct conf_limit *l,
		      struct cube_p9_limits *limits, struct cube_err *err)
{
	const char *value = cube_conf_get(s, l->key);
	uint64_t number;

	if (value == NULL)
		return 0;
	if (cube_num_size(value, &number) < 0 || number < l->min || number > l->max)
		return cube_fail(err, -EINVAL, "[9p] %s = %s: wants a number from %u to %u", l->key, value,
				 l->min, l->max);
	*(unsigned *)(void *)((char *)limits + l->at) = (unsigned)number;
	return 0;
}

int cube_p9_conf(const struct cube_conf *conf, struct cube_p9_limits *limits, struct cube_p9_access *access,
		 struct cube_err *err)
{
	static const char *const known[] = {"connections", "fids", "tags", "msize", "token_file",
					    "certificate", "key",  "ca",   NULL};
	const struct cube_conf_section *s = conf != NULL ? cube_conf_find(conf, "9p") : NULL;
	int r = s != NULL ? cube_conf_check(s, known, err) : 0;

	*limits = cube_p9_limits_default;
	for (size_t i = 0; r == 0 && i < CUBE_COUNT(conf_limits); i++)
		r = conf_limit(s, &conf_limits[i], limits, err);
	if (access->token_file == NULL)
		access->token_file = cube_conf_get(s, "token_file");
	access->certificate = cube_conf_get(s, "certificate");
	access->key = cube_conf_get(s, "key");
	access->ca = cube_conf_get(s, "ca");
	return r;
}
