/* SPDX-License-Identifier: Apache-2.0 */
/* Failures: a code and a sentence in the caller's memory. */
#include "backends/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/escape.h"
#include "backends/base/macros.h"

/* Raw text before escaping: more than enough to fill CUBE_ERR_TEXT, so that the cut is made only there. */
#define ERR_RAW (2 * CUBE_ERR_TEXT)

const char *cube_errno_name(int code)
{
	const char *name = code == 0 ? NULL : strerrorname_np(abs(code));

	return name != NULL ? name : "E?";
}

const char *cube_errno_text(int code)
{
	const char *text = strerrordesc_np(abs(code));

	return text != NULL ? text : "Unknown error";
}

/* @raw may hold what @err->text was made of: it is a copy. */
static int err_set(struct cube_err *err, int code, const char *raw)
{
	err->code = code;
	(void)cube_escape_into(err->text, sizeof(err->text), raw);
	return code;
}

/* Adds ": @text" to @raw as far as it fits. */
static void err_append(char raw[ERR_RAW], const char *text)
{
	size_t len = strlen(raw);

	(void)snprintf(raw + len, ERR_RAW - len, ": %s", text);
}

/* Here are the functions themselves; the analyser has macros over them (err.h). */
#undef cube_fail
#undef cube_fail_in
#undef cube_fail_errno

int cube_fail(struct cube_err *err, int code, const char *fmt, ...)
{
	char raw[ERR_RAW];
	va_list ap;

	code = -abs(code);
	if (err == NULL)
		return code;
	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	return err_set(err, code, raw);
}

int cube_fail_in(struct cube_err *err, const char *fmt, ...)
{
	char raw[ERR_RAW];
	va_list ap;

	if (err == NULL)
		return -EIO;
	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	err_append(raw, err->code != 0 ? err->text : cube_errno_text(EIO));
	return err_set(err, err->code != 0 ? err->code : -EIO, raw);
}

int cube_fail_errno(struct cube_err *err, const char *fmt, ...)
{
	int code = errno != 0 ? errno : EIO;
	char raw[ERR_RAW];
	va_list ap;

	if (err == NULL)
		return -code;
	va_start(ap, fmt);
	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	va_end(ap);
	err_append(raw, cube_errno_text(code));
	return err_set(err, -code, raw);
}
