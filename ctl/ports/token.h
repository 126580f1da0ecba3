/* SPDX-License-Identifier: Apache-2.0 */
/* The word that opens an exposed port: signed, with an end, worthless once the next one was made. Pure functions.
 *
 * EXPIRES-SERIAL-MAC in hexadecimal digits; EXPIRES in seconds since 1970, 0 for never; MAC is HMAC-SHA256 with
 * the port's own key of what the word is for and of the two numbers. */
#ifndef CUBEFS_CTL_PORTS_TOKEN_H
#define CUBEFS_CTL_PORTS_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#define CUBE_TOKEN_KEY  32
#define CUBE_TOKEN_TEXT 104 /* bytes of one, with its NUL */

struct cube_token {
	const unsigned char *key; /* CUBE_TOKEN_KEY bytes */
	const char *cube, *port;  /* what it opens: uid and name */
	uint64_t expires;
	uint64_t serial;
};

/* -EIO when the library cannot. */
int cube_token_write(const struct cube_token *t, char out[CUBE_TOKEN_TEXT]);
/* Is @text the word that @t describes, and has it not ended by @now (seconds)? Takes as long whatever differs. */
bool cube_token_is(const struct cube_token *t, const char *text, uint64_t now);

#endif
