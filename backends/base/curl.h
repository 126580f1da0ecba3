/* SPDX-License-Identifier: Apache-2.0 */
/* Our narrow view of libcurl, for fetch.c and http.c: one transfer that a cancel object interrupts. */
#ifndef CUBEFS_BACKENDS_BASE_CURL_H
#define CUBEFS_BACKENDS_BASE_CURL_H

#include <curl/curl.h>

#include "backends/base/cancel.h"

/* Before anything else; any thread, any number of times. */
void cube_curl_setup(void);

/* Until the one transfer of @multi has ended: its result. *ret_code is -EINTR when it was cancelled, else untouched. */
CURLcode cube_curl_drive(CURLM *multi, struct cube_cancel *cancel, int *ret_code);

/* The errno of a transfer that failed. */
int cube_curl_errno(CURLcode code);

#endif
