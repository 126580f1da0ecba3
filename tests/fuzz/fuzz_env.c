/* SPDX-License-Identifier: Apache-2.0 */
/* Environments from people (first byte even) and from shells inside a sandbox (odd): whatever is accepted is
 * a sequence of NUL-ended NAME=VALUE. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/name.h"
#include "ctl/cube.h"
#include "ctl/exports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_check(const struct cube_buf *b)
{
	for (size_t at = 0; at < b->len;) {
		const char *end = memchr(b->data + at, '\0', b->len - at);
		const char *equals =
			end != NULL ? memchr(b->data + at, '=', (size_t)(end - b->data) - at) : NULL;

		if (equals == NULL || !cube_name_env_ok(b->data + at, (size_t)(equals - b->data) - at))
			abort();
		at = (size_t)(end - b->data) + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cube_buf out = CUBE_BUF(1 << 20);
	struct cube_err err = {0};
	int r;

	if (size == 0)
		return 0;
	if (data[0] & 1)
		r = cube_exports_parse((const char *)data + 1, size - 1, &out);
	else
		r = cube_env_parse((const char *)data + 1, size - 1, true, &out, &err);
	if (r == 0)
		fuzz_check(&out);
	cube_buf_done(&out);
	return 0;
}
