/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the daemon. */
#ifndef CUBEFS_FS_OPTS_H
#define CUBEFS_FS_OPTS_H

#include <stdbool.h>
#include <stdio.h>

#include "backends/base/err.h"

struct cube_opts {
	bool help, version;
	bool foreground;         /* -f */
	bool allow_other;        /* -o allow_other */
	bool symlinks_raw;       /* -o symlinks=raw */
	bool owners_raw;         /* -o owners=raw */
	bool nonempty;           /* -o nonempty */
	bool debug;              /* -o debug: every request goes to the log */
	const char *config;      /* --config; NULL: where it usually is */
	const char *state;       /* --state; NULL: the default */
	const char *mount_point; /* borrowed from argv, as all strings here */
};

/* -EINVAL with a sentence for the user. */
int cube_opts_parse(int argc, char **argv, struct cube_opts *ret, struct cube_err *err);
void cube_opts_usage(FILE *out);

#endif
