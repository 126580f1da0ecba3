/* SPDX-License-Identifier: Apache-2.0 */
/* Which strings may be directory entries. */
#include "backends/base/name.h"

#include <stddef.h>
#include <string.h>

#include "backends/base/escape.h"

/* <ctype.h> follows the locale; these do not. */
static bool char_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool char_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool name_chars_ok(const char *s, const char *also)
{
	size_t len = strnlen(s, CUBE_NAME_MAX + 1);

	if (len == 0 || len > CUBE_NAME_MAX || s[0] == '.' || s[0] == '-')
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!char_alpha(s[i]) && !char_digit(s[i]) && strchr(also, s[i]) == NULL)
			return false;
	}
	return true;
}

bool cube_name_ok(const char *s)
{
	return name_chars_ok(s, "._-");
}

bool cube_name_template_ok(const char *s)
{
	return name_chars_ok(s, "._-:") && s[0] != ':' && s[strlen(s) - 1] != ':';
}

bool cube_name_layer_ok(const char *s)
{
	return s[0] == '~' && strnlen(s, 34) == 33 && strspn(s + 1, "0123456789abcdef") == 32;
}

bool cube_name_entry_ok(const char *s)
{
	size_t len = strnlen(s, CUBE_ENTRY_MAX + 1);

	return len > 0 && len <= CUBE_ENTRY_MAX && strchr(s, '/') == NULL && strcmp(s, ".") != 0 &&
	       strcmp(s, "..") != 0;
}

static bool inside_reserved(const char *s)
{
	static const char *const reserved[] = {"/proc", "/sys", "/dev"};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		size_t len = strlen(reserved[i]);

		if (strncmp(s, reserved[i], len) == 0 && (s[len] == '\0' || s[len] == '/'))
			return true;
	}
	return false;
}

static bool inside_text_ok(const char *s)
{
	size_t len = strlen(s), n;
	unsigned c;

	for (; len > 0; s += n, len -= n) {
		n = cube_utf8_decode((const unsigned char *)s, len, &c);
		if (n == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0))
			return false;
	}
	return true;
}

bool cube_name_inside_ok(const char *s)
{
	if (s == NULL || s[0] != '/' || strnlen(s, CUBE_INSIDE_MAX + 1) > CUBE_INSIDE_MAX ||
	    inside_reserved(s) || !inside_text_ok(s))
		return false;
	while (*s == '/') {
		size_t n = strcspn(++s, "/");

		if (n == 0 || (n <= 2 && strncmp(s, "..", n) == 0))
			return false;
		s += n;
	}
	return true;
}

bool cube_name_env_ok(const char *s, unsigned long len)
{
	if (len == 0 || char_digit(s[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!char_alpha(s[i]) && !char_digit(s[i]) && s[i] != '_')
			return false;
	}
	return true;
}
