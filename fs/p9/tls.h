/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.3 over a socket (OpenSSL inside). */
#ifndef CUBEFS_FS_P9_TLS_H
#define CUBEFS_FS_P9_TLS_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "backends/base/err.h"

struct cube_p9_access;
struct p9_tls_server; /* with what a listener proves itself, and whom it believes */
struct p9_tls;        /* one connection; one call at a time */

/* The certificate and key are read now; where a ca is given, clients must have a certificate of its. */
int cube_p9_tls_server_new(const struct cube_p9_access *a, struct p9_tls_server **ret, struct cube_err *err);
void cube_p9_tls_server_free(struct p9_tls_server *s); /* NULL is harmless */

/* From when until when the certificates of a PEM file are all valid. -EINVAL with a sentence that begins with the
 * setting's name @what. */
int cube_p9_tls_dates(const char *what, const char *file, time_t *ret_from, time_t *ret_until,
		      struct cube_err *err);

/* On a connected, non-blocking socket, which stays the caller's. NULL: out of memory. */
struct p9_tls *cube_p9_tls_new(struct p9_tls_server *s, int fd);
void cube_p9_tls_free(struct p9_tls *t); /* NULL is harmless */

/* As recv and send of a non-blocking socket; -EPROTO: cube_p9_tls_why says it. The handshake is part of them. */
ssize_t cube_p9_tls_recv(struct p9_tls *t, void *data, size_t len);
ssize_t cube_p9_tls_send(struct p9_tls *t, const void *data, size_t len);
/* Bytes have arrived already that no event will tell of. */
bool cube_p9_tls_pending(const struct p9_tls *t);
/* To go on receiving it has to send first. */
bool cube_p9_tls_wants_out(const struct p9_tls *t);
const char *cube_p9_tls_why(const struct p9_tls *t); /* "" : nothing went wrong */

#endif
