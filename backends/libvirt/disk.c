/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of machines: qcow2 files, each over another one or empty. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/spawn.h"

#define DISK_MS   60000
#define DISK_SAYS ((size_t)4096)

int libvirt_disk_make(const char *path, const char *base, uint64_t size, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(DISK_SAYS);
	char bytes[32], why[200];
	const char *argv[12] = {"qemu-img", "create", "-q", "-f", "qcow2"};
	size_t n = 5;
	int status = 0, rc;

	(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, size);
	if (*base != '\0') {
		argv[n++] = "-b";
		argv[n++] = base;
		argv[n++] = "-F";
		argv[n++] = "qcow2";
	}
	argv[n++] = path;
	if (size > 0)
		argv[n++] = bytes;
	rc = cube_spawn_run(
		&(struct cube_spawn){
			.argv = argv, .cwd = -1, .in = -1, .out = -1, .text = &text, .timeout_ms = DISK_MS},
		cancel, &status, err);
	if (rc == -ENOENT)
		rc = cube_fail(err, -EOPNOTSUPP, "qemu-img is not installed: install qemu-utils");
	if (rc == 0 && status != 0) {
		cube_spawn_describe(status, &text, why, sizeof(why));
		rc = cube_fail(err, strstr(why, "No space") != NULL ? -ENOSPC : -EIO,
			       "disk %.120s: qemu-img: %s", path, why);
	}
	cube_buf_done(&text);
	return rc;
}
