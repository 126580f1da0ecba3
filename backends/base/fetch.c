/* SPDX-License-Identifier: Apache-2.0 */
/* Downloads by libcurl: one transfer on the caller's thread, which its cancel object interrupts. */
#include "backends/base/fetch.h"

#include "backends/base/curl.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FETCH_PROTOCOLS "http,https"
#define FETCH_CONNECT_S 30L
#define FETCH_STALL_S   60L
#define FETCH_REDIRECTS 10L
#define HTTP_RANGE      416L /* what was asked for lies behind the end: all of it is here */

struct fetch {
	const struct cube_fetch *f;
	CURL *easy;
	uint64_t have;
	int code; /* of writing */
	char why[CURL_ERROR_SIZE];
};

bool cube_fetch_url_ok(const char *url)
{
	const char *host = strncmp(url, "http://", 7) == 0    ? url + 7
			   : strncmp(url, "https://", 8) == 0 ? url + 8
							      : "";
	size_t n = strcspn(host, "/?#");

	return n > 0 && memchr(host, '@', n) == NULL;
}

static size_t fetch_write(char *data, size_t size, size_t n, void *ctx)
{
	struct fetch *t = ctx;
	curl_off_t rest = -1;

	t->code = cube_file_write_all(t->f->fd, data, size * n);
	if (t->code < 0)
		return 0;
	t->have += size * n;
	(void)curl_easy_getinfo(t->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &rest);
	if (t->f->progress != NULL) {
		curl_off_t got = 0;

		(void)curl_easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &got);
		t->f->progress(t->f->ctx, t->have,
			       rest < 0 ? 0 : t->have + (uint64_t)(rest > got ? rest - got : 0));
	}
	return size * n;
}

/* The position in the file is where the download goes on. */
static int fetch_setup(struct fetch *t)
{
	CURL *e = t->easy;
	bool ok = curl_easy_setopt(e, CURLOPT_URL, t->f->url) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, FETCH_PROTOCOLS) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_REDIR_PROTOCOLS_STR, FETCH_PROTOCOLS) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 1L) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_MAXREDIRS, FETCH_REDIRECTS) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, FETCH_CONNECT_S) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, FETCH_STALL_S) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_USERAGENT, "cubefs") == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->why) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, fetch_write) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_WRITEDATA, t) == CURLE_OK &&
		  curl_easy_setopt(e, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->have) == CURLE_OK;

	return ok ? 0 : -ENOMEM;
}

static const struct {
	long status;
	int code;
} fetch_statuses[] = {{401, -EACCES}, {403, -EACCES}, {404, -ENOENT}, {410, -ENOENT}};

static int fetch_refused(struct fetch *t, struct cube_err *err)
{
	long status = 0;
	int code = -EREMOTEIO;

	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == HTTP_RANGE && t->have > 0)
		return 0;
	for (size_t i = 0; i < CUBE_COUNT(fetch_statuses); i++)
		if (fetch_statuses[i].status == status)
			code = fetch_statuses[i].code;
	return cube_fail(err, code, "%.200s: the server answers %ld", t->f->url, status);
}

static int fetch_failed(struct fetch *t, CURLcode got, struct cube_err *err)
{
	if (got == CURLE_HTTP_RETURNED_ERROR)
		return fetch_refused(t, err);
	return cube_fail(err, cube_curl_errno(got), "%.200s: %s", t->f->url,
			 t->why[0] != '\0' ? t->why : curl_easy_strerror(got));
}

/* 0, -errno, or -ERANGE: the server gives no part of it. */
static int fetch_once(const struct cube_fetch *f, uint64_t from, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct fetch t = {.f = f, .have = from};
	CURLM *multi = curl_multi_init();
	CURLcode got;
	int code = 0;

	t.easy = curl_easy_init();
	if (multi == NULL || t.easy == NULL || fetch_setup(&t) < 0 ||
	    curl_multi_add_handle(multi, t.easy) != CURLM_OK) {
		code = cube_fail(err, -ENOMEM, "%.200s: out of memory", f->url);
	} else {
		got = cube_curl_drive(multi, cancel, &code);
		if (code == -EINTR)
			(void)cube_fail(err, code, "interrupted; the same again goes on where it was");
		else if (t.code < 0)
			code = cube_fail(err, t.code, "%.200s: cannot be written: %s", f->url,
					 cube_errno_text(t.code));
		else if (got == CURLE_RANGE_ERROR && from > 0)
			code = -ERANGE;
		else if (got != CURLE_OK)
			code = fetch_failed(&t, got, err);
		(void)curl_multi_remove_handle(multi, t.easy);
	}
	curl_easy_cleanup(t.easy);
	(void)curl_multi_cleanup(multi);
	return code;
}

int cube_fetch(const struct cube_fetch *f, struct cube_cancel *cancel, struct cube_err *err)
{
	struct stat st;
	int code;

	cube_curl_setup();
	if (!cube_fetch_url_ok(f->url))
		return cube_fail(err, -EINVAL,
				 "'%.200s' is no URL that can be fetched: http or https, no password in it",
				 f->url);
	if (fstat(f->fd, &st) < 0 || lseek(f->fd, 0, SEEK_END) < 0)
		return cube_fail_errno(err, "%.200s", f->url);
	code = fetch_once(f, (uint64_t)st.st_size, cancel, err);
	if (code != -ERANGE)
		return code;
	if (ftruncate(f->fd, 0) < 0 || lseek(f->fd, 0, SEEK_SET) < 0)
		return cube_fail_errno(err, "%.200s", f->url);
	return fetch_once(f, 0, cancel, err);
}
