/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: any bytes; what is read can be found by its name again, what is refused is
 * explained. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_section(const struct cube_conf *c, const struct cube_conf_section *s)
{
	static const char *const known[] = {"state", "limit", NULL};
	struct cube_err err = {0};
	size_t unknown = 0, i;

	if (cube_conf_find(c, cube_conf_section_name(s)) != s)
		abort();
	for (i = 0; cube_conf_key(s, i) != NULL; i++) {
		const char *key = cube_conf_key(s, i), *value = cube_conf_get(s, key);

		if (*key == '\0' || value == NULL || strchr(key, '\n') != NULL || strchr(value, '\n') != NULL)
			abort();
		unknown += strcmp(key, known[0]) != 0 && strcmp(key, known[1]) != 0;
	}
	if (cube_conf_check(s, known, &err) != (unknown > 0 ? -EINVAL : 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cube_err err = {0};
	struct cube_conf *c = NULL;
	int r = cube_conf_parse((const char *)data, size, "fuzz", &c, &err);

	if (r != 0) {
		if (r != -EINVAL || err.code != r || strncmp(err.text, "fuzz ", 5) != 0 || c != NULL)
			abort();
		return 0;
	}
	for (size_t i = 0; cube_conf_at(c, i) != NULL; i++)
		fuzz_section(c, cube_conf_at(c, i));
	cube_conf_free(c);
	return 0;
}
