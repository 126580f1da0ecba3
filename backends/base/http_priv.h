/* SPDX-License-Identifier: Apache-2.0 */
/* What requests that block a thread (http.c) and those that live on the loop (http_live.c) share. */
#ifndef CUBEFS_BACKENDS_BASE_HTTP_PRIV_H
#define CUBEFS_BACKENDS_BASE_HTTP_PRIV_H

#include "backends/base/curl.h"
#include "backends/base/http.h"

/* All of @call but where the answer goes. @headers grows, and is needed until the transfer has ended, as is the body.
 * False: out of memory, or a base that is no address. */
bool cube_http_set(const struct cube_http *h, const struct cube_http_call *call, CURL *e,
		   struct curl_slist **headers);

/* The sentence of a transfer that failed. @stop: what ended it from our side, else 0; @why: curl's own words, may be
 * "". */
int cube_http_failed(const struct cube_http *h, const struct cube_http_call *call, CURL *e, CURLcode got,
		     int stop, const char *why, struct cube_err *err);

#endif
