/* SPDX-License-Identifier: Apache-2.0 */
/* From a create line to what the engine is told. */
#include "backends/docker/docker_priv.h"

#include "backends/base/alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NANO_PER_MILLI 1000000
#define SPEC_PERIOD_US 100000

void docker_spec_limits(json_t *to, const struct cube_limits *limits)
{
	if (limits->memory != 0) {
		(void)json_object_set_new(to, "Memory", json_integer((json_int_t)limits->memory));
		/* Both together: no swap, or the limit would be none. */
		(void)json_object_set_new(to, "MemorySwap", json_integer((json_int_t)limits->memory));
	}
	if (limits->cpus_milli != 0)
		(void)json_object_set_new(to, "NanoCpus",
					  json_integer((json_int_t)limits->cpus_milli * NANO_PER_MILLI));
	if (limits->pids != 0)
		(void)json_object_set_new(to, "PidsLimit", json_integer((json_int_t)limits->pids));
}

void docker_spec_resources(json_t *to, const struct cube_limits *limits)
{
	if (limits->memory != 0)
		(void)json_object_set_new(to, "memory",
					  json_pack("{s:I,s:I}", "limit", (json_int_t)limits->memory, "swap",
						    (json_int_t)limits->memory));
	if (limits->cpus_milli != 0)
		(void)json_object_set_new(to, "cpu",
					  json_pack("{s:I,s:I}", "period", (json_int_t)SPEC_PERIOD_US,
						    "quota",
						    (json_int_t)limits->cpus_milli * SPEC_PERIOD_US / 1000));
	if (limits->pids != 0)
		(void)json_object_set_new(to, "pids", json_pack("{s:I}", "limit", (json_int_t)limits->pids));
}

static json_t *spec_pairs(const struct cube_pair *pairs, size_t n, const char *between)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		cube_auto_str text = cube_asprintf("%s%s%s", pairs[i].key, between, pairs[i].value);

		if (text != NULL)
			(void)json_array_append_new(list, cube_json_bytes(text, strlen(text)));
	}
	return list;
}

static json_t *spec_labels(const struct cube_spec *spec, const char *template)
{
	cube_auto_str user = spec->user != NULL ? cube_asprintf("%s:%u", spec->user, spec->user_uid) : NULL;
	json_t *labels = json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", DOCKER_LABEL_UID, spec->uid,
				   DOCKER_LABEL_NAME, spec->name != NULL ? spec->name : "",
				   DOCKER_LABEL_IMAGE, template, DOCKER_LABEL_BASE, "",
				   DOCKER_LABEL_GENERATION, "1", DOCKER_LABEL_USER, user != NULL ? user : "");
	struct cube_buf names = CUBE_BUF((size_t)1 << 20);

	for (size_t i = 0; i < spec->n_labels; i++) {
		cube_auto_str key = cube_asprintf(DOCKER_LABEL_OWN "%s", spec->labels[i].key);

		if (key != NULL)
			(void)json_object_set_new(
				labels, key,
				cube_json_bytes(spec->labels[i].value, strlen(spec->labels[i].value)));
		(void)cube_buf_printf(&names, "%s\n", spec->labels[i].key);
	}
	/* An image that was made of another sandbox has that one's. */
	(void)json_object_set_new(labels, DOCKER_LABEL_NAMES, json_string(cube_buf_str(&names)));
	cube_buf_done(&names);
	return labels;
}

static json_t *spec_bind(const char *source, const char *target)
{
	return json_pack("{s:s,s:s,s:s,s:b}", "Type", "bind", "Source", source, "Target", target, "ReadOnly",
			 1);
}

static json_t *spec_mount_volume(const char *name, const char *target, bool read_only)
{
	return json_pack("{s:s,s:s,s:s,s:b,s:{s:b}}", "Type", "volume", "Source", name, "Target", target,
			 "ReadOnly", read_only, "VolumeOptions", "NoCopy", 1);
}

/* Empty at first, whatever the image has there. */
static json_t *spec_volume(const struct cube_spec_volume *v)
{
	char name[DOCKER_REF];

	(void)snprintf(name, sizeof(name), DOCKER_NAME "%s", v->volume);
	return spec_mount_volume(name, v->path, v->read_only);
}

static json_t *spec_mounts(const struct cube_docker *d, const struct cube_spec *spec)
{
	cube_auto_str door = cube_asprintf("%s/cubes/%s/door", d->path, spec->uid);
	json_t *list = json_array();

	if (door == NULL)
		return list;
	if (d->local) {
		(void)json_array_append_new(list, spec_bind(d->agent, DOCKER_AGENT));
		(void)json_array_append_new(list, spec_bind(door, DOCKER_DOOR));
	} else {
		char name[DOCKER_PLANT_MAX];

		docker_plant_name(d, name);
		(void)json_array_append_new(list, spec_mount_volume(name, DOCKER_PLANT, true));
	}
	for (size_t i = 0; i < spec->n_volumes; i++)
		(void)json_array_append_new(list, spec_volume(&spec->volumes[i]));
	return list;
}

static json_t *spec_host(const struct cube_docker *d, const struct cube_spec *spec)
{
	const struct cube_limits *def = &d->base.defaults;
	struct cube_limits limits = spec->limits;
	json_t *host = json_pack("{s:o,s:s,s:b,s:o}", "Mounts", spec_mounts(d, spec), "NetworkMode",
				 spec->net == CUBE_NET_OPEN ? d->network : "none", "Privileged",
				 spec->privileged, "ExtraHosts", spec_pairs(spec->hosts, spec->n_hosts, ":"));

	if (spec->gpu) /* all that there are */
		(void)json_object_set_new(host, "DeviceRequests",
					  json_pack("[{s:i,s:[[s]]}]", "Count", -1, "Capabilities", "gpu"));
	limits.memory = limits.memory != 0 ? limits.memory : def->memory;
	limits.pids = limits.pids != 0 ? limits.pids : def->pids;
	limits.cpus_milli = limits.cpus_milli != 0 ? limits.cpus_milli : def->cpus_milli;
	docker_spec_limits(host, &limits);
	/* What the agent says goes to whoever is attached; a log of it would grow for ever. */
	if (!d->local)
		(void)json_object_set_new(host, "LogConfig", json_pack("{s:s}", "Type", "none"));
	return host;
}

static json_t *spec_agent(const struct cube_docker *d)
{
	return d->local ? json_pack("[s,s,s]", DOCKER_AGENT, "--door", DOCKER_DOOR "/door")
			: json_pack("[s,s]", DOCKER_PLANT "/init", "--stdio");
}

int docker_spec(const struct cube_docker *d, const struct cube_spec *spec, const char *image, json_t **ret,
		struct cube_err *err)
{
	const char *template = spec->template != NULL ? spec->template : d->base.template;
	char hostname[64];

	(void)snprintf(hostname, sizeof(hostname), "%.63s", spec->name != NULL ? spec->name : spec->uid);
	*ret = json_pack("{s:s,s:o,s:[],s:b,s:s,s:s,s:s,s:s,s:o,s:o,s:o}", "Image", image, "Entrypoint",
			 spec_agent(d), "Cmd", "OpenStdin", !d->local, "WorkingDir", "/workspace", "User",
			 "0:0", "Hostname", hostname, "StopSignal", "SIGTERM", "Env",
			 spec_pairs(spec->env, spec->n_env, "="), "Labels", spec_labels(spec, template),
			 "HostConfig", spec_host(d, spec));
	return *ret != NULL ? 0 : cube_fail(err, -ENOMEM, "out of memory");
}
