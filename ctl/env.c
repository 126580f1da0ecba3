/* SPDX-License-Identifier: Apache-2.0 */
/* What people write into `env`: NAME=VALUE lines, or NUL-separated as `env -0` prints. */
#include <errno.h>
#include <string.h>

#include "backends/base/name.h"
#include "ctl/cube.h"

static int env_line(const char *line, size_t len, unsigned number, struct cube_buf *ret, struct cube_err *err)
{
	const char *equals = memchr(line, '=', len);

	if (len == 0)
		return 0;
	if (equals == NULL)
		return cube_fail(err, -EINVAL, "env, line %u: no '=' in it: write NAME=VALUE", number);
	if (!cube_name_env_ok(line, (size_t)(equals - line)))
		return cube_fail(
			err, -EINVAL,
			"env, line %u: a name is made of letters, digits and _, and begins with no digit",
			number);
	cube_buf_add(ret, line, len);
	if (cube_buf_addc(ret, '\0') < 0)
		return cube_fail(err, ret->error == -ENOMEM ? -ENOMEM : -EFBIG, "env: too large");
	return 0;
}

int cube_env_parse(const char *text, size_t len, bool final, struct cube_buf *ret, struct cube_err *err)
{
	char separator = memchr(text, '\0', len) != NULL ? '\0' : '\n';
	unsigned number = 1;

	while (len > 0) {
		const char *end = memchr(text, separator, len);
		size_t n = end != NULL ? (size_t)(end - text) : len;
		int r;

		if (end == NULL && !final)
			return 0;
		r = env_line(text, n, number++, ret, err);
		if (r < 0)
			return r;
		n += end != NULL;
		text += n;
		len -= n;
	}
	return 0;
}
