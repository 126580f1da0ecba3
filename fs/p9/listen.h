/* SPDX-License-Identifier: Apache-2.0 */
/* Where a 9P server is reached. */
#ifndef CUBEFS_FS_P9_LISTEN_H
#define CUBEFS_FS_P9_LISTEN_H

#include "backends/base/conf.h"
#include "fs/p9/p9.h"

/* How clients of tcp: and tls: prove that they may come in, and with what a server proves itself. */
struct cube_p9_access {
	const char *token_file;  /* its first word stands in front of the aname; NULL: none is asked for */
	const char *certificate; /* PEM files of tls: */
	const char *key;
	const char *ca; /* that must have signed a client's certificate; NULL: clients need none */
};

/* The configuration's section [9p]: limits, and what was not given on the command line. -EINVAL with a sentence. */
int cube_p9_conf(const struct cube_conf *conf, struct cube_p9_limits *limits, struct cube_p9_access *access,
		 struct cube_err *err);

/* "unix:PATH", "tcp:HOST:PORT", "tls:HOST:PORT", "stdio". Of stdio, @ended is called when the peer has hung up.
 * On the loop's thread, or before it runs. */
int cube_p9_listen(struct cube_p9 *s, const char *address, const struct cube_p9_access *access,
		   void (*ended)(void *ctx), void *ctx, struct cube_err *err);
/* Whether it could be listened on at this moment: it is, and let go of. Any thread. */
int cube_p9_listen_try(const char *address, const struct cube_p9_access *access, struct cube_err *err);
/* Whether there is a token in the file. */
int cube_p9_token_check(const char *file, struct cube_err *err);

/* What is wrong, or will be, with the configuration and, as if they were on the command line, @token_file (may be
 * NULL) and @n addresses; a line each through @say, with what to do. None where nothing of 9P is asked for. */
void cube_p9_doctor(const struct cube_conf *conf, const char *token_file, const char *const *addresses,
		    unsigned n, void (*say)(void *ctx, bool ok, const char *what, const char *fix),
		    void *ctx);

#endif
