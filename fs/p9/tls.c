/* SPDX-License-Identifier: Apache-2.0 */
/* TLS over a socket: one context a listener, one session a connection. */
#include "fs/p9/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/p9/listen.h"

struct p9_tls_server {
	SSL_CTX *ctx;
};

struct p9_tls {
	SSL *ssl;
	bool wants_out;
	char why[160];
};

/* The first reason is the one that counts; the rest is thrown away. */
static void tls_reason(char *out, size_t size)
{
	unsigned long first = ERR_get_error();
	const char *text = first == 0 ? NULL : ERR_reason_error_string(first);

	ERR_clear_error();
	(void)snprintf(out, size, "%s", text != NULL ? text : "the connection ended");
}

/* ---- of a listener ---- */

static int tls_file_failed(const char *what, const char *file, struct cube_err *err)
{
	char why[160];

	tls_reason(why, sizeof(why));
	return cube_fail(err, -EINVAL, "[9p] %s = %s: %s", what, file, why);
}

static int tls_load(SSL_CTX *ctx, const struct cube_p9_access *a, struct cube_err *err)
{
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1)
		return cube_fail(err, -EOPNOTSUPP, "this OpenSSL has no TLS 1.3");
	if (SSL_CTX_use_certificate_chain_file(ctx, a->certificate) != 1)
		return tls_file_failed("certificate", a->certificate, err);
	if (SSL_CTX_use_PrivateKey_file(ctx, a->key, SSL_FILETYPE_PEM) != 1)
		return tls_file_failed("key", a->key, err);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return tls_file_failed("key", a->key, err);
	if (a->ca != NULL && SSL_CTX_load_verify_locations(ctx, a->ca, NULL) != 1)
		return tls_file_failed("ca", a->ca, err);
	if (a->ca != NULL)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	/* No session is taken up again: each proves itself anew. */
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ctx, 0);
	return 0;
}

int cube_p9_tls_server_new(const struct cube_p9_access *a, struct p9_tls_server **ret, struct cube_err *err)
{
	struct p9_tls_server *s;
	int r;

	if (a->certificate == NULL || a->key == NULL)
		return cube_fail(
			err, -EINVAL,
			"--9p tls: wants 'certificate' and 'key' in section [9p] of the configuration");
	s = cube_calloc(1, sizeof(*s));
	if (s == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	ERR_clear_error();
	s->ctx = SSL_CTX_new(TLS_server_method());
	r = s->ctx == NULL ? cube_fail(err, -ENOMEM, "OpenSSL cannot be set up") : tls_load(s->ctx, a, err);
	if (r < 0) {
		cube_p9_tls_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void cube_p9_tls_server_free(struct p9_tls_server *s)
{
	if (s == NULL)
		return;
	SSL_CTX_free(s->ctx);
	cube_free(s);
}

/* ---- what a PEM file has ---- */

static int tls_time(const ASN1_TIME *t, time_t *ret)
{
	struct tm tm;

	if (ASN1_TIME_to_tm(t, &tm) != 1)
		return -EINVAL;
	*ret = timegm(&tm);
	return 0;
}

/* What @file has narrows the span; the number of certificates, or -EINVAL. */
static int tls_span(BIO *file, time_t *from, time_t *until)
{
	X509 *x;
	int n = 0;

	while (n >= 0 && (x = PEM_read_bio_X509(file, NULL, NULL, NULL)) != NULL) {
		time_t begin, end;

		if (tls_time(X509_get0_notBefore(x), &begin) < 0 ||
		    tls_time(X509_get0_notAfter(x), &end) < 0) {
			n = -EINVAL;
		} else {
			*from = n == 0 || begin > *from ? begin : *from;
			*until = n == 0 || end < *until ? end : *until;
			n++;
		}
		X509_free(x);
	}
	return n;
}

int cube_p9_tls_dates(const char *what, const char *file, time_t *ret_from, time_t *ret_until,
		      struct cube_err *err)
{
	BIO *bio = BIO_new_file(file, "r");
	time_t from = 0, until = 0;
	int n;

	if (bio == NULL)
		return tls_file_failed(what, file, err);
	n = tls_span(bio, &from, &until);
	BIO_free(bio);
	if (n <= 0)
		return tls_file_failed(what, file, err);
	ERR_clear_error(); /* there is no further one behind the last */
	*ret_from = from;
	*ret_until = until;
	return 0;
}

/* ---- of a connection ---- */

struct p9_tls *cube_p9_tls_new(struct p9_tls_server *s, int fd)
{
	struct p9_tls *t = cube_calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->ssl = SSL_new(s->ctx);
	if (t->ssl == NULL || SSL_set_fd(t->ssl, fd) != 1) {
		ERR_clear_error();
		cube_p9_tls_free(t);
		return NULL;
	}
	SSL_set_accept_state(t->ssl);
	return t;
}

void cube_p9_tls_free(struct p9_tls *t)
{
	if (t == NULL)
		return;
	if (t->ssl != NULL && t->why[0] == '\0' && SSL_is_init_finished(t->ssl)) {
		(void)SSL_shutdown(t->ssl); /* one try: whoever is cut off need not hear why */
		ERR_clear_error();
	}
	SSL_free(t->ssl);
	cube_free(t);
}

static ssize_t tls_result(struct p9_tls *t, int n)
{
	int why = SSL_get_error(t->ssl, n);

	t->wants_out = why == SSL_ERROR_WANT_WRITE;
	if (n > 0)
		return n;
	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	(void)snprintf(t->why, sizeof(t->why), "TLS: ");
	tls_reason(t->why + strlen(t->why), sizeof(t->why) - strlen(t->why));
	return -EPROTO;
}

ssize_t cube_p9_tls_recv(struct p9_tls *t, void *data, size_t len)
{
	ERR_clear_error();
	return tls_result(t, SSL_read(t->ssl, data, len < INT_MAX ? (int)len : INT_MAX));
}

ssize_t cube_p9_tls_send(struct p9_tls *t, const void *data, size_t len)
{
	ssize_t n;

	ERR_clear_error();
	n = tls_result(t, SSL_write(t->ssl, data, len < INT_MAX ? (int)len : INT_MAX));
	return n == 0 ? -EPIPE : n;
}

bool cube_p9_tls_pending(const struct p9_tls *t)
{
	return SSL_pending(t->ssl) > 0;
}

bool cube_p9_tls_wants_out(const struct p9_tls *t)
{
	return t->wants_out;
}

const char *cube_p9_tls_why(const struct p9_tls *t)
{
	return t->why;
}
