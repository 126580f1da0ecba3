/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a shell. */
#include "backends/agent/init/shell.h"

#include <string.h>
#include <unistd.h>

static const char *shell_forced;

void init_shell_force(const char *path)
{
	shell_forced = path;
}

const char *init_shell(void)
{
	if (shell_forced != NULL)
		return shell_forced;
	return access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

bool init_shell_is_bash(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash != NULL ? slash + 1 : path, "bash") == 0;
}
