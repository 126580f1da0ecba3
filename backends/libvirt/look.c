/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen of a machine from outside. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/base/alloc.h"

#define LOOK_MILLI 1000

/* ---- one ---- */

static int look_ask(struct libvirt_answer *a)
{
	int state = VIR_DOMAIN_NOSTATE, reason = 0;

	if (virDomainGetState(a->dom, &state, &reason, 0) < 0)
		return -1;
	a->number[0] = (uint64_t)state;
	a->number[1] = (uint64_t)reason;
	a->got = virDomainGetXMLDesc(a->dom, 0);
	return a->got != NULL ? 0 : -1;
}

/* Why it does not run. */
static const char *look_reason(int state, int reason)
{
	if (state == VIR_DOMAIN_CRASHED)
		return "crashed";
	switch (reason) {
	case VIR_DOMAIN_SHUTOFF_FAILED:
	case VIR_DOMAIN_SHUTOFF_CRASHED:
		return "lost";
	case VIR_DOMAIN_SHUTOFF_DESTROYED:
		return "stopped";
	default:
		return "exited";
	}
}

static void look_info(int state, int reason, const struct libvirt_note *n, struct cube_info *info)
{
	info->state = libvirt_state_of(state);
	(void)snprintf(info->uid, sizeof(info->uid), "%s", n->uid);
	(void)snprintf(info->name, sizeof(info->name), "%s", n->name);
	(void)snprintf(info->template, sizeof(info->template), "%s", n->template);
	info->created_wall = n->created;
	info->limits = (struct cube_limits){
		.memory = n->memory, .disk = n->disk, .cpus_milli = n->cpus * LOOK_MILLI};
	info->net = n->net;
	if (info->state == CUBE_IS_STOPPED)
		(void)snprintf(info->reason, sizeof(info->reason), "%s", look_reason(state, reason));
}

int libvirt_inspect(struct cube_backend *base, const char *id, struct cube_info *ret, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct libvirt_answer a = {.conn = NULL};
	struct libvirt_note note = {.labels = NULL};
	struct cube_info info = {.state = CUBE_IS_GONE};
	int rc = libvirt_do(v, &(struct libvirt_ask){.fn = look_ask, .id = id, .what = "look at"}, NULL, &a,
			    err);

	if (rc < 0)
		return rc;
	rc = libvirt_note_read(a.got, &note, err);
	if (rc == 0) {
		(void)snprintf(info.id, sizeof(info.id), "%s", id);
		look_info((int)a.number[0], (int)a.number[1], &note, &info);
		*ret = info;
		libvirt_note_done(&note);
	}
	cube_free(a.got);
	return rc;
}

/* ---- all ---- */

struct look_one {
	char id[CUBE_ID_MAX + 1];
	char name[CUBE_ID_MAX + 1]; /* the domain's own, where it fits */
	int state, reason;
	char *xml;
};

struct look_all {
	struct look_one *one;
	size_t n;
};

static void look_done(void *ctx)
{
	struct look_all *all = ctx;

	for (size_t i = 0; i < all->n; i++)
		cube_free(all->one[i].xml);
	cube_free(all->one);
	cube_free(all);
}

/* One that goes meanwhile is left out. */
static void look_take(struct look_all *all, virDomainPtr dom)
{
	struct look_one *one = &all->one[all->n];
	const char *name = virDomainGetName(dom);

	one->xml = virDomainGetXMLDesc(dom, 0);
	if (one->xml == NULL || virDomainGetState(dom, &one->state, &one->reason, 0) < 0) {
		cube_free(cube_steal(one->xml));
		return;
	}
	libvirt_id_of(dom, one->id);
	if (name != NULL && strlen(name) < sizeof(one->name))
		(void)snprintf(one->name, sizeof(one->name), "%s", name);
	all->n++;
}

static int look_list(struct libvirt_answer *a)
{
	struct look_all *all = a->ctx;
	virDomainPtr *doms = NULL;
	int n = virConnectListAllDomains(a->conn, &doms, 0);

	if (n < 0)
		return -1;
	all->one = cube_calloc((size_t)n + 1, sizeof(*all->one));
	for (int i = 0; i < n; i++) {
		if (all->one != NULL)
			look_take(all, doms[i]);
		(void)virDomainFree(doms[i]);
	}
	cube_free(doms);
	a->got = cube_strdup("");
	return all->one != NULL && a->got != NULL ? 0 : -1;
}

static void look_tell(const struct look_one *one, void (*each)(void *ctx, const struct cube_info *info),
		      void *ctx)
{
	struct cube_info info = {.state = CUBE_IS_GONE};
	struct libvirt_note note = {.labels = NULL};

	if (libvirt_note_read(one->xml, &note, NULL) < 0)
		return;
	look_info(one->state, one->reason, &note, &info);
	(void)snprintf(info.id, sizeof(info.id), "%s", one->id);
	/* A copy of one of ours has its note, not its name. */
	if (strcmp(info.uid, one->id) != 0)
		info.uid[0] = '\0';
	if (info.uid[0] == '\0')
		(void)snprintf(info.name, sizeof(info.name), "%s", one->name);
	info.labels = info.uid[0] != '\0' ? note.labels : NULL;
	each(ctx, &info);
	libvirt_note_done(&note);
}

/* The list belongs to the question, which outlives us where we are cancelled: so it is taken out only when it is done. */
int libvirt_list(struct cube_backend *base, struct cube_cancel *cancel,
		 void (*each)(void *ctx, const struct cube_info *info), void *ctx, struct cube_err *err)
{
	struct libvirt_answer a = {.conn = NULL};
	struct look_all *all = cube_calloc(1, sizeof(*all));
	int rc;

	if (all == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = libvirt_do(
		libvirt_of(base),
		&(struct libvirt_ask){
			.fn = look_list, .ctx = all, .ctx_done = look_done, .what = "list the machines"},
		cancel, &a, err);
	if (rc < 0)
		return rc;
	all = a.ctx;
	for (size_t i = 0; i < all->n; i++)
		look_tell(&all->one[i], each, ctx);
	cube_free(a.got);
	look_done(all);
	return 0;
}

/* ---- what it takes ---- */

static int look_usage(struct libvirt_answer *a)
{
	virDomainMemoryStatStruct stats[VIR_DOMAIN_MEMORY_STAT_NR];
	virDomainInfo info;
	int n;

	if (virDomainGetInfo(a->dom, &info) < 0)
		return -1;
	a->number[0] = info.cpuTime;
	a->number[1] = UINT64_MAX;
	n = virDomainMemoryStats(a->dom, stats, VIR_DOMAIN_MEMORY_STAT_NR, 0);
	for (int i = 0; i < n; i++)
		if (stats[i].tag == VIR_DOMAIN_MEMORY_STAT_RSS)
			a->number[1] = (uint64_t)stats[i].val << 10;
	return 0;
}

static uint64_t look_disk(const struct cube_libvirt *v, const char *id)
{
	static const char *const names[] = {LIBVIRT_ROOT ".qcow2", LIBVIRT_WORKSPACE ".qcow2"};
	uint64_t bytes = 0;

	for (size_t i = 0; i < CUBE_COUNT(names); i++) {
		char path[PATH_MAX];
		struct stat st;

		if (libvirt_box_path(v, id, names[i], path, NULL) == 0 && stat(path, &st) == 0)
			bytes += (uint64_t)st.st_blocks * 512;
	}
	return bytes;
}

int libvirt_usage(struct cube_backend *base, const char *id, struct cube_usage *ret, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct libvirt_answer a = {.conn = NULL};
	int rc = libvirt_do(v, &(struct libvirt_ask){.fn = look_usage, .id = id, .what = "measure"}, NULL, &a,
			    err);

	if (rc < 0)
		return rc;
	*ret = (struct cube_usage){.pids = UINT64_MAX,
				   .cpu_ns = a.number[0],
				   .memory = a.number[1],
				   .disk = libvirt_is_ours(id) ? look_disk(v, id) : UINT64_MAX,
				   .oom_kills = UINT64_MAX,
				   .net_in = UINT64_MAX,
				   .net_out = UINT64_MAX};
	return 0;
}

int libvirt_access(struct cube_backend *base, const char *id, void (*each)(void *ctx, const char *line),
		   void *ctx, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	char ref[LIBVIRT_REF], line[LIBVIRT_REF + sizeof(v->uri) + 32];
	int rc = libvirt_ref(id, ref, err);

	if (rc < 0)
		return rc;
	(void)snprintf(line, sizeof(line), "libvirt %s domain %s", v->uri, ref);
	each(ctx, line);
	return 0;
}
