/* SPDX-License-Identifier: Apache-2.0 */
/* Where libvirt is, and where what belongs to machines lies. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/conf.h"
#include "backends/base/num.h"

#define CONF_TEMPLATE "default"
#define CONF_TIMEOUT  60
#define CONF_BOOT     180
#define CONF_SECONDS  86400

static const char *const conf_keys[] = {"kind",  "default", "url",  "dir",    "templates", "template",
					"accel", "timeout", "boot", "memory", "cpus",      NULL};

static int conf_seconds(const struct cube_libvirt *v, const struct cube_conf_section *conf, const char *key,
			uint32_t absent, uint32_t *ret, struct cube_err *err)
{
	const char *text = cube_conf_get(conf, key);
	uint64_t n = absent;

	if (text != NULL && (cube_num_u64(text, CONF_SECONDS, &n) < 0 || n == 0))
		return cube_fail(err, -EINVAL, "backend %s: %s = %s: seconds are wanted, 1 to %d",
				 v->base.name, key, text, CONF_SECONDS);
	*ret = (uint32_t)n;
	return 0;
}

static int conf_accel(struct cube_libvirt *v, const struct cube_conf_section *conf, struct cube_err *err)
{
	static const char *const words[] = {
		[LIBVIRT_ACCEL_AUTO] = "auto", [LIBVIRT_ACCEL_KVM] = "kvm", [LIBVIRT_ACCEL_TCG] = "tcg"};
	const char *text = cube_conf_get(conf, "accel");

	for (size_t i = 0; i < CUBE_COUNT(words); i++) {
		if (text == NULL || strcmp(text, words[i]) == 0) {
			v->accel = (enum libvirt_accel)i;
			return 0;
		}
	}
	return cube_fail(err, -EINVAL, "backend %s: accel = %s: auto, kvm or tcg is wanted", v->base.name,
			 text);
}

static int conf_path(const struct cube_libvirt *v, const struct cube_conf_section *conf, const char *key,
		     const char *absent, char *out, size_t size, struct cube_err *err)
{
	const char *text = cube_conf_get(conf, key);

	if (text == NULL)
		text = absent;
	if (*text != '/' || strlen(text) >= size)
		return cube_fail(err, -EINVAL,
				 "backend %s: %s = %.150s: an absolute path of at most %zu bytes is wanted",
				 v->base.name, key, text, size - 1);
	(void)snprintf(out, size, "%s", text);
	return 0;
}

/* The directory must be one that QEMU's user gets to, where libvirt runs it as another one. */
static int conf_dirs(struct cube_libvirt *v, const struct cube_conf_section *conf, const char *state,
		     struct cube_err *err)
{
	char templates[sizeof(v->dir) + 16];
	int rc = conf_path(v, conf, "dir", state, v->dir, sizeof(v->dir), err);

	if (rc == 0)
		rc = conf_path(v, NULL, "dir", state, v->state, sizeof(v->state), err);
	(void)snprintf(templates, sizeof(templates), "%s/templates", v->dir);
	if (rc == 0)
		rc = conf_path(v, conf, "templates", templates, v->templates, sizeof(v->templates), err);
	return rc;
}

int libvirt_configure(struct cube_libvirt *v, const struct cube_conf_section *conf, const char *state,
		      struct cube_err *err)
{
	const char *url = cube_conf_get(conf, "url"), *template = cube_conf_get(conf, "template");
	int rc = conf != NULL ? cube_conf_check(conf, conf_keys, err) : 0;

	if (rc == 0)
		rc = cube_backend_conf_limits(v->base.name, conf, &v->base.defaults, err);
	v->base.defaults.pids = 0; /* a machine's processes are its own */
	if (rc == 0)
		rc = conf_seconds(v, conf, "timeout", CONF_TIMEOUT, &v->timeout_s, err);
	if (rc == 0)
		rc = conf_seconds(v, conf, "boot", CONF_BOOT, &v->boot_s, err);
	if (rc == 0)
		rc = conf_accel(v, conf, err);
	if (rc == 0)
		rc = conf_dirs(v, conf, state, err);
	if (rc < 0)
		return rc;
	if (url == NULL)
		url = geteuid() == 0 ? "qemu:///system" : "qemu:///session";
	if (template == NULL)
		template = CONF_TEMPLATE;
	if (strlen(url) >= sizeof(v->uri) || strlen(template) >= sizeof(v->template))
		return cube_fail(err, -EINVAL, "backend %s: url or template is too long", v->base.name);
	(void)snprintf(v->uri, sizeof(v->uri), "%s", url);
	(void)snprintf(v->template, sizeof(v->template), "%s", template);
	v->base.template = v->template;
	return 0;
}
