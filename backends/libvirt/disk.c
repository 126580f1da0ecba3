/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of machines: qcow2 files, each over another one or empty. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/spawn.h"

#define DISK_MS      60000
#define DISK_SAYS    ((size_t)4096)
#define DISK_SIZE_AT 24
#define DISK_HEAD    32

/* The header begins with its magic number; the size is where the format has it, the highest byte first. */
int libvirt_disk_size(const char *path, uint64_t *ret)
{
	static const unsigned char magic[] = {'Q', 'F', 'I', 0xfb};
	unsigned char head[DISK_HEAD];
	cube_auto_fd fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t size = 0;

	if (fd < 0)
		return -errno;
	if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head, magic, sizeof(magic)) != 0)
		return -EINVAL;
	for (size_t i = DISK_SIZE_AT; i < DISK_HEAD; i++)
		size = size << 8 | head[i];
	*ret = size;
	return 0;
}

int libvirt_disk_make(const char *path, const char *base, uint64_t size, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(DISK_SAYS);
	char bytes[32], why[200];
	const char *argv[16] = {"qemu-img", "create", "-q", "-f", "qcow2"};
	size_t n = 5;
	uint64_t least = 0;
	int status = 0, rc;

	if (*base != '\0' && libvirt_disk_size(base, &least) == 0 && size < least)
		size = least;
	(void)snprintf(bytes, sizeof(bytes), "%" PRIu64, size);
	if (*base != '\0') {
		argv[n++] = "-b";
		argv[n++] = base;
		argv[n++] = "-F";
		argv[n++] = "qcow2";
		argv[n++] = "-u"; /* it may be in use */
	}
	argv[n++] = path;
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
