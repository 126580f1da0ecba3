/* SPDX-License-Identifier: Apache-2.0 */
/* net=open by a helper outside. */
#include "backends/local/net.h"

#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/spawn.h"
#include "backends/local/find.h"
#include "backends/local/keep.h"
#include "backends/local/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define NET_READY_MS  10000
#define NET_TUN_MAJOR 10
#define NET_TUN_MINOR 200

/* Descriptor 3 of the helper is the network namespace, 4 a pipe to which it writes something when it is
 * ready, 5 a file for its complaints. */
struct cube_local_net_kind {
	const char *name;
	const char *resolv;
	const char *argv[24]; /* behind the program */
};

static const struct cube_local_net_kind net_kinds[] = {
	{.name = "pasta",
	 .resolv = "nameserver 169.254.1.1\n",
	 /* Its pid file is written when it has connected everything. */
	 .argv = {"--quiet",      "--foreground",
		  "--config-net", "--netns-only",
		  "--netns",      "/proc/self/fd/3",
		  "--pid",        "/proc/self/fd/4",
		  "--log-file",   "/proc/self/fd/5",
		  "--no-map-gw",  "--tcp-ports",
		  "none",         "--udp-ports",
		  "none",         "--tcp-ns",
		  "none",         "--udp-ns",
		  "none",         "--dns-forward",
		  "169.254.1.1",  NULL}},
	{.name = "slirp4netns",
	 .resolv = "nameserver 10.0.2.3\n",
	 .argv = {"--configure", "--mtu=65520", "--disable-host-loopback", "--ready-fd=4",
		  "--netns-type=path", "/proc/self/fd/3", "eth0", NULL}},
};

const char *cube_local_net_resolv(const struct cube_local_net *n)
{
	return n->kind ? n->kind->resolv : "";
}

/* /dev/net/tun is for root alone on some machines; the helper is not. */
static int net_make_tun(void)
{
	cube_auto_fd dir = cube_local_mnt_tmpfs("4k", NULL);
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_NODEV};

	if (dir < 0 || mount_setattr(dir, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
	    mknodat(dir, "tun", S_IFCHR | 0600, makedev(NET_TUN_MAJOR, NET_TUN_MINOR)) < 0 ||
	    fchmodat(dir, "tun", 0666, 0) < 0)
		return -1;
	return cube_local_keep(dir) < 0 ? -1 : cube_steal_fd(&dir);
}

void cube_local_net_open(struct cube_local_net *n, bool trusted)
{
	n->kind = NULL;
	n->tun = -1;
	n->why[0] = 0;
	if (access("/dev/net/tun", trusted ? F_OK : R_OK | W_OK) < 0) {
		(void)snprintf(n->why, sizeof(n->why),
			       "/dev/net/tun is missing or not for this user: modprobe tun%s",
			       trusted ? "" : ", chmod 666 /dev/net/tun");
		return;
	}
	for (size_t i = 0; !n->kind && i < CUBE_COUNT(net_kinds); i++)
		if (cube_local_find_program(net_kinds[i].name, n->path, sizeof(n->path)))
			n->kind = &net_kinds[i];
	if (!n->kind)
		(void)snprintf(n->why, sizeof(n->why),
			       "neither pasta nor slirp4netns is installed: apt-get install passt");
	else if (trusted)
		n->tun = net_make_tun();
}

void cube_local_net_close(struct cube_local_net *n)
{
	cube_local_keep_end(cube_steal_fd(&n->tun));
}

/* ---- the helper ---- */

struct net_setup {
	int tun, userns;
	struct cube_local_doors doors;
};

/* In the child, system calls only. Into the sandbox's groups, with which it ends; into its user namespace:
 * all rights there, none here. */
static int net_setup(void *ctx)
{
	const struct net_setup *s = ctx;
	int rc = cube_local_doors_enter(&s->doors);

	if (rc < 0)
		return rc;
	if (s->tun >= 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			return -errno;
		rc = cube_local_mnt_attach(s->tun, "/dev/net");
		if (rc < 0)
			return rc;
	}
	if (setns(s->userns, CLONE_NEWUSER) < 0)
		return -errno;
	/* Refused where the user has no ids but his own, and no groups to lose then. */
	(void)syscall(SYS_setgroups, 0, NULL);
	if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int net_open_ns(pid_t init, const char *which)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)init, which);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Until it says something, ends or takes too long. */
static int net_await(int ready, pid_t pid, struct cube_cancel *cancel)
{
	struct pollfd p[] = {{.fd = ready, .events = POLLIN},
			     {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	char text[32];
	int n = poll(p, CUBE_COUNT(p), NET_READY_MS);

	if (n > 0 && p[0].revents && read(ready, text, sizeof(text)) > 0)
		return 0;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return n == 0 ? -ETIMEDOUT : n > 0 && p[1].revents ? -EINTR : -EIO;
}

static int net_failed(const struct cube_local_net *n, int rc, int log, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(65536);
	char path[64], why[300];

	if (rc == -EINTR)
		return cube_fail(err, rc, "interrupted");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", log);
	(void)cube_file_read(AT_FDCWD, path, &text);
	cube_spawn_describe(0x100, &text, why, sizeof(why));
	cube_buf_done(&text);
	return cube_fail(err, rc, "net=open: %s could not connect the sandbox: %s", n->kind->name,
			 rc == -ETIMEDOUT ? "no answer in time" : why);
}

static int net_run(const struct cube_local_net *n, const int fds[3], struct net_setup *setup, int ready,
		   struct cube_cancel *cancel, pid_t *ret_pid, struct cube_err *err)
{
	const char *argv[CUBE_COUNT(n->kind->argv) + 1] = {n->path};
	const struct cube_spawn s = {.argv = argv,
				     .cwd = -1,
				     .fds = fds,
				     .nfds = 3,
				     .in = -1,
				     .out = -1,
				     .setup = net_setup,
				     .setup_ctx = setup,
				     .group = setup->doors.v2 >= 0 ? &setup->doors.v2 : NULL};
	int ready_end = fds[1], rc;
	pid_t pid;

	for (size_t i = 0; n->kind->argv[i]; i++)
		argv[i + 1] = n->kind->argv[i];
	rc = cube_spawn_start(&s, &pid, err);
	close(ready_end); /* ours: when the helper ends, the pipe does */
	if (rc < 0)
		return rc;
	rc = net_await(ready, pid, cancel);
	if (rc < 0)
		return net_failed(n, rc, fds[2], err);
	*ret_pid = pid;
	return 0;
}

int cube_local_net_start(const struct cube_local_net *n, pid_t init, const struct cube_local_cgroups *groups,
			 const char *id, struct cube_cancel *cancel, pid_t *ret_pid, struct cube_err *err)
{
	cube_auto_fd netns = net_open_ns(init, "net");
	cube_auto_fd userns = net_open_ns(init, "user");
	cube_auto_fd log = memfd_create("cubefs-net", MFD_CLOEXEC);
	cube_auto_fd tun = n->tun >= 0 ? cube_local_mnt_clone(n->tun, "") : -1;
	cube_auto_fd ready = -1;
	struct net_setup setup = {.tun = tun, .userns = userns};
	int ends[2], rc;

	if (netns < 0 || userns < 0 || log < 0 || (n->tun >= 0 && tun < 0) || pipe2(ends, O_CLOEXEC) < 0)
		return cube_fail(err, -EIO, "net=open: cannot reach the sandbox's namespaces");
	ready = ends[0];
	(void)fchmod(ends[1], 0666); /* opened anew, by name, by one who is nobody here */
	rc = cube_local_group_doors(groups, id, &setup.doors, err);
	if (rc < 0) {
		close(ends[1]);
		return rc;
	}
	rc = net_run(n, (const int[]){netns, ends[1], log}, &setup, ready, cancel, ret_pid, err);
	cube_local_doors_close(&setup.doors);
	return rc;
}
