/* SPDX-License-Identifier: Apache-2.0 */
/* A machine: its names, its state at libvirt, its directory here. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"

#define BOX_HEX  "0123456789abcdef"
#define BOX_ID   16 /* digits of ours */
#define BOX_UUID (VIR_UUID_STRING_BUFLEN - 1)

bool libvirt_is_ours(const char *id)
{
	return strlen(id) == BOX_ID && strspn(id, BOX_HEX) == BOX_ID;
}

int libvirt_ref(const char *id, char out[LIBVIRT_REF], struct cube_err *err)
{
	bool uuid = strlen(id) == BOX_UUID && strspn(id, BOX_HEX "-") == BOX_UUID;

	if (!uuid && !libvirt_is_ours(id))
		return cube_fail(err, -ENOENT, "there is no sandbox %s", id);
	(void)snprintf(out, LIBVIRT_REF, "%s%s", uuid ? "" : LIBVIRT_NAME, id);
	return 0;
}

void libvirt_id_of(virDomainPtr dom, char out[CUBE_ID_MAX + 1])
{
	const char *name = virDomainGetName(dom);
	size_t len = strlen(LIBVIRT_NAME);
	char uuid[VIR_UUID_STRING_BUFLEN] = "";

	if (name != NULL && strncmp(name, LIBVIRT_NAME, len) == 0 && libvirt_is_ours(name + len)) {
		(void)snprintf(out, CUBE_ID_MAX + 1, "%s", name + len);
		return;
	}
	(void)virDomainGetUUIDString(dom, uuid);
	(void)snprintf(out, CUBE_ID_MAX + 1, "%s", uuid);
}

/* ---- its state ---- */

enum cube_state libvirt_state_of(int state)
{
	switch (state) {
	case VIR_DOMAIN_RUNNING:
	case VIR_DOMAIN_BLOCKED:
	case VIR_DOMAIN_SHUTDOWN: /* it is being shut down */
		return CUBE_IS_RUNNING;
	case VIR_DOMAIN_PAUSED:
	case VIR_DOMAIN_PMSUSPENDED:
		return CUBE_IS_PAUSED;
	default:
		return CUBE_IS_STOPPED;
	}
}

static int box_ask_state(struct libvirt_answer *a)
{
	int state = VIR_DOMAIN_NOSTATE, reason = 0;

	if (virDomainGetState(a->dom, &state, &reason, 0) < 0)
		return -1;
	a->number[0] = (uint64_t)state;
	a->number[1] = (uint64_t)reason;
	return 0;
}

int libvirt_box_state(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel,
		      enum cube_state *ret, struct cube_err *err)
{
	struct libvirt_answer a = {0};
	int rc = libvirt_do(v, &(struct libvirt_ask){.fn = box_ask_state, .id = id, .what = "look at"},
			    cancel, &a, err);

	if (rc == 0)
		*ret = libvirt_state_of((int)a.number[0]);
	return rc;
}

static int box_ask_xml(struct libvirt_answer *a)
{
	a->got = virDomainGetXMLDesc(a->dom, 0);
	return a->got != NULL ? 0 : -1;
}

int libvirt_box_note(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel,
		     struct libvirt_note *ret, struct cube_err *err)
{
	struct libvirt_answer a = {.conn = NULL};
	int rc = libvirt_do(v, &(struct libvirt_ask){.fn = box_ask_xml, .id = id, .what = "look at"}, cancel,
			    &a, err);

	if (rc == 0)
		rc = libvirt_note_read(a.got, ret, err);
	cube_free(a.got);
	return rc;
}

/* ---- here ---- */

int libvirt_box_path(const struct cube_libvirt *v, const char *id, const char *name, char out[PATH_MAX],
		     struct cube_err *err)
{
	int n = snprintf(out, PATH_MAX, "%s/cubes/%s%s%s", v->dir, id, *name != '\0' ? "/" : "", name);

	return n < 0 || n >= PATH_MAX
		       ? cube_fail(err, -ENAMETOOLONG, "%.200s...: the path is too long", v->dir)
		       : 0;
}

/* QEMU's user gets to its files, and sees no other's. */
int libvirt_box_make(const struct cube_libvirt *v, const char *id, struct cube_err *err)
{
	char path[PATH_MAX];
	int rc = libvirt_box_path(v, id, "", path, err);

	if (rc < 0)
		return rc;
	rc = cube_file_mkdir_path(path, 0711);
	return rc < 0 ? cube_fail(err, rc, "the directory of sandbox %s in %.150s: %s", id, v->dir,
				  cube_errno_text(rc))
		      : 0;
}

int libvirt_box_forget(const struct cube_libvirt *v, const char *id, struct cube_err *err)
{
	char path[PATH_MAX];
	cube_auto_fd cubes = -1;
	int rc;

	(void)snprintf(path, sizeof(path), "%s/cubes", v->dir);
	cubes = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (cubes < 0 && errno == ENOENT)
		return 0;
	rc = cubes < 0 ? -errno : cube_file_remove_tree(cubes, id);
	return rc < 0 ? cube_fail(err, rc, "cannot remove the files of sandbox %s in %.150s: %s", id, path,
				  cube_errno_text(rc))
		      : 0;
}
