/* SPDX-License-Identifier: Apache-2.0 */
/* Users by /etc/passwd and /etc/group of the sandbox. Runs in a child between fork and exec: whatever a
 * hostile /etc makes it wait for, the agent does not. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_USER_H
#define CUBEFS_BACKENDS_AGENT_INIT_USER_H

#include <stddef.h>
#include <sys/types.h>

#define INIT_GROUPS_MAX 256

struct init_user {
	uid_t uid;
	gid_t gid;
	gid_t groups[INIT_GROUPS_MAX]; /* the supplementary ones, gid among them */
	size_t n_groups;
};

/* @spec is NAME, UID or UID:GID (also NAME:GROUP). A number that has no line in passwd is its own group. 0,
 * or -ENOENT, -EINVAL with a sentence in @why. */
int init_user_find(const char *spec, struct init_user *ret, char *why, size_t size);

#endif
