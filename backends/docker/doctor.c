/* SPDX-License-Identifier: Apache-2.0 */
/* For `cubefs doctor`: is the engine there, is the agent, what is missing. */
#include "backends/docker/docker_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *doctor_fix(const struct cube_docker *d, int code)
{
	if (d->http == NULL)
		return "set url= in the section, or DOCKER_HOST";
	if (code == -EACCES && d->local)
		return "join the group of the socket (usermod -aG docker USER), or run as root";
	if (d->local)
		return "start the engine (apt-get install docker.io; systemctl start docker, or podman "
		       "system "
		       "service), or name it with url= or DOCKER_HOST";
	return "see that the engine runs there and that certificates fit (ca_file, cert_file, key_file)";
}

void docker_doctor(struct cube_backend *base,
		   void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_docker *d = docker_of(base);
	struct cube_err err = {0};
	char what[CUBE_ERR_TEXT + 64];
	const char *told = "";
	uint64_t us;
	int rc = docker_ping(d, NULL, &us, &err);

	if (rc < 0) {
		say(ctx, false, err.text, doctor_fix(d, rc));
	} else {
		(void)snprintf(what, sizeof(what), "%s at %s", d->engine.version, d->where);
		say(ctx, true, what, NULL);
	}
	if (*d->agent == '\0')
		say(ctx, false, d->agent_why, "install cubefs whole");
	for (unsigned i = 0; rc == 0 && i < CUBE_CAP_COUNT; i++) {
		if (base->missing[i][0] == '\0' || strcmp(base->missing[i], told) == 0)
			continue;
		told = base->missing[i];
		(void)snprintf(what, sizeof(what), "no %s: %s", cube_cap_name(i), told);
		say(ctx, true, what, NULL);
	}
}
