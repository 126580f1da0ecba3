/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by libcurl. A slot is a handle with the connections that it keeps; each call has one to itself. */
#include "backends/base/http_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define HTTP_TIMEOUT_S 60
#define HTTP_CONNECT_S 20
#define HTTP_REFUSED   400

/* ---- slots ---- */

static void slot_free(struct cube_http_slot *s)
{
	curl_easy_cleanup(s->easy);
	(void)curl_multi_cleanup(s->multi);
}

static int slot_take(struct cube_http *h, struct cube_http_slot *ret)
{
	bool found = false;

	pthread_mutex_lock(&h->lock);
	if (h->kept > 0) {
		*ret = h->slots[--h->kept];
		found = true;
	}
	pthread_mutex_unlock(&h->lock);
	if (found)
		return 0;
	*ret = (struct cube_http_slot){.multi = curl_multi_init(), .easy = curl_easy_init()};
	if (ret->multi != NULL && ret->easy != NULL)
		return 0;
	slot_free(ret);
	return -ENOMEM;
}

static void slot_give(struct cube_http *h, struct cube_http_slot *s)
{
	bool keep;

	curl_easy_reset(s->easy); /* its connections stay */
	pthread_mutex_lock(&h->lock);
	keep = h->kept < CUBE_HTTP_KEPT;
	if (keep)
		h->slots[h->kept++] = *s;
	pthread_mutex_unlock(&h->lock);
	if (!keep)
		slot_free(s);
}

/* ---- a server ---- */

static bool http_url_ok(const char *url)
{
	size_t n = url == NULL ? 0 : strlen(url);

	return n > 8 && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0) &&
	       url[n - 1] != '/' && url[strcspn(url, "@?# \t\r\n")] == '\0';
}

static bool http_copy(char **to, const char *from)
{
	*to = from != NULL ? cube_strdup(from) : NULL;
	return from == NULL || *to != NULL;
}

int cube_http_new(const struct cube_http_conf *conf, struct cube_http **ret, struct cube_err *err)
{
	struct cube_http *h;

	cube_curl_setup();
	if (!http_url_ok(conf->url))
		return cube_fail(err, -EINVAL,
				 "'%.200s' is no address of a server: http or https, no password in it",
				 conf->url != NULL ? conf->url : "");
	h = cube_calloc(1, sizeof(*h));
	if (h == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&h->lock, NULL);
	h->timeout_s = conf->timeout_s != 0 ? conf->timeout_s : HTTP_TIMEOUT_S;
	h->connect_s = conf->connect_s != 0 ? conf->connect_s : HTTP_CONNECT_S;
	h->http2 = conf->http2;
	if (!http_copy(&h->url, conf->url) || !http_copy(&h->socket, conf->socket) ||
	    !http_copy(&h->ca_file, conf->ca_file) || !http_copy(&h->cert_file, conf->cert_file) ||
	    !http_copy(&h->key_file, conf->key_file) || !http_copy(&h->proxy, conf->proxy) ||
	    !http_copy(&h->who, conf->who != NULL ? conf->who : "the server")) {
		cube_http_free(h);
		return cube_fail(err, -ENOMEM, "out of memory");
	}
	*ret = h;
	return 0;
}

void cube_http_free(struct cube_http *h)
{
	if (h == NULL)
		return;
	while (h->kept > 0)
		slot_free(&h->slots[--h->kept]);
	cube_free(h->url);
	cube_free(h->socket);
	cube_free(h->ca_file);
	cube_free(h->cert_file);
	cube_free(h->key_file);
	cube_free(h->proxy);
	cube_free(h->who);
	pthread_mutex_destroy(&h->lock);
	cube_free(h);
}

/* ---- answers ---- */

void cube_http_answer_init(struct cube_http_answer *a, size_t max)
{
	*a = (struct cube_http_answer){0};
	cube_buf_init(&a->head, CUBE_HTTP_HEAD);
	cube_buf_init(&a->body, max);
}

void cube_http_answer_done(struct cube_http_answer *a)
{
	cube_buf_done(&a->head);
	cube_buf_done(&a->body);
}

bool cube_http_header(const struct cube_http_answer *a, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);
	bool found = false;

	for (const char *line = cube_buf_str(&a->head); *line != '\0';) {
		size_t n = strcspn(line, "\n"), end = n;

		if (n > len && strncasecmp(line, name, len) == 0 && line[len] == ':') {
			size_t from = len + 1 + strspn(line + len + 1, " \t");

			while (end > from && isspace((unsigned char)line[end - 1]))
				end--;
			(void)snprintf(out, size, "%.*s", end > from ? (int)(end - from) : 0, line + from);
			found = true;
		}
		line += n + (line[n] == '\n');
	}
	return found;
}

/* ---- a call ---- */

struct http_job {
	struct cube_http *h;
	const struct cube_http_call *call;
	struct cube_http_answer *answer;
	struct cube_http_slot slot;
	struct curl_slist *headers;
	int code; /* what ended it from our side */
	char why[CURL_ERROR_SIZE];
};

/* Each answer begins anew with its status line: one before the last (100) does not count. */
static size_t http_head(char *data, size_t size, size_t n, void *ctx)
{
	struct http_job *j = ctx;

	if (size * n > 5 && strncmp(data, "HTTP/", 5) == 0)
		cube_buf_reset(&j->answer->head);
	j->code = cube_buf_add(&j->answer->head, data, size * n);
	return j->code < 0 ? 0 : size * n;
}

static size_t http_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_job *j = ctx;
	long status = 0;

	(void)curl_easy_getinfo(j->slot.easy, CURLINFO_RESPONSE_CODE, &status);
	j->code = j->call->sink != NULL && status < HTTP_REFUSED
			  ? j->call->sink(j->call->ctx, data, size * n)
			  : cube_buf_add(&j->answer->body, data, size * n);
	return j->code < 0 ? 0 : size * n;
}

static size_t http_send(char *to, size_t size, size_t n, void *ctx)
{
	struct http_job *j = ctx;
	ssize_t got = read(j->call->body_fd, to, size * n);

	if (got >= 0)
		return (size_t)got;
	j->code = -errno;
	return CURL_READFUNC_ABORT;
}

/* How much is to be sent; -1: until its end. */
static curl_off_t http_send_size(int fd)
{
	off_t at = lseek(fd, 0, SEEK_CUR);
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || at < 0)
		return -1;
	return st.st_size > at ? st.st_size - at : 0;
}

#define OPT(option, value) (curl_easy_setopt(e, option, value) == CURLE_OK)

static bool http_set_server(const struct cube_http *h, const struct cube_http_call *c, CURL *e)
{
	uint32_t timeout = c->timeout_s != 0 ? c->timeout_s : h->timeout_s;

	return OPT(CURLOPT_PROTOCOLS_STR, "http,https") && OPT(CURLOPT_NOSIGNAL, 1L) &&
	       OPT(CURLOPT_HTTP_VERSION, (long)(h->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)) &&
	       OPT(CURLOPT_PROXY, h->proxy != NULL ? h->proxy : "") && OPT(CURLOPT_USERAGENT, "cubefs") &&
	       OPT(CURLOPT_CONNECTTIMEOUT, (long)h->connect_s) &&
	       OPT(CURLOPT_TCP_KEEPALIVE, 1L) && /* who may be silent for ever may be gone, too */
	       (timeout == CUBE_HTTP_EVER ||
		(OPT(CURLOPT_LOW_SPEED_LIMIT, 1L) && OPT(CURLOPT_LOW_SPEED_TIME, (long)timeout))) &&
	       (h->socket == NULL || OPT(CURLOPT_UNIX_SOCKET_PATH, h->socket)) &&
	       (h->ca_file == NULL || OPT(CURLOPT_CAINFO, h->ca_file)) &&
	       (h->cert_file == NULL || OPT(CURLOPT_SSLCERT, h->cert_file)) &&
	       (h->key_file == NULL || OPT(CURLOPT_SSLKEY, h->key_file));
}

static bool http_set_body(const struct cube_http_call *c, CURL *e)
{
	if (c->has_fd)
		return OPT(CURLOPT_UPLOAD, 1L) && OPT(CURLOPT_READFUNCTION, http_send) &&
		       OPT(CURLOPT_INFILESIZE_LARGE, http_send_size(c->body_fd));
	if (c->body != NULL || strcmp(c->method, "POST") == 0)
		return OPT(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_len) &&
		       OPT(CURLOPT_POSTFIELDS, c->body != NULL ? c->body : "");
	if (strcmp(c->method, "HEAD") == 0)
		return OPT(CURLOPT_NOBODY, 1L);
	return true;
}

/* "Expect" would have the server asked before each body, and curl's own type is that of a form. */
static bool http_set_headers(const struct cube_http_call *c, CURL *e, struct curl_slist **list)
{
	static const char *const ours[] = {"Expect:", "Content-Type:", NULL};
	const char *const *theirs = c->headers;
	bool typed = false;

	for (size_t i = 0; theirs != NULL && theirs[i] != NULL; i++) {
		struct curl_slist *more = curl_slist_append(*list, theirs[i]);

		if (more == NULL)
			return false;
		*list = more;
		typed = typed || strncasecmp(theirs[i], "Content-Type:", 13) == 0;
	}
	for (size_t i = 0; ours[i] != NULL && !(typed && i == 1); i++) {
		struct curl_slist *more = curl_slist_append(*list, ours[i]);

		if (more == NULL)
			return false;
		*list = more;
	}
	return OPT(CURLOPT_HTTPHEADER, *list);
}

bool cube_http_set(const struct cube_http *h, const struct cube_http_call *c, CURL *e,
		   struct curl_slist **headers)
{
	cube_auto_str url = cube_asprintf("%s%s", c->base != NULL ? c->base : h->url, c->path);

	return url != NULL && (c->base == NULL || http_url_ok(c->base)) && OPT(CURLOPT_URL, url) &&
	       http_set_server(h, c, e) && http_set_body(c, e) && OPT(CURLOPT_CUSTOMREQUEST, c->method) &&
	       http_set_headers(c, e, headers);
}

static bool http_set(struct http_job *j)
{
	CURL *e = j->slot.easy;

	return cube_http_set(j->h, j->call, e, &j->headers) && OPT(CURLOPT_READDATA, j) &&
	       OPT(CURLOPT_ERRORBUFFER, j->why) && OPT(CURLOPT_HEADERFUNCTION, http_head) &&
	       OPT(CURLOPT_HEADERDATA, j) && OPT(CURLOPT_WRITEFUNCTION, http_body) &&
	       OPT(CURLOPT_WRITEDATA, j);
}

int cube_http_failed(const struct cube_http *h, const struct cube_http_call *c, CURL *e, CURLcode got,
		     int stop, const char *why, struct cube_err *err)
{
	const char *where = h->socket != NULL ? h->socket : c->base != NULL ? c->base : h->url;
	int code = cube_curl_errno(got);
	long os = 0;

	if (stop == -EMSGSIZE)
		return cube_fail(err, stop, "%s: %s %.200s: the answer is too long", h->who, c->method,
				 c->path);
	if (stop < 0)
		return cube_fail(err, stop, "%s: %s %.200s: %s", h->who, c->method, c->path,
				 cube_errno_text(stop));
	(void)curl_easy_getinfo(e, CURLINFO_OS_ERRNO, &os);
	if (got == CURLE_COULDNT_CONNECT && h->socket != NULL && (os == EACCES || os == EPERM))
		return cube_fail(err, -EACCES, "%s: %.200s: %s", h->who, where, cube_errno_text((int)os));
	if (got == CURLE_COULDNT_CONNECT && h->socket != NULL)
		return cube_fail(err, code, "%s: nobody listens at %.200s", h->who, where);
	if (got == CURLE_OPERATION_TIMEDOUT)
		return cube_fail(err, code, "%s: %s %.200s: no answer from %.100s in time", h->who, c->method,
				 c->path, where);
	if (got == CURLE_UNSUPPORTED_PROTOCOL) /* HTTP/0.9, which is to say no HTTP at all */
		code = -EREMOTEIO;
	return cube_fail(err, code, "%s: %s %.200s: %s", h->who, c->method, c->path,
			 *why != '\0' ? why : curl_easy_strerror(got));
}

/* The multi handle is entered and left in one call: what it keeps are connections. */
static int http_transfer(struct http_job *j, struct cube_cancel *cancel, struct cube_err *err)
{
	CURLcode got;
	int code = 0;

	if (!http_set(j) || curl_multi_add_handle(j->slot.multi, j->slot.easy) != CURLM_OK)
		return cube_fail(err, -ENOMEM, "out of memory");
	got = cube_curl_drive(j->slot.multi, cancel, &code);
	if (code == -EINTR)
		(void)cube_fail(err, code, "interrupted");
	else if (got != CURLE_OK)
		code = cube_http_failed(j->h, j->call, j->slot.easy, got, j->code, j->why, err);
	(void)curl_easy_getinfo(j->slot.easy, CURLINFO_RESPONSE_CODE, &j->answer->status);
	(void)curl_multi_remove_handle(j->slot.multi, j->slot.easy);
	return code;
}

int cube_http_run(struct cube_http *h, const struct cube_http_call *call, struct cube_cancel *cancel,
		  struct cube_http_answer *answer, struct cube_err *err)
{
	struct http_job j = {.h = h, .call = call, .answer = answer};
	int code;

	cube_buf_reset(&answer->head);
	cube_buf_reset(&answer->body);
	answer->status = 0;
	if (slot_take(h, &j.slot) < 0)
		return cube_fail(err, -ENOMEM, "out of memory");
	code = http_transfer(&j, cancel, err);
	slot_give(h, &j.slot);
	curl_slist_free_all(j.headers);
	return code;
}

int cube_http_escape(struct cube_buf *b, const char *text)
{
	for (const unsigned char *s = (const unsigned char *)text; *s != '\0'; s++) {
		if (isascii(*s) && (isalnum(*s) || strchr("._~-", *s) != NULL))
			(void)cube_buf_addc(b, (char)*s);
		else
			(void)cube_buf_printf(b, "%%%02X", *s);
	}
	return b->error;
}
