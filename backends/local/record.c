/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a sandbox on disk. */
#include "backends/local/record.h"

#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/local/dirs.h"
#include "backends/local/leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD_FILE    "local.json"
#define RECORD_NEW     "local.json.new"
#define RECORD_MAX     65536
#define RECORD_VERSION 1

static const char *const record_stages[] = {
	[CUBE_STAGE_STOPPED] = "stopped",
	[CUBE_STAGE_STARTING] = "starting",
	[CUBE_STAGE_RUNNING] = "running",
};

static int record_stage(const char *name)
{
	for (size_t i = 0; i < CUBE_COUNT(record_stages); i++)
		if (strcmp(name, record_stages[i]) == 0)
			return (int)i;
	return -1;
}

static void record_string(const json_t *o, const char *key, char *out, size_t size)
{
	(void)snprintf(out, size, "%s", cube_json_str(o, key, ""));
}

static uint64_t record_number(const json_t *o, const char *key)
{
	int64_t n = cube_json_int(o, key, 0);

	return n < 0 ? 0 : (uint64_t)n;
}

static void record_parse(const json_t *o, struct cube_local_record *r)
{
	record_string(o, "template", r->template, sizeof(r->template));
	record_string(o, "hostname", r->hostname, sizeof(r->hostname));
	record_string(o, "reason", r->reason, sizeof(r->reason));
	record_string(o, "boot", r->boot, sizeof(r->boot));
	record_string(o, "base", r->base, sizeof(r->base));
	record_string(o, "next_template", r->next_template, sizeof(r->next_template));
	record_string(o, "next_base", r->next_base, sizeof(r->next_base));
	r->taking = cube_json_bool(o, "taking", false);
	r->limits.memory = record_number(o, "memory");
	r->limits.disk = record_number(o, "disk");
	r->limits.pids = (uint32_t)record_number(o, "pids");
	r->limits.cpus_milli = (uint32_t)record_number(o, "cpus_milli");
	r->net = strcmp(cube_json_str(o, "net", "none"), "open") == 0 ? CUBE_NET_OPEN : CUBE_NET_NONE;
	r->created_wall = record_number(o, "created");
	r->generation = record_number(o, "generation");
	r->still = cube_json_bool(o, "still", false);
	r->init.pid = (pid_t)record_number(o, "pid");
	r->init.start = record_number(o, "pid_start");
	r->net_helper.pid = (pid_t)record_number(o, "net_pid");
	r->net_helper.start = record_number(o, "net_start");
}

static int record_parse_mounts(const json_t *list, struct cube_local_record *r)
{
	size_t n = json_array_size(list);

	if (n > CUBE_LOCAL_MOUNTS)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		const json_t *o = json_array_get(list, i);
		struct cube_local_mount *m = &r->mounts[i];

		record_string(o, "path", m->path, sizeof(m->path));
		record_string(o, "volume", m->volume, sizeof(m->volume));
		m->read_only = cube_json_bool(o, "read_only", false);
		m->number = record_number(o, "number");
		if (!cube_name_inside_ok(m->path))
			return -EINVAL;
	}
	r->n_mounts = (unsigned)n;
	return 0;
}

int cube_local_record_read(int dir, struct cube_local_record *ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(RECORD_MAX);
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_local_record r = {0};
	int rc = cube_file_read(dir, RECORD_FILE, &text), stage;

	if (rc < 0)
		(void)cube_fail(err, rc, "cannot read %s: %s", RECORD_FILE, cube_errno_text(rc));
	else
		rc = cube_json_parse(cube_buf_str(&text), text.len, RECORD_FILE, &o, err);
	cube_buf_done(&text);
	if (rc < 0)
		return rc;
	stage = record_stage(cube_json_str(o, "stage", ""));
	if (cube_json_int(o, "version", 0) != RECORD_VERSION || stage < 0 ||
	    record_parse_mounts(json_object_get(o, "mounts"), &r) < 0)
		return cube_fail(err, -EINVAL, "%s is damaged or of another version of cubefs", RECORD_FILE);
	record_parse(o, &r);
	r.stage = (enum cube_local_stage)stage;
	*ret = r;
	return 0;
}

static json_t *record_mounts(const struct cube_local_record *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->n_mounts; i++) {
		const struct cube_local_mount *m = &r->mounts[i];

		(void)json_array_append_new(list, json_pack("{s:s,s:s,s:b,s:I}", "path", m->path, "volume",
							    m->volume, "read_only", (int)m->read_only,
							    "number", (json_int_t)m->number));
	}
	return list;
}

static json_t *record_object(const struct cube_local_record *r)
{
	return json_pack("{s:i,s:s,s:s,s:s,s:s,s:I,s:I,s:i,s:i,s:s,s:I,s:b,s:s,s:i,s:I,s:i,s:I,s:I,s:b,s:s,s:"
			 "s,s:s,s:o}",
			 "version", RECORD_VERSION, "stage", record_stages[r->stage], "template", r->template,
			 "hostname", r->hostname, "reason", r->reason, "memory", (json_int_t)r->limits.memory,
			 "disk", (json_int_t)r->limits.disk, "pids", (int)r->limits.pids, "cpus_milli",
			 (int)r->limits.cpus_milli, "net", r->net == CUBE_NET_OPEN ? "open" : "none",
			 "generation", (json_int_t)r->generation, "still", (int)r->still, "boot", r->boot,
			 "pid", (int)r->init.pid, "pid_start", (json_int_t)r->init.start, "net_pid",
			 (int)r->net_helper.pid, "net_start", (json_int_t)r->net_helper.start, "created",
			 (json_int_t)r->created_wall, "taking", (int)r->taking, "base", r->base,
			 "next_template", r->next_template, "next_base", r->next_base, "mounts",
			 record_mounts(r));
}

static int record_replace(int dir, const struct cube_buf *text)
{
	cube_auto_fd fd =
		openat(dir, RECORD_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return -errno;
	rc = cube_file_write_all(fd, text->data, text->len);
	if (rc == 0 && renameat(dir, RECORD_NEW, dir, RECORD_FILE) < 0)
		rc = -errno;
	return rc;
}

int cube_local_record_write(int dir, const struct cube_local_record *r, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(RECORD_MAX);
	cube_auto(cube_json_auto) json_t *o = record_object(r);
	int rc = o ? cube_json_write(o, &text) : -ENOMEM;

	if (rc == 0)
		rc = record_replace(dir, &text);
	cube_buf_done(&text);
	return rc < 0 ? cube_fail(err, rc, "cannot write %s: %s", RECORD_FILE, cube_errno_text(rc)) : 0;
}

/* ---- processes ---- */

uint64_t cube_local_proc_start(pid_t pid)
{
	char path[64], text[1024], *at;
	cube_auto_fd fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')'); /* behind the name, which may hold anything: state is field 3, start 22 */
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

const char *cube_local_boot_id(char out[40])
{
	cube_auto_fd fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, 36);

	out[n > 0 ? n : 0] = 0;
	return out;
}

bool cube_local_proc_alive(const struct cube_local_record *r, const struct cube_local_proc *p)
{
	char boot[40];

	return p->pid > 0 && p->start != 0 && cube_local_proc_start(p->pid) == p->start &&
	       strcmp(cube_local_boot_id(boot), r->boot) == 0;
}

/* Of a launch that was cut off a process may be there as well. */
static int record_process(void *ctx, int dir, const char *id)
{
	struct cube_local_record r = {.stage = CUBE_STAGE_STARTING};
	pid_t *found = ctx;

	if (cube_local_record_read(dir, &r, NULL) < 0 || r.stage == CUBE_STAGE_STARTING)
		*found = cube_local_leftover_find(id);
	else if (cube_local_proc_alive(&r, &r.init))
		*found = r.init.pid;
	return *found > 0;
}

static int record_instance(void *ctx, int dir, const char *name)
{
	(void)name;
	return cube_local_dirs_each(dir, "cubes", record_process, ctx) > 0;
}

pid_t cube_local_record_any_running(const char *state_dir)
{
	cube_auto_fd own = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t found = 0;

	if (own >= 0 && record_instance(&found, own, "") == 0)
		(void)cube_local_dirs_each(own, "..", record_instance, &found);
	return found;
}
