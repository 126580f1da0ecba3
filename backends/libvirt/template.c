/* SPDX-License-Identifier: Apache-2.0 */
/* What machines are made of: a directory TEMPLATES/NAME with `disk.qcow2`, or `kernel` and `initrd`, or all of them, and
 * `info.json` about it. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/json.h"
#include "backends/base/name.h"

#define TEMPLATE_INFO ((size_t)1 << 20)

static int template_file(const char *dir, const char *name, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

	if (n < 0 || n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (faccessat(AT_FDCWD, out, F_OK, 0) < 0)
		*out = '\0';
	return 0;
}

static int template_info(const char *dir, const char *name, struct libvirt_template *t, struct cube_err *err)
{
	cube_auto(cube_json_auto) json_t *o = NULL;
	struct cube_buf text = CUBE_BUF(TEMPLATE_INFO);
	char path[PATH_MAX + 16];
	int rc;

	(void)snprintf(path, sizeof(path), "%s/info.json", dir);
	rc = cube_file_read(AT_FDCWD, path, &text);
	if (rc == 0)
		rc = cube_json_parse(cube_buf_str(&text), text.len, path, &o, err);
	else if (rc == -ENOENT)
		rc = cube_fail(err, rc, "there is no template %s: import one", name);
	else
		rc = cube_fail(err, rc, "%.200s: %s", path, cube_errno_text(rc));
	cube_buf_done(&text);
	if (rc < 0)
		return rc;
	(void)snprintf(t->arch, sizeof(t->arch), "%.15s", cube_json_str(o, "arch", "x86_64"));
	(void)snprintf(t->words, sizeof(t->words), "%.511s", cube_json_str(o, "cmdline", ""));
	t->uefi = strcmp(cube_json_str(o, "firmware", "bios"), "uefi") == 0;
	return 0;
}

int libvirt_template_find(const struct cube_libvirt *v, const char *name, struct libvirt_template *ret,
			  struct cube_err *err)
{
	struct libvirt_template t = {.uefi = false};
	char dir[PATH_MAX];
	int rc = 0;

	if (!cube_name_template_ok(name))
		return cube_fail(err, -ENOENT, "there is no template %s", name);
	if ((size_t)snprintf(dir, sizeof(dir), "%s/%s", v->templates, name) >= sizeof(dir))
		return cube_fail(err, -ENAMETOOLONG, "%.200s...: the path is too long", v->templates);
	(void)snprintf(t.name, sizeof(t.name), "%s", name);
	rc = template_info(dir, name, &t, err);
	if (rc < 0)
		return rc;
	rc = template_file(dir, "disk.qcow2", t.disk);
	if (rc == 0)
		rc = template_file(dir, "kernel", t.kernel);
	if (rc == 0)
		rc = template_file(dir, "initrd", t.initrd);
	if (rc < 0)
		return cube_fail(err, rc, "template %s: the path of its files is too long", name);
	if (t.disk[0] == '\0' && t.kernel[0] == '\0')
		return cube_fail(err, -EINVAL, "template %s has neither a disk nor a kernel: import it again",
				 name);
	*ret = t;
	return 0;
}
