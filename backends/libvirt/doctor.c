/* SPDX-License-Identifier: Apache-2.0 */
/* What `cubefs doctor` says of libvirt. */
#include "backends/libvirt/libvirt_priv.h"

#include <stdio.h>
#include <unistd.h>

void libvirt_doctor(struct cube_backend *base,
		    void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct cube_err err = {0};
	char line[600], accel[200];
	uint64_t us;
	int rc = libvirt_ping(v, NULL, &us, &err);

	if (rc < 0) {
		(void)snprintf(line, sizeof(line), "libvirt at %.150s: %s", v->uri, err.text);
		say(ctx, false, line,
		    "install libvirt-daemon-system and start libvirtd, or name another with url=");
		return;
	}
	(void)snprintf(line, sizeof(line), "libvirt at %.150s: %s", v->uri, v->host.version);
	say(ctx, true, line, NULL);
	libvirt_kvm_say(v, accel, sizeof(accel));
	(void)snprintf(line, sizeof(line), "machines run with %s", accel);
	say(ctx, libvirt_kvm(v, NULL) || v->accel == LIBVIRT_ACCEL_TCG, line,
	    "they run, some ten times slower: use a host with KVM");
	(void)snprintf(line, sizeof(line), "templates of machines in %.400s", v->templates);
	say(ctx, access(v->templates, R_OK | X_OK) == 0, line, "import a template");
}
