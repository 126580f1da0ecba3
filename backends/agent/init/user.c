/* SPDX-License-Identifier: Apache-2.0 */
/* Users and their groups, from the files alone: no name service is asked. */
#include "backends/agent/init/user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER_FILE_MAX (4u << 20)
#define USER_FIELDS   7

/* A whole regular file, NUL ended; "" when there is none. NULL: no memory. */
static char *user_slurp(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st = {0};
	size_t size, len = 0;
	ssize_t n = 0;
	char *text;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)USER_FILE_MAX))
		st.st_size = 0;
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	while (text != NULL && len < size && (n = read(fd, text + len, size - len)) > 0)
		len += (size_t)n;
	if (text != NULL)
		text[len] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return text;
}

/* Cuts the line at *at into @fields, in place; *at goes to the next one. False at the end. */
static bool user_line(char **at, char *fields[USER_FIELDS], unsigned *ret_n)
{
	char *line = *at;
	char *end = strchr(line, '\n');
	unsigned n = 0;

	if (*line == '\0')
		return false;
	*at = end != NULL ? end + 1 : line + strlen(line);
	if (end != NULL)
		*end = '\0';
	while (n < USER_FIELDS) {
		fields[n++] = line;
		line = strchr(line, ':');
		if (line == NULL)
			break;
		*line++ = '\0';
	}
	*ret_n = n;
	return true;
}

/* Digits only, and a number that the kernel takes for an id. */
static bool user_number(const char *s, uint32_t *ret)
{
	char *end;
	unsigned long long v;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end != '\0' || errno != 0 || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

/* The passwd line of @who (a name or a number). Its name is copied to @name. */
static bool user_passwd(const char *who, struct init_user *ret, char *name, size_t size)
{
	char *text = user_slurp("/etc/passwd");
	char *at = text;
	char *fields[USER_FIELDS];
	uint32_t wanted = 0, uid, gid;
	bool number = user_number(who, &wanted), found = false;
	unsigned n;

	while (at != NULL && !found && user_line(&at, fields, &n)) {
		if (n < 4 || !user_number(fields[2], &uid) || !user_number(fields[3], &gid))
			continue;
		found = number ? uid == wanted : strcmp(fields[0], who) == 0;
		if (found) {
			ret->uid = uid;
			ret->gid = gid;
			(void)snprintf(name, size, "%s", fields[0]);
		}
	}
	free(text);
	return found;
}

/* "a,b,c" has @name. */
static bool user_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list != '\0') {
		size_t n = strcspn(list, ",");

		if (n == len && memcmp(list, name, n) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* Supplementary groups of @name; or the number of the group that is called @group. */
static bool user_groups(const char *name, const char *group, struct init_user *u)
{
	char *text = user_slurp("/etc/group");
	char *at = text;
	char *fields[USER_FIELDS];
	uint32_t gid;
	bool found = false;
	unsigned n;

	while (at != NULL && !found && user_line(&at, fields, &n)) {
		if (n < 3 || !user_number(fields[2], &gid))
			continue;
		if (group != NULL && strcmp(fields[0], group) == 0) {
			u->gid = gid;
			found = true;
		}
		if (name != NULL && n > 3 && user_listed(fields[3], name) && u->n_groups < INIT_GROUPS_MAX &&
		    gid != u->gid)
			u->groups[u->n_groups++] = gid;
	}
	free(text);
	return found;
}

/* The part behind the colon. */
static int user_group(const char *group, struct init_user *u, char *why, size_t size)
{
	uint32_t gid;

	if (user_number(group, &gid))
		u->gid = gid;
	else if (!user_groups(NULL, group, u)) {
		(void)snprintf(why, size, "there is no group %.64s in /etc/group", group);
		return -ENOENT;
	}
	u->groups[0] = u->gid;
	u->n_groups = 1;
	return 0;
}

int init_user_find(const char *spec, struct init_user *ret, char *why, size_t size)
{
	char who[256], name[256] = "";
	const char *colon = strchr(spec, ':');
	size_t len = colon != NULL ? (size_t)(colon - spec) : strlen(spec);
	uint32_t uid;

	if (len == 0 || len >= sizeof(who)) {
		(void)snprintf(why, size, "%.64s is no user: write NAME, UID or UID:GID", spec);
		return -EINVAL;
	}
	memcpy(who, spec, len);
	who[len] = '\0';
	*ret = (struct init_user){0};
	if (!user_passwd(who, ret, name, sizeof(name))) {
		if (!user_number(who, &uid)) {
			(void)snprintf(why, size, "there is no user %.64s in /etc/passwd", who);
			return -ENOENT;
		}
		ret->uid = uid;
		ret->gid = uid;
	}
	if (colon != NULL)
		return user_group(colon + 1, ret, why, size);
	ret->groups[0] = ret->gid;
	ret->n_groups = 1;
	if (name[0] != '\0')
		(void)user_groups(name, NULL, ret);
	return 0;
}
