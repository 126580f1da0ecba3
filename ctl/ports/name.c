/* SPDX-License-Identifier: Apache-2.0 */
/* Names in `ports/`: a number, `unix:PATH`, `abstract:NAME`. A name of a directory has no slash, so there it is
 * %2F, and a % is %25; each thing has one name only. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/num.h"
#include "ctl/ports/port.h"

static const char name_unix[] = "unix:", name_abstract[] = "abstract:";

static int name_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int name_decode(const char *text, char out[CUBE_TARGET_PATH + 1])
{
	size_t n = 0;

	for (; *text != '\0'; text++) {
		char c = *text;

		if (n == CUBE_TARGET_PATH)
			return -ENAMETOOLONG;
		if (c == '%') {
			int high = name_digit(text[1]), low = high < 0 ? -1 : name_digit(text[2]);

			if (low < 0 || (high == 0 && low == 0))
				return -EINVAL;
			c = (char)(high * 16 + low);
			text += 2;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	return n > 0 ? 0 : -EINVAL;
}

int cube_port_spell(const struct cube_target *t, struct cube_buf *out)
{
	if (t->kind == CUBE_TARGET_TCP)
		return cube_buf_printf(out, "%u", t->port);
	cube_buf_adds(out, t->kind == CUBE_TARGET_UNIX ? name_unix : name_abstract);
	for (const char *c = t->path; *c != '\0'; c++) {
		unsigned char byte = (unsigned char)*c;

		if (byte == '/' || byte == '%' || byte < 0x20 || byte == 0x7f)
			cube_buf_printf(out, "%%%02X", byte);
		else
			cube_buf_addc(out, *c);
	}
	return out->error;
}

static int name_number(const char *name, struct cube_target *ret, struct cube_err *err)
{
	uint64_t n;

	if (cube_num_u64(name, UINT16_MAX, &n) < 0 || n == 0)
		return cube_fail(
			err, -EINVAL,
			"'%s' is no port: a number from 1 to 65535, unix:PATH or abstract:NAME (with "
			"%%2F for each slash)",
			name);
	ret->port = (uint16_t)n;
	return 0;
}

static int name_socket(const char *name, struct cube_target *ret, struct cube_err *err)
{
	size_t skip = ret->kind == CUBE_TARGET_UNIX ? sizeof(name_unix) - 1 : sizeof(name_abstract) - 1;
	int r = name_decode(name + skip, ret->path);

	if (r == -ENAMETOOLONG)
		return cube_fail(err, r, "'%s': a socket's name has at most %d bytes", name,
				 CUBE_TARGET_PATH);
	if (r < 0)
		return cube_fail(err, r, "'%s': behind the colon is a name, with %%2F for / and %%25 for %%",
				 name);
	if (ret->kind == CUBE_TARGET_UNIX && ret->path[0] != '/')
		return cube_fail(err, -EINVAL, "'%s': a path inside is absolute, as unix:%%2Frun%%2Fapp.sock",
				 name);
	return ret->kind == CUBE_TARGET_UNIX && ret->path[1] == '\0'
		       ? cube_fail(err, -EINVAL, "'%s': / is no socket", name)
		       : 0;
}

int cube_port_parse(const char *name, struct cube_target *ret, struct cube_err *err)
{
	struct cube_buf right = CUBE_BUF(1024);
	int r;

	*ret = (struct cube_target){.kind = CUBE_TARGET_TCP};
	if (strncmp(name, name_unix, sizeof(name_unix) - 1) == 0)
		ret->kind = CUBE_TARGET_UNIX;
	else if (strncmp(name, name_abstract, sizeof(name_abstract) - 1) == 0)
		ret->kind = CUBE_TARGET_ABSTRACT;
	r = ret->kind == CUBE_TARGET_TCP ? name_number(name, ret, err) : name_socket(name, ret, err);
	if (r == 0)
		r = cube_port_spell(ret, &right);
	if (r == 0 && strcmp(cube_buf_str(&right), name) != 0)
		r = cube_fail(err, -EINVAL, "'%s' is written %s", name, cube_buf_str(&right));
	cube_buf_done(&right);
	return r;
}
