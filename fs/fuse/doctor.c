/* SPDX-License-Identifier: Apache-2.0 */
/* What `cubefs doctor` says about the section [files]. */
#include <stdio.h>
#include <sys/utsname.h>

#include "fs/fuse/fuse.h"

/* Linux 6.16 has the protocol that watch.c asks for (7.44). What is spoken is agreed with a mount only, so here the
 * release has to do. */
static bool doctor_can_be_told(void)
{
	struct utsname u;
	unsigned major, minor;

	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		return false;
	return major > 6 || (major == 6 && minor >= 16);
}

void cube_fuse_doctor(const struct cube_conf *conf,
		      void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_err err = {0};
	enum cube_fuse_keeps keeps;

	if (cube_fuse_conf(conf, &keeps, &err) < 0)
		say(ctx, false, err.text, "correct section [files] of the configuration, see cubefs.conf(5)");
	else if (keeps == CUBE_FUSE_KEEPS_ASKED && doctor_can_be_told())
		say(ctx, true, "[files] keep=yes: the kernel can be told what is old", NULL);
	else if (keeps == CUBE_FUSE_KEEPS_ASKED)
		say(ctx, false, "[files] keep=yes: this kernel cannot be told what is old and keeps nothing",
		    "use Linux 6.16 or later, or take the line out");
}
