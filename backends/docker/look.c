/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen of a sandbox from outside. */
#include "backends/docker/docker_priv.h"

#include "backends/agent/listener.h"
#include "backends/base/clock.h"
#include "backends/ns/oom.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_LABELS         ((size_t)1 << 20)
#define LOOK_NANO_PER_MILLI 1000000
#define LOOK_NS             UINT64_C(1000000000)

static void look_text(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", strlen(from) < size ? from : "");
}

/* What its labels say; those of a foreign container say nothing. */
static void look_labels(const json_t *labels, struct cube_info *info)
{
	look_text(info->uid, sizeof(info->uid), cube_json_str(labels, DOCKER_LABEL_UID, ""));
	if (info->uid[0] != '\0' && !docker_is_ours(info->uid))
		info->uid[0] = '\0';
	look_text(info->name, sizeof(info->name), cube_json_str(labels, DOCKER_LABEL_NAME, ""));
	look_text(info->template, sizeof(info->template), cube_json_str(labels, DOCKER_LABEL_IMAGE, ""));
}

/* ---- one ---- */

static void look_limits(const json_t *host, struct cube_limits *limits)
{
	int64_t memory = cube_json_int(host, "Memory", 0), cpus = cube_json_int(host, "NanoCpus", 0),
		pids = cube_json_int(host, "PidsLimit", 0);

	if (memory > 0)
		limits->memory = (uint64_t)memory;
	if (cpus > 0)
		limits->cpus_milli = (uint32_t)(cpus / LOOK_NANO_PER_MILLI);
	if (pids > 0 && pids <= UINT32_MAX)
		limits->pids = (uint32_t)pids;
}

int docker_inspect(struct cube_backend *base, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	const json_t *state, *host;
	int rc = docker_settle(d, id, err);

	if (rc == 0)
		rc = docker_box_get(d, id, NULL, &box, err);

	if (rc < 0)
		return rc;
	state = json_object_get(box, "State");
	host = json_object_get(box, "HostConfig");
	*ret = (struct cube_info){.state = docker_box_state(box)};
	look_text(ret->id, sizeof(ret->id), id);
	look_labels(json_object_get(json_object_get(box, "Config"), "Labels"), ret);
	if (ret->uid[0] == '\0') {
		const char *name = cube_json_str(box, "Name", "");

		look_text(ret->name, sizeof(ret->name), *name == '/' ? name + 1 : name);
	}
	look_limits(host, &ret->limits);
	if (strcmp(cube_json_str(host, "NetworkMode", "none"), "none") != 0)
		ret->net = CUBE_NET_OPEN;
	(void)cube_clock_parse(cube_json_str(box, "Created", ""), &ret->created_wall);
	if (ret->state == CUBE_IS_STOPPED)
		look_text(ret->reason, sizeof(ret->reason),
			  cube_json_bool(state, "OOMKilled", false) ? "oom" : "exited");
	return 0;
}

/* ---- all ---- */

static enum cube_state look_state(const char *word)
{
	if (strcmp(word, "paused") == 0)
		return CUBE_IS_PAUSED;
	return strcmp(word, "running") == 0 || strcmp(word, "restarting") == 0 ? CUBE_IS_RUNNING
									       : CUBE_IS_STOPPED;
}

/* Is it a line of @names? */
static bool look_named(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (; *names != '\0'; names += strcspn(names, "\n") + 1)
		if (strncmp(names, name, len) == 0 && names[len] == '\n')
			return true;
	return false;
}

static void look_own_labels(const json_t *labels, struct cube_buf *out)
{
	const size_t len = strlen(DOCKER_LABEL_OWN);
	const char *key, *names = cube_json_str(labels, DOCKER_LABEL_NAMES, NULL);
	const json_t *value;

	json_object_foreach((json_t *)(uintptr_t)labels, key, value)
	{
		const char *text = cube_json_str(labels, key, "");

		if (strncmp(key, DOCKER_LABEL_OWN, len) == 0 && strchr(text, '\n') == NULL &&
		    (names == NULL || look_named(names, key + len)))
			(void)cube_buf_printf(out, "%s=%s\n", key + len, text);
	}
}

/* Its name, without the slash with which the engine begins it. */
static const char *look_box_name(const json_t *box)
{
	const char *name = json_string_value(json_array_get(json_object_get(box, "Names"), 0));

	return name != NULL && *name == '/' ? name + 1 : "";
}

/* A mark counts where the name says the same: an image that was made of a sandbox gives its labels to all that is made
 * of it. */
static bool look_is(const json_t *box, const char *suffix)
{
	const char *uid = cube_json_str(json_object_get(box, "Labels"), DOCKER_LABEL_UID, "");
	char name[DOCKER_REF + 8];

	(void)snprintf(name, sizeof(name), DOCKER_NAME "%.*s%s", CUBE_ID_MAX, uid, suffix);
	return docker_is_ours(uid) && strcmp(look_box_name(box), name) == 0;
}

/* While another container takes its place none may have its name (settle.c). */
static bool look_stands_in(const json_t *all, const json_t *box)
{
	const char *uid = cube_json_str(json_object_get(box, "Labels"), DOCKER_LABEL_UID, "");
	const json_t *one;
	size_t i;

	if (!look_is(box, DOCKER_OLD))
		return false;
	json_array_foreach(
		all, i, one) if (look_is(one, "") &&
				 strcmp(cube_json_str(json_object_get(one, "Labels"), DOCKER_LABEL_UID, ""),
					uid) == 0) return false;
	return true;
}

/* Those that never run and those that were sandboxes or are to be. */
static bool look_hidden(const json_t *box)
{
	return strncmp(look_box_name(box), DOCKER_MAKER, strlen(DOCKER_MAKER)) == 0 ||
	       look_is(box, DOCKER_NEXT) || look_is(box, DOCKER_OLD) || look_is(box, DOCKER_GONE);
}

static void look_one(const json_t *box, bool own, void (*each)(void *ctx, const struct cube_info *info),
		     void *ctx)
{
	const json_t *all = json_object_get(box, "Labels");
	struct cube_info info = {.state = look_state(cube_json_str(box, "State", ""))};
	struct cube_buf labels = CUBE_BUF(LOOK_LABELS);
	int64_t created = cube_json_int(box, "Created", 0);

	if (own)
		look_labels(all, &info);
	look_text(info.id, sizeof(info.id), info.uid[0] != '\0' ? info.uid : cube_json_str(box, "Id", ""));
	if (info.uid[0] == '\0') {
		look_text(info.name, sizeof(info.name), look_box_name(box));
		look_text(info.template, sizeof(info.template), cube_json_str(box, "Image", ""));
	}
	info.created_wall = created > 0 ? (uint64_t)created * LOOK_NS : 0;
	if (own)
		look_own_labels(all, &labels);
	info.labels = labels.len > 0 ? cube_buf_str(&labels) : NULL;
	if (info.id[0] != '\0')
		each(ctx, &info);
	cube_buf_done(&labels);
}

int docker_list(struct cube_backend *base, struct cube_cancel *cancel,
		void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *all = NULL;
	const json_t *box;
	size_t i;
	int rc = docker_ask(d,
			    &(struct docker_ask){.method = "GET",
						 .path = "/containers/json?all=1",
						 .what = "list the containers",
						 .ret = &all},
			    cancel, err);

	json_array_foreach(all, i, box)
	{
		bool own = look_is(box, "") || look_stands_in(all, box);

		if (own || !look_hidden(box))
			look_one(box, own, each, ctx);
		if (docker_maker_stale(d, look_box_name(box)))
			docker_maker_gone(d, look_box_name(box));
	}
	return rc;
}

/* ---- usage ---- */

static uint64_t look_number(const json_t *o, const char *first, const char *second)
{
	int64_t n = cube_json_int(second != NULL ? json_object_get(o, first) : o,
				  second != NULL ? second : first, -1);

	return n < 0 ? UINT64_MAX : (uint64_t)n;
}

static void look_net(const json_t *networks, struct cube_usage *u)
{
	const char *name;
	const json_t *one;

	if (!json_is_object(networks))
		return;
	u->net_in = u->net_out = 0;
	json_object_foreach((json_t *)(uintptr_t)networks, name, one)
	{
		u->net_in += (uint64_t)cube_json_int(one, "rx_bytes", 0);
		u->net_out += (uint64_t)cube_json_int(one, "tx_bytes", 0);
	}
}

int docker_usage(struct cube_backend *base, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	int rc = docker_box_ask(docker_of(base), id,
				&(struct docker_ask){.method = "GET",
						     .path = "/stats?stream=false&one-shot=true",
						     .what = "see what is used by",
						     .ret = &o},
				NULL, err);

	if (rc < 0)
		return rc;
	*ret = (struct cube_usage){
		.pids = look_number(o, "pids_stats", "current"),
		.cpu_ns = look_number(json_object_get(o, "cpu_stats"), "cpu_usage", "total_usage"),
		.memory = look_number(o, "memory_stats", "usage"),
		.disk = UINT64_MAX,
		.oom_kills = UINT64_MAX,
		.net_in = UINT64_MAX,
		.net_out = UINT64_MAX,
	};
	look_net(json_object_get(o, "networks"), ret);
	if (docker_proc_why(docker_of(base)) == NULL) {
		cube_auto_fd proc = docker_proc(docker_of(base), id, NULL, NULL);
		cube_auto_fd file = proc >= 0 ? cube_ns_oom_file(proc) : -1;

		ret->oom_kills = cube_ns_oom_read(file);
	}
	return 0;
}

/* ---- access ---- */

int docker_access(struct cube_backend *base, const char *id, void (*each)(void *ctx, const char *line),
		  void *ctx, struct cube_err *err)
{
	struct cube_docker *d = docker_of(base);
	cube_auto(cube_json_auto) json_t *box = NULL;
	char path[PATH_MAX], line[PATH_MAX + 32];
	int rc = docker_box_get(d, id, NULL, &box, err);

	if (rc < 0)
		return rc;
	(void)snprintf(line, sizeof(line), "container %.64s", cube_json_str(box, "Id", "-"));
	each(ctx, line);
	if (docker_box_state(box) != CUBE_IS_STOPPED && !docker_planted(box)) {
		cube_auto_fd dir = docker_box_dir(d, id, false, NULL);

		if (dir >= 0 && cube_agent_listener_path(dir, path, sizeof(path)) == 0) {
			(void)snprintf(line, sizeof(line), "agent cube-init unix:%s", path);
			each(ctx, line);
		}
	}
	each(ctx, "os linux");
	return 0;
}
