/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads of whole files by HTTP and HTTPS. */
#ifndef CUBEFS_BACKENDS_BASE_FETCH_H
#define CUBEFS_BACKENDS_BASE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/cancel.h"
#include "backends/base/err.h"

/* "http://..." or "https://...", without a name and password in it, which would be shown with it. */
bool cube_fetch_url_ok(const char *url);

struct cube_fetch {
	const char *url;
	int fd; /* readable and writable. What is in it is taken for the beginning of the file: it is asked for the
		   rest, or for all of it where the server cannot give a part */
	/* What is there and how much it will be (0: not known). May be NULL. */
	void (*progress)(void *ctx, uint64_t have, uint64_t total);
	void *ctx;
};

/* Blocks; other threads may do the same. Redirections are followed, to these two protocols only. 0: the file
 * ended, as far as the server says; whoever knows a checksum checks it. After a failure the descriptor has
 * what came. -EINTR cancelled; -EINVAL no such URL; -ENOENT, -EACCES, -EREMOTEIO as the server says;
 * -EHOSTUNREACH; -ETIMEDOUT when nothing came for a minute; what writing says. */
int cube_fetch(const struct cube_fetch *f, struct cube_cancel *cancel, struct cube_err *err);

#endif
