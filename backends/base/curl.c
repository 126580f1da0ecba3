/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/base/curl.h"

#include "backends/base/macros.h"

#include <errno.h>
#include <pthread.h>

#define CURL_WAIT_MS 1000

static void curl_setup(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

void cube_curl_setup(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, curl_setup);
}

CURLcode cube_curl_drive(CURLM *multi, struct cube_cancel *cancel, int *ret_code)
{
	struct curl_waitfd extra = {.fd = cube_cancel_fd(cancel), .events = CURL_WAIT_POLLIN};
	int running = 1, left;
	const CURLMsg *m;

	while (running > 0) {
		if (cube_cancel_fired(cancel)) {
			*ret_code = -EINTR;
			return CURLE_ABORTED_BY_CALLBACK;
		}
		if (curl_multi_perform(multi, &running) != CURLM_OK)
			return CURLE_FAILED_INIT;
		if (running > 0)
			(void)curl_multi_poll(multi, extra.fd >= 0 ? &extra : NULL, extra.fd >= 0 ? 1 : 0,
					      CURL_WAIT_MS, NULL);
	}
	while ((m = curl_multi_info_read(multi, &left)) != NULL)
		if (m->msg == CURLMSG_DONE)
			return m->data.result;
	return CURLE_FAILED_INIT;
}

static const struct {
	CURLcode curl;
	int code;
} curl_codes[] = {
	{CURLE_URL_MALFORMAT, -EINVAL},
	{CURLE_UNSUPPORTED_PROTOCOL, -EINVAL},
	{CURLE_COULDNT_RESOLVE_PROXY, -EHOSTUNREACH},
	{CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH},
	{CURLE_COULDNT_CONNECT, -EHOSTUNREACH},
	{CURLE_SSL_CONNECT_ERROR, -EHOSTUNREACH},
	{CURLE_PEER_FAILED_VERIFICATION, -EACCES},
	{CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT},
	{CURLE_OUT_OF_MEMORY, -ENOMEM},
};

int cube_curl_errno(CURLcode code)
{
	for (size_t i = 0; i < CUBE_COUNT(curl_codes); i++)
		if (curl_codes[i].curl == code)
			return curl_codes[i].code;
	return -EREMOTEIO;
}
