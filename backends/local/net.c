/* SPDX-License-Identifier: Apache-2.0 */
/* net=open by a helper outside. */
#include "backends/local/net.h"

#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/local/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void cube_local_net_find(struct cube_local_net_helper *h)
{
	h->pasta = cube_local_find_program("pasta", h->path, sizeof(h->path));
	if (!h->pasta)
		(void)cube_local_find_program("slirp4netns", h->path, sizeof(h->path));
}
const char *cube_local_net_resolv(const struct cube_local_net_helper *h)
{
	(void)h;
	return "";
}
int cube_local_net_open(const struct cube_local_net_helper *h, pid_t init, bool trusted,
			struct cube_cancel *cancel, pid_t *ret_pid, struct cube_err *err)
{
	(void)h;
	(void)init;
	(void)trusted;
	(void)cancel;
	(void)ret_pid;
	return cube_fail(err, -EIO, "wip");
}
