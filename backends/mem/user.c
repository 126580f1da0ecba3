/* SPDX-License-Identifier: Apache-2.0 */
/* The users that a sandbox of `mem` knows. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "backends/mem/mem_priv.h"

static const struct {
	const char *name;
	uint32_t id; /* of user and group */
} users[] = {{"", 0}, {"root", 0}, {"daemon", 1}, {"nobody", 65534}};

static int user_number(const char *text, uint32_t *ret)
{
	uint64_t n;

	if (cube_num_u64(text, UINT32_MAX - 1, &n) < 0)
		return -ENOENT;
	*ret = (uint32_t)n;
	return 0;
}

int mem_user_parse(const char *user, uint32_t *ret_uid, uint32_t *ret_gid)
{
	const char *colon = strchr(user, ':');
	cube_auto_str first = NULL;
	uint32_t uid, gid;

	for (size_t i = 0; i < CUBE_COUNT(users); i++) {
		if (strcmp(users[i].name, user) == 0) {
			*ret_uid = *ret_gid = users[i].id;
			return 0;
		}
	}
	first = cube_strndup(user, colon != NULL ? (size_t)(colon - user) : strlen(user));
	if (first == NULL)
		return -ENOMEM;
	if (user_number(first, &uid) < 0 || user_number(colon != NULL ? colon + 1 : first, &gid) < 0)
		return -ENOENT;
	*ret_uid = uid;
	*ret_gid = gid;
	return 0;
}
