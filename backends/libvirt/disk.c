/* SPDX-License-Identifier: Apache-2.0 */
/* Disks of machines: qcow2 files, each over another one or empty. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/spawn.h"

#define DISK_MS        60000
#define DISK_SAYS      ((size_t)4096)
#define DISK_UNDER_AT  8  /* where in the file the name of what is under it is */
#define DISK_UNDER_LEN 16 /* and how long */
#define DISK_SIZE_AT   24
#define DISK_HEAD      32

/* A number of the header, the highest byte first. */
static uint64_t disk_number(const unsigned char head[DISK_HEAD], size_t from, size_t to)
{
	uint64_t n = 0;

	for (size_t i = from; i < to; i++)
		n = n << 8 | head[i];
	return n;
}

/* The header, which begins with its magic number. A descriptor of the file. */
static int disk_open(int dir, const char *file, unsigned char head[DISK_HEAD])
{
	static const unsigned char magic[] = {'Q', 'F', 'I', 0xfb};
	cube_auto_fd fd = openat(dir, file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, DISK_HEAD, 0);

	if (n < 0)
		return -errno;
	return n == DISK_HEAD && memcmp(head, magic, sizeof(magic)) == 0 ? cube_steal_fd(&fd) : -EINVAL;
}

int libvirt_disk_size(const char *path, uint64_t *ret)
{
	unsigned char head[DISK_HEAD] = {0};
	cube_auto_fd fd = disk_open(AT_FDCWD, path, head);

	if (fd < 0)
		return fd;
	*ret = disk_number(head, DISK_SIZE_AT, DISK_HEAD);
	return 0;
}

int libvirt_disk_under(int dir, const char *file, char out[PATH_MAX])
{
	unsigned char head[DISK_HEAD] = {0};
	cube_auto_fd fd = disk_open(dir, file, head);
	uint64_t at, len;
	ssize_t n;

	if (fd < 0)
		return fd;
	at = disk_number(head, DISK_UNDER_AT, DISK_UNDER_LEN);
	len = at == 0 ? 0 : disk_number(head, DISK_UNDER_LEN, DISK_UNDER_LEN + 4);
	if (len >= PATH_MAX || at > INT64_MAX)
		return -EINVAL;
	n = pread(fd, out, len, (off_t)at);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return (uint64_t)n == len ? 0 : -EINVAL;
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
	if (rc == 0 && chmod(path, 0600) < 0) /* libvirt gives it to QEMU's user */
		rc = cube_fail_errno(err, "disk %.120s", path);
	return rc;
}
