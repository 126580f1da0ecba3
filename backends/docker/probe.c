/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine is, and what it can do. */
#include "backends/docker/docker_priv.h"

#include "backends/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_S      5      /* a mount does not wait longer for it */
#define PROBE_OLDEST "1.41" /* Docker 20.10, Podman 4 */
#define PROBE_NEWEST "1.43" /* what this backend was written for */

/* "1.41" as a number that can be compared; 0: none. */
static unsigned probe_number(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor;

	if (end == text || *end != '.' || major > 99)
		return 0;
	text = end + 1;
	minor = strtoul(text, &end, 10);
	return end == text || minor > 999 ? 0 : (unsigned)(major * 1000 + minor);
}

/* The newest that both speak. */
static int probe_version(struct cube_docker *d, const json_t *o)
{
	const char *theirs = cube_json_str(o, "ApiVersion", ""),
		   *least = cube_json_str(o, "MinAPIVersion", "");
	const char *use = probe_number(theirs) < probe_number(PROBE_NEWEST) ? theirs : PROBE_NEWEST;

	if (probe_number(theirs) < probe_number(PROBE_OLDEST)) {
		(void)snprintf(d->why, sizeof(d->why),
			       "the engine speaks version %.16s of its interface, and " PROBE_OLDEST
			       " is needed: Docker 20.10 or Podman 4",
			       theirs);
		return -EOPNOTSUPP;
	}
	if (probe_number(least) > probe_number(use))
		use = least;
	(void)snprintf(d->engine.api, sizeof(d->engine.api), "%.15s", use);
	return 0;
}

static int probe_get(struct cube_docker *d, const char *path, bool plain, json_t **ret,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	return docker_ask(d,
			  &(struct docker_ask){.method = "GET",
					       .path = path,
					       .plain = plain,
					       .what = "ask the engine what it is",
					       .timeout_s = PROBE_S,
					       .ret = ret},
			  cancel, err);
}

static bool probe_has(const json_t *list, const char *word)
{
	size_t i;
	const json_t *one;

	json_array_foreach(list, i, one) if (json_is_string(one) &&
					     strstr(json_string_value(one), word) != NULL) return true;
	return false;
}

static void probe_network(struct cube_docker *d)
{
	struct cube_buf path = CUBE_BUF(256);
	cube_auto(cube_json_auto) json_t *o = NULL;

	(void)cube_buf_adds(&path, "/networks/");
	(void)cube_http_escape(&path, d->network);
	d->engine.network = probe_get(d, cube_buf_str(&path), false, &o, NULL, NULL) == 0;
	cube_buf_done(&path);
}

static int probe_info(struct cube_docker *d, struct cube_err *err)
{
	struct docker_engine *e = &d->engine;
	cube_auto(cube_json_auto) json_t *o = NULL;
	int rc = probe_get(d, "/info", false, &o, NULL, err);

	if (rc < 0)
		return rc;
	(void)snprintf(e->driver, sizeof(e->driver), "%.31s", cube_json_str(o, "Driver", ""));
	(void)snprintf(e->id, sizeof(e->id), "%.71s", cube_json_str(o, "ID", ""));
	e->memory = cube_json_bool(o, "MemoryLimit", false);
	e->cpus = cube_json_bool(o, "CpuCfsQuota", cube_json_bool(o, "CPUCfsQuota", false));
	e->pids = cube_json_bool(o, "PidsLimit", false);
	e->user_ns = probe_has(json_object_get(o, "SecurityOptions"), "userns") ||
		     probe_has(json_object_get(o, "SecurityOptions"), "rootless");
	e->gpu = !e->podman && json_object_get(json_object_get(o, "Runtimes"), "nvidia") != NULL;
	probe_network(d);
	return 0;
}

static int probe_engine(struct cube_docker *d, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	const json_t *first;
	int rc = probe_get(d, "/version", true, &o, NULL, err);

	if (rc < 0)
		return rc;
	first = json_array_get(json_object_get(o, "Components"), 0);
	d->engine.podman = strstr(cube_json_str(first, "Name", ""), "Podman") != NULL;
	(void)snprintf(d->engine.version, sizeof(d->engine.version), "%s %.40s (interface %.8s)",
		       d->engine.podman ? "Podman" : "Docker", cube_json_str(o, "Version", "?"),
		       cube_json_str(o, "ApiVersion", "?"));
	rc = probe_version(d, o);
	if (rc < 0)
		return cube_fail(err, rc, "%s", d->why);
	return probe_info(d, err);
}

/* ---- capabilities ---- */

static void probe_lacks(struct cube_docker *d, uint32_t caps, const char *why)
{
	for (unsigned i = 0; i < CUBE_CAP_COUNT; i++)
		if ((caps & d->base.caps & (1u << i)) != 0)
			(void)snprintf(d->base.missing[i], sizeof(d->base.missing[i]), "%.159s", why);
	d->base.caps &= ~caps;
}

/* How cube-init gets in, and why so. */
static void probe_way_in(struct cube_docker *d)
{
	const uint32_t caps = CUBE_CAP_EXEC | CUBE_CAP_TTY | CUBE_CAP_USERS | CUBE_CAP_ADOPT;

	if (*d->agent == '\0')
		probe_lacks(d, caps, d->agent_why);
	else if (d->engine.podman && !d->local)
		probe_lacks(
			d, caps,
			"Podman ends a container's input when whoever was attached has gone: its agent is "
			"reached by a unix socket of this machine alone");
	else if (d->local)
		(void)snprintf(d->base.way, sizeof(d->base.way), "bound in, reached by a socket");
	else
		(void)snprintf(
			d->base.way, sizeof(d->base.way),
			"copied to the engine, reached by an attached stream: the engine at %.60s may be "
			"another machine",
			d->where);
}

static void probe_caps(struct cube_docker *d)
{
	const struct docker_engine *e = &d->engine;
	char why[160];

	probe_way_in(d);
	if (docker_root_why(d) != NULL) /* through them the agent gets in where there is no door */
		probe_lacks(d, CUBE_CAP_FILES | CUBE_CAP_ADOPT | CUBE_CAP_BUILD | CUBE_CAP_BIND,
			    docker_root_why(d));
	if (docker_proc_why(d) != NULL)
		probe_lacks(d, CUBE_CAP_PORTS | CUBE_CAP_BIND, docker_proc_why(d));
	if (docker_seed_why(d) != NULL)
		probe_lacks(d, CUBE_CAP_RENAME | CUBE_CAP_ACCOUNTS, docker_seed_why(d));
	if (e->podman)
		probe_lacks(d,
			    CUBE_CAP_CHECKPOINTS | CUBE_CAP_RESET | CUBE_CAP_CHANGES | CUBE_CAP_KEEP |
				    CUBE_CAP_BUILD,
			    "what Podman says of a container is not what it takes to make one like it");
	probe_lacks(d, CUBE_CAP_CHECKPOINT_MEMORY,
		    e->podman ? "checkpoints are images, which have no memory"
			      : "the engine keeps memory (with CRIU) only for the same container, which a "
				"fork is not");
	if (!e->memory)
		probe_lacks(d, CUBE_CAP_MEMORY, "the engine has no control group for memory");
	if (!e->cpus)
		probe_lacks(d, CUBE_CAP_CPUS, "the engine has no control group for processors");
	if (!e->gpu)
		probe_lacks(d, CUBE_CAP_GPU,
			    "the engine has no runtime 'nvidia', by which it gives containers the machine's");
	if (!e->pids)
		probe_lacks(d, CUBE_CAP_PIDS, "the engine has no control group for processes");
	(void)snprintf(why, sizeof(why), "the engine has no network '%s': network= in the section names one",
		       d->network);
	if (!e->network)
		probe_lacks(d, CUBE_CAP_NET_OPEN, why);
}

/* One that does not answer now may do so later: then it is taken for one that can all that Docker can. */
void docker_probe(struct cube_docker *d, uint32_t kind_caps)
{
	struct cube_err err = {0};
	int rc;

	d->base.caps = kind_caps;
	d->engine = (struct docker_engine){.api = PROBE_OLDEST,
					   .driver = "overlay2",
					   .memory = true,
					   .cpus = true,
					   .pids = true,
					   .network = true};
	rc = *d->why == '\0' ? probe_engine(d, &err) : -EHOSTUNREACH;
	d->engine.known = rc == 0;
	if (*d->why != '\0')
		probe_lacks(d, kind_caps, d->why);
	probe_caps(d);
}

int docker_ping(struct cube_docker *d, struct cube_cancel *cancel, uint64_t *ret_us, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	uint64_t start = cube_clock_mono();
	int rc = probe_get(d, "/version", true, &o, cancel, err);

	*ret_us = (cube_clock_mono() - start) / 1000;
	return rc;
}
