/* SPDX-License-Identifier: Apache-2.0 */
/* What the host is, and what it can do. */
#include "backends/libvirt/libvirt_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/agent/file.h"
#include "backends/base/alloc.h"
#include "backends/base/clock.h"

#define PROBE_S        5 /* a mount does not wait longer for it */
#define PROBE_MILLION  1000000
#define PROBE_THOUSAND 1000

static int probe_version(struct libvirt_answer *a)
{
	unsigned long lib = 0, hypervisor = 0;
	const char *type = virConnectGetType(a->conn);

	if (virConnectGetLibVersion(a->conn, &lib) < 0 || virConnectGetVersion(a->conn, &hypervisor) < 0)
		return -1;
	a->got = cube_strdup(type != NULL ? type : "?");
	a->number[0] = lib;
	a->number[1] = hypervisor;
	return a->got != NULL ? 0 : -1;
}

static int probe_kvm(struct libvirt_answer *a)
{
	a->got = virConnectGetDomainCapabilities(a->conn, NULL, NULL, NULL, "kvm", 0);
	a->number[0] = a->got != NULL;
	return 0;
}

static int probe_ask(struct cube_libvirt *v, int (*fn)(struct libvirt_answer *a), struct cube_cancel *cancel,
		     struct libvirt_answer *ret, struct cube_err *err)
{
	return libvirt_do(
		v, &(struct libvirt_ask){.fn = fn, .what = "ask libvirt what it is", .timeout_s = PROBE_S},
		cancel, ret, err);
}

static void probe_text(char *out, size_t size, const char *what, uint64_t n)
{
	(void)snprintf(out, size, "%s %u.%u.%u", what, (unsigned)(n / PROBE_MILLION),
		       (unsigned)(n / PROBE_THOUSAND % PROBE_THOUSAND), (unsigned)(n % PROBE_THOUSAND));
}

static int probe_host(struct cube_libvirt *v, struct cube_err *err)
{
	struct libvirt_answer a = {.conn = NULL};
	struct libvirt_host *h = &v->host;
	char lib[32], hypervisor[48];
	int rc = probe_ask(v, probe_version, NULL, &a, err);

	if (rc < 0)
		return rc;
	probe_text(lib, sizeof(lib), "libvirt", a.number[0]);
	probe_text(hypervisor, sizeof(hypervisor), a.got, a.number[1]);
	(void)snprintf(h->version, sizeof(h->version), "%s, %s", lib, hypervisor);
	h->test = strcmp(a.got, "TEST") == 0;
	cube_free(a.got);
	if (!h->test && probe_ask(v, probe_kvm, NULL, &a, err) == 0) {
		h->kvm = a.number[0] != 0;
		cube_free(a.got);
	}
	return 0;
}

/* DRIVER:///... or DRIVER+unix:///... */
static bool probe_is_local(const char *uri)
{
	const char *at = strstr(uri, "://"), *plus = strchr(uri, '+');

	return at != NULL && at[3] == '/' && (plus == NULL || plus > at || strncmp(plus, "+unix:", 6) == 0);
}

static void probe_lacks(struct cube_libvirt *v, uint32_t caps, const char *why)
{
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++)
		if ((caps & v->base.caps & (1u << i)) != 0)
			(void)snprintf(v->base.missing[i], sizeof(v->base.missing[i]), "%.159s", why);
	v->base.caps &= ~caps;
}

/* A host that does not answer now may do so later: then it is taken for one that can all that there is. */
void libvirt_probe(struct cube_libvirt *v, uint32_t kind_caps)
{
	struct cube_err err = {0};

	v->base.caps = kind_caps;
	v->host.local = probe_is_local(v->uri);
	v->host.known = probe_host(v, &err) == 0;
	probe_lacks(v, CUBE_CAP_CHECKPOINT_MEMORY, "checkpoints of machines are of their disks");
	if (!v->host.local)
		probe_lacks(v, kind_caps,
			    "libvirt is at another machine: its disks and its agents are reached on this one "
			    "alone");
	if (v->host.test)
		probe_lacks(v, CUBE_CAP_EXEC | CUBE_CAP_TTY | CUBE_CAP_USERS | CUBE_CAP_RENAME,
			    "in machines of libvirt's driver for tests nothing runs");
}

int libvirt_ping(struct cube_libvirt *v, struct cube_cancel *cancel, uint64_t *ret_us, struct cube_err *err)
{
	struct libvirt_answer a = {.conn = NULL};
	uint64_t start = cube_clock_mono();
	int rc = probe_ask(v, probe_version, cancel, &a, err);

	cube_free(a.got);
	*ret_us = (cube_clock_mono() - start) / 1000;
	return rc;
}
