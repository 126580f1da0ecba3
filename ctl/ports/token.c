/* SPDX-License-Identifier: Apache-2.0 */
/* Signed words, with OpenSSL's HMAC. */
#include "ctl/ports/token.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#define TOKEN_MAC  32
#define TOKEN_SAID 512

int cube_token_write(const struct cube_token *t, char out[CUBE_TOKEN_TEXT])
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	char said[TOKEN_SAID];
	unsigned len = 0;
	int n = snprintf(said, sizeof(said), "cubefs port\n%s\n%s\n%" PRIx64 "\n%" PRIx64, t->cube, t->port,
			 t->expires, t->serial);

	if (n < 0 || (size_t)n >= sizeof(said) ||
	    HMAC(EVP_sha256(), t->key, CUBE_TOKEN_KEY, (const unsigned char *)said, (size_t)n, mac, &len) ==
		    NULL ||
	    len != TOKEN_MAC)
		return -EIO;
	n = snprintf(out, CUBE_TOKEN_TEXT, "%" PRIx64 "-%" PRIx64 "-", t->expires, t->serial);
	for (unsigned i = 0; i < len; i++)
		n += snprintf(out + n, CUBE_TOKEN_TEXT - (size_t)n, "%02x", mac[i]);
	return 0;
}

bool cube_token_is(const struct cube_token *t, const char *text, uint64_t now)
{
	char right[CUBE_TOKEN_TEXT] = "", given[CUBE_TOKEN_TEXT] = "";

	if (cube_token_write(t, right) < 0)
		return false;
	(void)snprintf(given, sizeof(given), "%s", text);
	return CRYPTO_memcmp(right, given, sizeof(right)) == 0 && strlen(text) < sizeof(given) &&
	       (t->expires == 0 || now < t->expires);
}
