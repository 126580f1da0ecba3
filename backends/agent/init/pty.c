/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals by devpts. */
#include "backends/agent/init/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

static int pts_dir = -1;
static int dev_dir = -1;

void init_pty_setup(void)
{
	struct statfs st;

	pts_dir = open("/dev/pts", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pts_dir >= 0 && (fstatfs(pts_dir, &st) < 0 || (unsigned long)st.f_type != DEVPTS_SUPER_MAGIC)) {
		(void)close(pts_dir);
		pts_dir = -1;
	}
	dev_dir = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool init_pty_there(void)
{
	return pts_dir >= 0;
}

void init_pty_size(int master, uint16_t rows, uint16_t cols)
{
	struct winsize size = {.ws_row = rows, .ws_col = cols};

	(void)ioctl(master, TIOCSWINSZ, &size);
}

/* The multiplexer of this very file system; where its mode keeps us out, which it does by default, the device
 * in /dev, if it is one. */
static int pty_multiplexer(void)
{
	int fd = openat(pts_dir, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd;
	if (fstatat(dev_dir, "ptmx", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
	    st.st_rdev != makedev(5, 2)) {
		errno = EACCES;
		return -1;
	}
	return openat(dev_dir, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

int init_pty_open(uint16_t rows, uint16_t cols)
{
	int unlocked = 0;
	int fd = pts_dir < 0 ? -1 : pty_multiplexer();

	if (pts_dir < 0)
		return -ENODEV;
	if (fd < 0)
		return -errno;
	if (ioctl(fd, TIOCSPTLCK, &unlocked) < 0) {
		int r = -errno;

		(void)close(fd);
		return r;
	}
	init_pty_size(fd, rows, cols);
	return fd;
}
