/* SPDX-License-Identifier: Apache-2.0 */
/* The OCI configuration of a sandbox. */
#include "backends/local/bundle.h"

#include "backends/base/alloc.h"
#include "backends/base/json.h"
#include "backends/base/macros.h"
#include "backends/local/filter.h"
#include "backends/local/seccomp.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#define BUNDLE_AGENT       "/dev/.cube-init"
#define BUNDLE_OOM_SCORE   200 /* where the machine itself runs short, sandboxes go before what serves it */
#define BUNDLE_DEVPTS      "nosuid,noexec,newinstance,ptmxmode=0666,mode=0620"
#define BUNDLE_NOFILE_SOFT 1024
#define BUNDLE_NOFILE_HARD 524288

static const char *const bundle_caps[] = {
	/* clang-format off */
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	"CAP_SYS_CHROOT",
	/* clang-format on */
};

static const char *const bundle_namespaces[] = {"user", "mount", "pid", "ipc", "uts", "cgroup", "network"};

static const char *const bundle_masked[] = {
	"/proc/acpi",        "/proc/asound",        "/proc/interrupts",
	"/proc/kcore",       "/proc/keys",          "/proc/key-users",
	"/proc/kmsg",        "/proc/latency_stats", "/proc/sched_debug",
	"/proc/scsi",        "/proc/sysrq-trigger", "/proc/timer_list",
	"/proc/timer_stats", "/proc/vmallocinfo",   "/sys/devices/virtual/powercap",
	"/sys/firmware",
};

static const char *const bundle_read_only[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"};

/* Options are one string here and are split at the commas. */
static const struct {
	const char *target, *type, *options;
} bundle_mounts[] = {
	{"/proc", "proc", "nosuid,noexec,nodev"},
	{"/dev", "tmpfs", "nosuid,strictatime,mode=755,size=16m,nr_inodes=4k"},
	{"/dev/pts", "devpts", BUNDLE_DEVPTS ",gid=5"},
	{"/dev/shm", "tmpfs", "nosuid,noexec,nodev,mode=1777,size=64m"},
	{"/dev/mqueue", "mqueue", "nosuid,noexec,nodev"},
	{"/sys", "sysfs", "nosuid,noexec,nodev,ro"},
};

static json_t *bundle_strings(const char *const *words, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, json_string(words[i]));
	return list;
}

static json_t *bundle_split(const char *words)
{
	json_t *list = json_array();

	while (*words) {
		size_t n = strcspn(words, ",");

		(void)json_array_append_new(list, json_stringn(words, n));
		words += n + (words[n] == ',');
	}
	return list;
}

static json_t *bundle_args(const struct cube_local_bundle *b)
{
	static const char *const with[] = {BUNDLE_AGENT, "--listen-fd", "3", "--run-dir",
					   "/dev/.cube", "--cgroup-fd", "4"};

	return bundle_strings(with, b->cgroup_fd ? CUBE_COUNT(with) : CUBE_COUNT(with) - 2);
}

/* Of cube-init alone: a job's environment comes whole with its start. */
static const char *const bundle_env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};

static json_t *bundle_limit(const char *type, uint64_t soft, uint64_t hard)
{
	return json_pack("{s:s,s:I,s:I}", "type", type, "soft", (json_int_t)soft, "hard", (json_int_t)hard);
}

static json_t *bundle_limits(const struct cube_local_bundle *b)
{
	json_t *list = json_array();
	struct rlimit own = {.rlim_max = BUNDLE_NOFILE_HARD};
	uint64_t hard;

	(void)getrlimit(RLIMIT_NOFILE, &own);
	hard = own.rlim_max < BUNDLE_NOFILE_HARD ? own.rlim_max : BUNDLE_NOFILE_HARD;
	(void)json_array_append_new(
		list,
		bundle_limit("RLIMIT_NOFILE", hard < BUNDLE_NOFILE_SOFT ? hard : BUNDLE_NOFILE_SOFT, hard));
	(void)json_array_append_new(list, bundle_limit("RLIMIT_CORE", 0, 0));
	if (b->nproc)
		(void)json_array_append_new(list, bundle_limit("RLIMIT_NPROC", b->nproc, b->nproc));
	return list;
}

static json_t *bundle_process(const struct cube_local_bundle *b)
{
	json_t *caps = json_object();
	static const char *const sets[] = {"bounding", "effective", "permitted"};

	for (size_t i = 0; i < CUBE_COUNT(sets); i++)
		(void)json_object_set_new(caps, sets[i],
					  bundle_strings(bundle_caps, CUBE_COUNT(bundle_caps)));
	return json_pack("{s:{s:i,s:i},s:o,s:o,s:s,s:o,s:o,s:b,s:i}", "user", "uid", 0, "gid", 0, "args",
			 bundle_args(b), "env", bundle_strings(bundle_env, CUBE_COUNT(bundle_env)), "cwd",
			 "/", "capabilities", caps, "rlimits", bundle_limits(b), "noNewPrivileges", 1,
			 "oomScoreAdj", BUNDLE_OOM_SCORE);
}

static json_t *bundle_bind(const char *source, const char *target, bool read_only)
{
	return json_pack("{s:s,s:s,s:s,s:[s,s,s,s]}", "destination", target, "type", "bind", "source", source,
			 "options", "bind", "nosuid", "nodev", read_only ? "ro" : "rw");
}

/* Where there is one id inside, there is no group `tty` to give terminals to. */
static const char *bundle_options(const struct cube_local_bundle *b, size_t i)
{
	return b->ids->count == 1 && strcmp(bundle_mounts[i].type, "devpts") == 0 ? BUNDLE_DEVPTS
										  : bundle_mounts[i].options;
}

static json_t *bundle_all_mounts(const struct cube_local_bundle *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < CUBE_COUNT(bundle_mounts); i++)
		(void)json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:o}", "destination", bundle_mounts[i].target, "type",
					bundle_mounts[i].type, "source", bundle_mounts[i].type, "options",
					bundle_split(bundle_options(b, i))));
	(void)json_array_append_new(list, bundle_bind(b->agent, BUNDLE_AGENT, true));
	for (unsigned i = 0; i < b->n_binds; i++)
		(void)json_array_append_new(
			list, bundle_bind(b->binds[i].source, b->binds[i].target, b->binds[i].read_only));
	return list;
}

static json_t *bundle_map(uint32_t base, uint32_t count)
{
	return json_pack("[{s:i,s:I,s:I}]", "containerID", 0, "hostID", (json_int_t)base, "size",
			 (json_int_t)count);
}

static json_t *bundle_linux(const struct cube_local_bundle *b)
{
	json_t *spaces = json_array();

	for (size_t i = 0; i < CUBE_COUNT(bundle_namespaces); i++)
		(void)json_array_append_new(spaces, json_pack("{s:s}", "type", bundle_namespaces[i]));
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "namespaces", spaces, "uidMappings",
			 bundle_map(b->ids->uid, b->ids->count), "gidMappings",
			 bundle_map(b->ids->gid, b->ids->count), "maskedPaths",
			 bundle_strings(bundle_masked, CUBE_COUNT(bundle_masked)), "readonlyPaths",
			 bundle_strings(bundle_read_only, CUBE_COUNT(bundle_read_only)), "seccomp",
			 cube_local_seccomp());
}

static json_t *bundle_filter(const struct cube_local_bundle *b)
{
	return json_pack("{s:s}", CUBE_FILTER_ANNOTATION, b->filter);
}

int cube_local_bundle_write(const struct cube_local_bundle *b, struct cube_buf *out, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o =
		json_pack("{s:s,s:o,s:{s:s,s:b},s:s,s:o,s:o}", "ociVersion", "1.0.2", "process",
			  bundle_process(b), "root", "path", b->root, "readonly", 0, "hostname", b->hostname,
			  "mounts", bundle_all_mounts(b), "linux", bundle_linux(b));
	int rc;

	if (!o || (b->filter && json_object_set_new(o, "annotations", bundle_filter(b)) < 0))
		return cube_fail(err, -ENOMEM, "cannot make the configuration of %s", b->hostname);
	rc = cube_json_write(o, out);
	return rc < 0 ? cube_fail(err, rc, "cannot write the configuration of %s", b->hostname) : 0;
}
