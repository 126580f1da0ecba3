/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 by libcrypto. */
#include "backends/base/digest.h"

#include "backends/base/alloc.h"

#include <openssl/evp.h>
#include <stdio.h>

struct cube_digest {
	EVP_MD_CTX *ctx;
};

struct cube_digest *cube_digest_new(void)
{
	struct cube_digest *d = cube_calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->ctx = EVP_MD_CTX_new();
	if (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
		cube_digest_free(d);
		return NULL;
	}
	return d;
}

void cube_digest_free(struct cube_digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->ctx);
	cube_free(d);
}

void cube_digest_add(struct cube_digest *d, const void *data, size_t len)
{
	(void)EVP_DigestUpdate(d->ctx, data, len); /* fails only where the context was not set up */
}

const char *cube_digest_end(struct cube_digest *d, char out[CUBE_DIGEST_TEXT])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	int at = snprintf(out, CUBE_DIGEST_TEXT, "sha256:");

	(void)EVP_DigestFinal_ex(d->ctx, sum, &n);
	for (unsigned i = 0; i < n && at + 3 <= CUBE_DIGEST_TEXT; i++)
		at += snprintf(out + at, (size_t)(CUBE_DIGEST_TEXT - at), "%02x", sum[i]);
	return out;
}
