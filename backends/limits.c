/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of sandboxes that are created without any. */
#include "backends/backend.h"

#include "backends/base/conf.h"
#include "backends/base/macros.h"
#include "backends/base/num.h"

#include <errno.h>
#include <unistd.h>

#define LIMITS_MEMORY       (UINT64_C(2) << 30)
#define LIMITS_PIDS         1024
#define LIMITS_LEAST_MEMORY (UINT64_C(16) << 20) /* with less not even a shell starts for certain */

/* A leak inside shall not take the machine along, also where it is a small one. */
static uint64_t limit_memory(void)
{
	uint64_t half = (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);

	return half < LIMITS_MEMORY ? half : LIMITS_MEMORY;
}

static int limit_read_memory(const char *text, struct cube_limits *l)
{
	return cube_num_size(text, &l->memory) < 0 || l->memory < LIMITS_LEAST_MEMORY ? -EINVAL : 0;
}

static int limit_read_pids(const char *text, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_u64(text, 4194304, &n) < 0 || n < 8)
		return -EINVAL;
	l->pids = (uint32_t)n;
	return 0;
}

static int limit_read_cpus(const char *text, struct cube_limits *l)
{
	uint64_t n;

	if (cube_num_milli(text, &n) < 0 || n < 10 || n > UINT32_MAX)
		return -EINVAL;
	l->cpus_milli = (uint32_t)n;
	return 0;
}

static const struct {
	const char *key, *wanted;
	int (*read)(const char *text, struct cube_limits *l);
} limit_keys[] = {
	{"memory", "a size of 16M or more", limit_read_memory},
	{"pids", "a number from 8 to 4194304", limit_read_pids},
	{"cpus", "a number of processors, 0.01 or more", limit_read_cpus},
};

int cube_backend_conf_limits(const char *name, const struct cube_conf_section *conf, struct cube_limits *ret,
			     struct cube_err *err)
{
	*ret = (struct cube_limits){.memory = limit_memory(), .pids = LIMITS_PIDS};
	for (size_t i = 0; i < CUBE_COUNT(limit_keys); i++) {
		const char *text = cube_conf_get(conf, limit_keys[i].key);

		if (text && limit_keys[i].read(text, ret) < 0)
			return cube_fail(err, -EINVAL, "backend %s: %s = %s: %s is wanted", name,
					 limit_keys[i].key, text, limit_keys[i].wanted);
	}
	return 0;
}
