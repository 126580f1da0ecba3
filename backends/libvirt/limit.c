/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a machine that is there. What it was built with changes while it does not run. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>

#define LIMIT_MILLI 1000
#define LIMIT_KIB   1024

static int limit_memory(struct libvirt_answer *a)
{
	unsigned long kib = (unsigned long)(a->n / LIMIT_KIB);

	if (virDomainSetMemoryFlags(a->dom, kib, VIR_DOMAIN_AFFECT_CONFIG | VIR_DOMAIN_MEM_MAXIMUM) < 0)
		return -1;
	return virDomainSetMemoryFlags(a->dom, kib, VIR_DOMAIN_AFFECT_CONFIG);
}

/* The highest number first where there are more, last where there are fewer: the present one is never above it. */
static int limit_cpus(struct libvirt_answer *a)
{
	unsigned n = (unsigned)a->n;
	int now = virDomainGetVcpusFlags(a->dom, VIR_DOMAIN_AFFECT_CONFIG);
	const unsigned most = VIR_DOMAIN_AFFECT_CONFIG | VIR_DOMAIN_VCPU_MAXIMUM;

	if (now < 0)
		return -1;
	if ((unsigned)now < n && virDomainSetVcpusFlags(a->dom, n, most) < 0)
		return -1;
	if (virDomainSetVcpusFlags(a->dom, n, VIR_DOMAIN_AFFECT_CONFIG) < 0)
		return -1;
	return (unsigned)now > n ? virDomainSetVcpusFlags(a->dom, n, most) : 0;
}

static int limit_one(struct cube_libvirt *v, const char *id, int (*fn)(struct libvirt_answer *a), uint64_t n,
		     struct cube_err *err)
{
	return libvirt_do(v,
			  &(struct libvirt_ask){.fn = fn, .id = id, .n = n, .what = "change the limits of"},
			  NULL, NULL, err);
}

int libvirt_limit(struct cube_backend *base, const char *id, const struct cube_limits *limits,
		  struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	enum cube_state state;
	int rc = libvirt_box_state(v, id, NULL, &state, err);

	if (rc < 0)
		return rc;
	if (limits->disk != 0)
		return cube_fail(err, -EOPNOTSUPP,
				 "the disk of a machine keeps the size that it was made with");
	if (state != CUBE_IS_STOPPED)
		return cube_fail(err, -EBUSY,
				 "sandbox %s runs: a machine's limits change while it is stopped", id);
	if (limits->memory != 0)
		rc = limit_one(v, id, limit_memory, limits->memory, err);
	if (rc == 0 && limits->cpus_milli != 0)
		rc = limit_one(v, id, limit_cpus, (limits->cpus_milli + LIMIT_MILLI - 1) / LIMIT_MILLI, err);
	return rc;
}
