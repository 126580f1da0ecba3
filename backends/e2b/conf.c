/* SPDX-License-Identifier: Apache-2.0 */
/* Where the service is, and who we are to it. */
#include "backends/e2b/e2b_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/conf.h"
#include "backends/base/file.h"
#include "backends/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONF_DOMAIN    "e2b.app"
#define CONF_TEMPLATE  "base"
#define CONF_KEY_ENV   "E2B_API_KEY"
#define CONF_KEY_MAX   4096
#define CONF_TIMEOUT   86400
#define CONF_CONNECT_S 10
#define CONF_LEASE_S   900
#define CONF_POLL_S    5

static const char *const conf_keys[] = {"kind",     "default", "url",          "domain",      "sandbox_url",
					"template", "timeout", "api_key_file", "api_key_env", "lease",
					"poll",     "ca_file", "proxy",        NULL};

/* Domains whose sandboxes have one host for all; who is meant is in the headers. */
static const char *const conf_shared[] = {"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"};

static int conf_seconds(const struct cube_e2b *e, const struct cube_conf_section *conf, const char *key,
			uint64_t absent, uint32_t *ret, struct cube_err *err)
{
	const char *text = cube_conf_get(conf, key);
	uint64_t n = absent;

	if (text != NULL && (cube_num_u64(text, CONF_TIMEOUT, &n) < 0 || n == 0))
		return cube_fail(err, -EINVAL, "backend %s: %s = %s: seconds are wanted, 1 to %d",
				 e->base.name, key, text, CONF_TIMEOUT);
	*ret = (uint32_t)n;
	return 0;
}

static int conf_text(const struct cube_e2b *e, const struct cube_conf_section *conf, const char *key,
		     const char *absent, char *out, size_t size, struct cube_err *err)
{
	const char *text = cube_conf_get(conf, key);

	if ((size_t)snprintf(out, size, "%s", text != NULL ? text : absent) < size)
		return 0;
	return cube_fail(err, -EINVAL, "backend %s: %s is longer than %zu bytes", e->base.name, key,
			 size - 1);
}

/* ---- the key ---- */

static int conf_key_read(struct cube_e2b *e, const char *file, const char *env, struct cube_buf *out)
{
	const char *value;
	int rc;

	if (file != NULL) {
		(void)snprintf(e->key_from, sizeof(e->key_from), "api_key_file = %.150s", file);
		rc = cube_file_read(AT_FDCWD, file, out);
		if (rc < 0)
			(void)snprintf(e->why, sizeof(e->why), "backend %.60s: %s: %s", e->base.name,
				       e->key_from, cube_errno_text(rc));
		return rc;
	}
	(void)snprintf(e->key_from, sizeof(e->key_from), "api_key_env = %.100s", env);
	value = getenv(env); /* NOLINT(concurrency-mt-unsafe): nobody here calls setenv */
	if (value == NULL || *value == '\0') {
		(void)snprintf(
			e->why, sizeof(e->why),
			"backend %.60s: there is no key: name the file that has it in api_key_file, or set "
			"the variable %.80s",
			e->base.name, env);
		return -EACCES;
	}
	return cube_buf_adds(out, value);
}

static int conf_key(struct cube_e2b *e, const struct cube_conf_section *conf, struct cube_err *err)
{
	const char *env = cube_conf_get(conf, "api_key_env");
	struct cube_buf key = CUBE_BUF(CONF_KEY_MAX);
	int rc =
		conf_key_read(e, cube_conf_get(conf, "api_key_file"), env != NULL ? env : CONF_KEY_ENV, &key);

	while (rc == 0 && key.len > 0 && strchr(" \t\r\n", key.data[key.len - 1]) != NULL)
		cube_buf_cut(&key, key.len - 1);
	for (size_t i = 0; rc == 0 && i < key.len; i++)
		rc = key.data[i] > ' ' && key.data[i] < 0x7f ? 0 : -EINVAL;
	if (rc == -EINVAL || (rc == 0 && key.len == 0))
		(void)snprintf(e->why, sizeof(e->why), "backend %.60s: %s: that is no key", e->base.name,
			       e->key_from);
	else if (rc == 0)
		e->key = cube_asprintf("X-API-Key: %s", cube_buf_str(&key));
	cube_buf_done(&key);
	return rc == 0 && e->why[0] == '\0' && e->key == NULL ? cube_fail(err, -ENOMEM, "out of memory") : 0;
}

/* ---- addresses ---- */

/* "https://api.DOMAIN" has it. */
static void conf_domain_of_url(const char *url, char *out, size_t size)
{
	const char *host = strstr(url, "://api.");

	(void)snprintf(out, size, "%s", host != NULL ? host + strlen("://api.") : "");
	out[strcspn(out, ":/")] = '\0';
}

static int conf_addresses(struct cube_e2b *e, const struct cube_conf_section *conf, struct cube_err *err)
{
	char known[sizeof(e->domain)];
	const char *url = cube_conf_get(conf, "url");
	int rc;

	conf_domain_of_url(url != NULL ? url : "", known, sizeof(known));
	rc = conf_text(e, conf, "domain", known[0] != '\0' ? known : CONF_DOMAIN, e->domain,
		       sizeof(e->domain), err);
	if (rc == 0)
		rc = conf_text(e, conf, "url", "", e->url, sizeof(e->url), err);
	if (rc == 0 && e->url[0] == '\0')
		(void)snprintf(e->url, sizeof(e->url), "https://api.%s", e->domain);
	if (rc == 0)
		rc = conf_text(e, conf, "sandbox_url", "", e->sandbox_url, sizeof(e->sandbox_url), err);
	for (size_t i = 0; rc == 0 && e->sandbox_url[0] == '\0' && i < CUBE_COUNT(conf_shared); i++)
		if (strcmp(e->domain, conf_shared[i]) == 0)
			(void)snprintf(e->sandbox_url, sizeof(e->sandbox_url), "https://sandbox.%s",
				       e->domain);
	return rc;
}

static int conf_connect(struct cube_e2b *e, const struct cube_conf_section *conf, uint32_t timeout_s,
			struct cube_err *err)
{
	struct cube_http_conf h = {.url = e->url,
				   .ca_file = cube_conf_get(conf, "ca_file"),
				   .proxy = cube_conf_get(conf, "proxy"),
				   .who = "the service",
				   .timeout_s = timeout_s,
				   .connect_s = CONF_CONNECT_S,
				   .http2 = true};
	int rc = cube_http_new(&h, &e->http, err);

	if (rc < 0)
		return cube_fail_in(err, "backend %s: url", e->base.name);
	if (e->sandbox_url[0] != '\0')
		h.url = e->sandbox_url;
	h.who = "the sandbox";
	rc = cube_http_new(&h, &e->data, err);
	return rc < 0 ? cube_fail_in(err, "backend %s: sandbox_url", e->base.name) : 0;
}

int e2b_configure(struct cube_e2b *e, const struct cube_conf_section *conf, struct cube_err *err)
{
	uint32_t timeout_s = 0;
	int rc = conf != NULL ? cube_conf_check(conf, conf_keys, err) : 0;

	if (rc == 0)
		rc = conf_seconds(e, conf, "timeout", 60, &timeout_s, err);
	if (rc == 0)
		rc = conf_seconds(e, conf, "lease", CONF_LEASE_S, &e->lease_s, err);
	if (rc == 0)
		rc = conf_seconds(e, conf, "poll", CONF_POLL_S, &e->poll_s, err);
	if (rc == 0)
		rc = conf_text(e, conf, "template", CONF_TEMPLATE, e->template, sizeof(e->template), err);
	e->base.template = e->template;
	if (rc == 0)
		rc = conf_addresses(e, conf, err);
	if (rc == 0)
		rc = conf_key(e, conf, err);
	return rc == 0 ? conf_connect(e, conf, timeout_s, err) : rc;
}
