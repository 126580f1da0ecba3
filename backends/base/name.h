/* SPDX-License-Identifier: Apache-2.0 */
/* Is this string fit to be a directory entry? */
#ifndef CUBEFS_BACKENDS_BASE_NAME_H
#define CUBEFS_BACKENDS_BASE_NAME_H

#include <stdbool.h>

#define CUBE_NAME_MAX  64  /* bytes of a sandbox, template or backend name */
#define CUBE_ENTRY_MAX 200 /* bytes of a checkpoint, job or session name */

/* 1 to 64 bytes of A-Z a-z 0-9 . _ -, no leading '.' or '-'. Reserved words are the caller's matter. */
bool cube_name_ok(const char *s);
/* A template's: the same and ':' inside ("ds:v1"), neither first nor last. */
bool cube_name_template_ok(const char *s);
/* A layer's, which no user gives: '~' and 32 hexadecimal digits. */
bool cube_name_layer_ok(const char *s);
/* 1 to 200 bytes of anything but '/', not "." or "..". */
bool cube_name_entry_ok(const char *s);
/* A path inside a sandbox at which something can be mounted: absolute, "/" excepted, 255 bytes at most, no
 * "//", "/./", "/../" and no slash at the end, not /proc, /sys or /dev or below them, and UTF-8 without control
 * characters. NULL is none. */
#define CUBE_INSIDE_MAX 255
bool cube_name_inside_ok(const char *s);
/* An environment variable's: [A-Za-z_][A-Za-z0-9_]*. */
bool cube_name_env_ok(const char *s, unsigned long len);

#endif
