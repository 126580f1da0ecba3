/* SPDX-License-Identifier: Apache-2.0 */
/* Where the engine is. What is named first counts: `url` of the section, DOCKER_HOST, the current context of the docker
 * command, the sockets that engines have by themselves. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"
#include "backends/base/conf.h"
#include "backends/base/digest.h"
#include "backends/base/file.h"
#include "backends/base/num.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONF_SOCKET   "/var/run/docker.sock"
#define CONF_PODMAN   "/run/podman/podman.sock"
#define CONF_TEMPLATE "debian:stable-slim"
#define CONF_NETWORK  "bridge"
#define CONF_FILE     ((size_t)1 << 20)
#define CONF_TIMEOUT  86400

static const char *const conf_keys[] = {"kind",      "default",  "url",   "timeout",  "ca_file",
					"cert_file", "key_file", "proxy", "template", "network",
					"memory",    "pids",     "cpus",  "local",    NULL};

/* Nobody here calls setenv. Empty is unset. */
static const char *conf_env(const char *name)
{
	const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	return value != NULL && *value != '\0' ? value : NULL;
}

/* ---- contexts of the docker command ---- */

static int conf_read_json(const char *path, json_t **ret)
{
	struct cube_buf text = CUBE_BUF(CONF_FILE);
	int rc = cube_file_read(AT_FDCWD, path, &text);

	if (rc == 0)
		rc = cube_json_parse(cube_buf_str(&text), text.len, path, ret, NULL);
	cube_buf_done(&text);
	return rc;
}

/* The name of the context in use; false: the engine's own address. */
static bool conf_context_name(const char *home, char *out, size_t size)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const char *name = conf_env("DOCKER_CONTEXT");
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/config.json", home);
	if (name == NULL && conf_read_json(path, &o) == 0)
		name = cube_json_str(o, "currentContext", NULL);
	(void)snprintf(out, size, "%s", name != NULL ? name : "");
	return *out != '\0' && strcmp(out, "default") != 0;
}

/* Contexts lie in directories called by the digest of their name. */
static bool conf_context(char *out, size_t size)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const char *base = conf_env("DOCKER_CONFIG"), *home = conf_env("HOME");
	char dir[PATH_MAX / 2], name[256], path[PATH_MAX], digest[CUBE_DIGEST_TEXT];
	struct cube_digest *sum;
	const char *host;

	if (base == NULL && home == NULL)
		return false;
	(void)snprintf(dir, sizeof(dir), "%s%s", base != NULL ? base : home, base != NULL ? "" : "/.docker");
	if (!conf_context_name(dir, name, sizeof(name)))
		return false;
	sum = cube_digest_new();
	if (sum == NULL)
		return false;
	cube_digest_add(sum, name, strlen(name));
	(void)snprintf(path, sizeof(path), "%s/contexts/meta/%s/meta.json", dir,
		       cube_digest_end(sum, digest) + strlen("sha256:"));
	if (conf_read_json(path, &o) < 0)
		return false;
	host = cube_json_str(json_object_get(json_object_get(o, "Endpoints"), "docker"), "Host", "");
	(void)snprintf(out, size, "%s", host);
	return *out != '\0';
}

/* ---- the address ---- */

static bool conf_socket_try(const char *path, char *out, size_t size)
{
	struct stat st;

	int n = snprintf(out, size, "unix://%s", path);

	return n > 0 && (size_t)n < size && stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void conf_own_socket(char *out, size_t size)
{
	const char *run = conf_env("XDG_RUNTIME_DIR");
	char user[2][PATH_MAX];

	(void)snprintf(user[0], sizeof(user[0]), "%s/docker.sock", run != NULL ? run : "/nowhere");
	(void)snprintf(user[1], sizeof(user[1]), "%s/podman/podman.sock", run != NULL ? run : "/nowhere");
	if (!conf_socket_try(user[0], out, size) && !conf_socket_try(CONF_SOCKET, out, size) &&
	    !conf_socket_try(user[1], out, size) && !conf_socket_try(CONF_PODMAN, out, size))
		(void)conf_socket_try(CONF_SOCKET, out, size); /* where it will be */
}

static void conf_find(const struct cube_conf_section *conf, char *out, size_t size)
{
	const char *url = cube_conf_get(conf, "url");

	if (url == NULL)
		url = conf_env("DOCKER_HOST");
	if (url != NULL)
		(void)snprintf(out, size, "%s", url);
	else if (!conf_context(out, size))
		conf_own_socket(out, size);
}

struct conf_tls {
	char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX]; /* "": none */
	bool on;
};

static void conf_tls(const struct cube_conf_section *conf, struct conf_tls *t)
{
	static const char *const keys[] = {"ca_file", "cert_file", "key_file"};
	static const char *const names[] = {"ca.pem", "cert.pem", "key.pem"};
	char *const to[] = {t->ca, t->cert, t->key};
	const char *dir = cube_conf_get(conf, "url") == NULL ? conf_env("DOCKER_CERT_PATH") : NULL;

	for (size_t i = 0; i < CUBE_COUNT(keys); i++) {
		const char *file = cube_conf_get(conf, keys[i]);

		if (file != NULL)
			(void)snprintf(to[i], PATH_MAX, "%s", file);
		else if (dir != NULL)
			(void)snprintf(to[i], PATH_MAX, "%s/%s", dir, names[i]);
		t->on = t->on || file != NULL;
	}
	t->on = t->on || conf_env("DOCKER_TLS_VERIFY") != NULL;
}

static const char *conf_file(const char *path)
{
	return *path != '\0' ? path : NULL;
}

static int conf_connect(struct cube_docker *d, const struct cube_conf_section *conf, uint32_t timeout,
			struct cube_err *err)
{
	struct conf_tls tls = {.on = false};
	struct cube_http_conf h = {
		.who = "the engine", .timeout_s = timeout, .proxy = cube_conf_get(conf, "proxy")};
	char url[sizeof(d->where) + 16];

	conf_tls(conf, &tls);
	h.url = url;
	if (strncmp(d->where, "unix://", 7) == 0) {
		h.url = "http://localhost";
		h.socket = d->where + 7;
		d->local = true;
	} else if (strncmp(d->where, "tcp://", 6) == 0) {
		(void)snprintf(url, sizeof(url), "%s://%s", tls.on ? "https" : "http", d->where + 6);
	} else if (strncmp(d->where, "http://", 7) == 0 || strncmp(d->where, "https://", 8) == 0) {
		(void)snprintf(url, sizeof(url), "%s", d->where);
		tls.on = strncmp(d->where, "https://", 8) == 0;
	} else {
		return cube_fail(err, -EINVAL,
				 "backend %s: url = %.150s: unix:///PATH, tcp://HOST:PORT or "
				 "https://HOST:PORT is wanted",
				 d->base.name, d->where);
	}
	if (tls.on) {
		h.ca_file = conf_file(tls.ca);
		h.cert_file = conf_file(tls.cert);
		h.key_file = conf_file(tls.key);
	}
	return cube_http_new(&h, &d->http, err);
}

/* A unix socket may be a forwarded one. */
static int conf_local(struct cube_docker *d, const struct cube_conf_section *conf, struct cube_err *err)
{
	const char *local = cube_conf_get(conf, "local");

	if (local == NULL)
		return 0;
	if (strcmp(local, "no") != 0 && (strcmp(local, "yes") != 0 || !d->local))
		return cube_fail(err, -EINVAL,
				 "backend %s: local = %s: yes, which needs a unix socket, or no is wanted",
				 d->base.name, local);
	d->local = strcmp(local, "yes") == 0;
	return 0;
}

int docker_configure(struct cube_docker *d, const struct cube_conf_section *conf, struct cube_err *err)
{
	const char *timeout = cube_conf_get(conf, "timeout"), *template = cube_conf_get(conf, "template"),
		   *network = cube_conf_get(conf, "network");
	uint64_t seconds = 0;
	int rc = conf != NULL ? cube_conf_check(conf, conf_keys, err) : 0;

	if (rc == 0)
		rc = cube_backend_conf_limits(d->base.name, conf, &d->base.defaults, err);
	if (rc < 0)
		return rc;
	if (timeout != NULL && (cube_num_u64(timeout, CONF_TIMEOUT, &seconds) < 0 || seconds == 0))
		return cube_fail(err, -EINVAL, "backend %s: timeout = %s: seconds are wanted, 1 to %d",
				 d->base.name, timeout, CONF_TIMEOUT);
	if ((size_t)snprintf(d->template, sizeof(d->template), "%s",
			     template != NULL ? template : CONF_TEMPLATE) >= sizeof(d->template) ||
	    (size_t)snprintf(d->network, sizeof(d->network), "%s",
			     network != NULL ? network : CONF_NETWORK) >= sizeof(d->network))
		return cube_fail(err, -EINVAL, "backend %s: template or network: the name is too long",
				 d->base.name);
	d->base.template = d->template;
	conf_find(conf, d->where, sizeof(d->where));
	if (strncmp(d->where, "ssh://", 6) == 0) {
		(void)snprintf(d->why, sizeof(d->why),
			       "%.60s: engines are not reached by ssh: forward its socket and name that",
			       d->where);
		return 0;
	}
	rc = conf_connect(d, conf, (uint32_t)seconds, err);
	return rc == 0 ? conf_local(d, conf, err) : rc;
}
