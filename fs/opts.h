/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the daemon. */
#ifndef CUBEFS_FS_OPTS_H
#define CUBEFS_FS_OPTS_H

#include <stdbool.h>
#include <stdio.h>

#include "backends/base/err.h"

struct cube_opts {
	bool help, version;
	bool foreground;    /* -f */
	bool allow_other;   /* -o allow_other */
	bool symlinks_raw;  /* -o symlinks=raw */
	bool owners_raw;    /* -o owners=raw */
	bool nonempty;      /* -o nonempty */
	bool debug;         /* -o debug: every request goes to the log */
	const char *config; /* --config; NULL: where it usually is */
	const char *state;  /* --state; NULL: the default */
#define CUBE_OPTS_9P 8
	const char *p9[CUBE_OPTS_9P]; /* --9p, each */
	unsigned n_p9;
	const char *p9_token_file; /* --9p-token-file */
	const char *mount_point;   /* NULL: none, with --9p; borrowed from argv, as all strings here */
};

/* Does it serve on the descriptors that it was started with? */
bool cube_opts_stdio(const struct cube_opts *o);
/* -EINVAL with a sentence for the user. */
int cube_opts_parse(int argc, char **argv, struct cube_opts *ret, struct cube_err *err);
void cube_opts_usage(FILE *out);

#endif
