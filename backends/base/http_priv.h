/* SPDX-License-Identifier: Apache-2.0 */
/* What requests that block a thread (http.c), those that live on the loop (http_live.c) and those that become a stream
 * (http_duplex.c) share. */
#ifndef CUBEFS_BACKENDS_BASE_HTTP_PRIV_H
#define CUBEFS_BACKENDS_BASE_HTTP_PRIV_H

#include <pthread.h>

#include "backends/base/curl.h"
#include "backends/base/http.h"

#define CUBE_HTTP_KEPT 8 /* slots that wait for the next call */

struct cube_http_slot {
	CURLM *multi;
	CURL *easy;
};

struct cube_http {
	char *url, *socket, *ca_file, *cert_file, *key_file, *proxy, *who;
	uint32_t timeout_s, connect_s;
	bool http2;
	pthread_mutex_t lock;
	unsigned kept;
	struct cube_http_slot slots[CUBE_HTTP_KEPT];
};

/* All of @call but where the answer goes. @headers grows, and is needed until the transfer has ended, as is the body.
 * False: out of memory, or a base that is no address. */
bool cube_http_set(const struct cube_http *h, const struct cube_http_call *call, CURL *e,
		   struct curl_slist **headers);

/* The sentence of a transfer that failed. @stop: what ended it from our side, else 0; @why: curl's own words, may be
 * "". */
int cube_http_failed(const struct cube_http *h, const struct cube_http_call *call, CURL *e, CURLcode got,
		     int stop, const char *why, struct cube_err *err);

#endif
