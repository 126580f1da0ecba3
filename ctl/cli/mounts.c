/* SPDX-License-Identifier: Apache-2.0 */
/* Reading /proc/self/mountinfo (proc(5)) for mounts of ours. */
#include "ctl/cli/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"

/* \040 and the like, as mountinfo writes blanks. In place. */
static void mounts_unescape(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] != '\0' && s[3] != '\0') {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* The @n-th blank-separated field of @line, cut off behind it; NULL when there are fewer. */
static char *mounts_field(char *line, unsigned n)
{
	char *end;

	while (n-- > 0) {
		line = strchr(line, ' ');
		if (line == NULL)
			return NULL;
		line++;
	}
	end = strpbrk(line, " \n");
	if (end != NULL)
		*end = '\0';
	return line;
}

/* The number behind @name; the highest where there is none. */
static uint32_t mounts_number(const char *options, const char *name)
{
	const char *at = strstr(options, name);
	uint64_t number = (uint64_t)-1;

	if (at != NULL) {
		char digits[16] = "";

		at += strlen(name);
		(void)snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at, "0123456789"), at);
		(void)cube_num_u64(digits, UINT32_MAX, &number);
	}
	return (uint32_t)number;
}

/* "... - TYPE SOURCE OPTIONS": is it ours, and whose? */
static bool mounts_is_ours(const char *line, struct cube_mounts_owner *ret)
{
	const char *separator = strstr(line, " - ");

	if (separator == NULL || strncmp(separator, " - fuse.cubefs ", 15) != 0)
		return false;
	*ret = (struct cube_mounts_owner){.user = mounts_number(separator, "user_id="),
					  .group = mounts_number(separator, "group_id=")};
	return true;
}

int cube_mounts_each(int (*each)(void *ctx, const char *path, const struct cube_mounts_owner *owner),
		     void *ctx)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (f == NULL)
		return -errno;
	while (r == 0 && getline(&line, &size, f) > 0) {
		struct cube_mounts_owner owner;
		char *path;

		if (!mounts_is_ours(line, &owner))
			continue;
		path = mounts_field(line, 4);
		if (path == NULL)
			continue;
		mounts_unescape(path);
		r = each(ctx, path, &owner);
	}
	(free)(line); /* getline's own memory, not ours */
	(void)fclose(f);
	return r;
}

static int mounts_compare(void *ctx, const char *path, const struct cube_mounts_owner *owner)
{
	(void)owner;
	return strcmp(ctx, path) == 0;
}

bool cube_mounts_has(const char *path)
{
	cube_auto_str copy = cube_strdup(path);

	return copy != NULL && cube_mounts_each(mounts_compare, copy) == 1;
}

struct only {
	char *path;
	unsigned count;
};

static int mounts_count(void *ctx, const char *path, const struct cube_mounts_owner *owner)
{
	struct only *o = ctx;

	if (owner->user != getuid())
		return 0;
	o->count++;
	if (o->path == NULL)
		o->path = cube_strdup(path);
	return 0;
}

int cube_mounts_only(char **ret, struct cube_err *err)
{
	struct only o = {0};
	int r = cube_mounts_each(mounts_count, &o);

	if (r == 0 && o.count == 1 && o.path != NULL) {
		*ret = o.path;
		return 0;
	}
	cube_free(o.path);
	if (o.count > 1)
		return cube_fail(err, -EINVAL,
				 "there are %u mounts of yours: name a path, or set CUBEFS_MOUNT", o.count);
	return cube_fail(err, r < 0 ? r : -ENOENT,
			 "there is no mount of yours: start one with `cubefs MOUNTPOINT`");
}
