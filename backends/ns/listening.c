/* SPDX-License-Identifier: Apache-2.0 */
/* What listens in a sandbox, by the kernel's tables of its network namespace, and which of its programs does.
 * Nothing here asks the inside. */
#include "backends/ns/ns.h"

#include "backends/base/alloc.h"
#include "backends/base/macros.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTEN_LINES  100000u /* of a table that are looked at */
#define LISTEN_FDS    200000u /* of all processes together */
#define TCP_LISTEN    0x0a
#define UNIX_ACCEPTS  0x10000
#define UNIX_STREAM   1
#define LISTEN_PREFIX "socket:["

struct listening {
	struct cube_listener *all;
	unsigned long *inodes; /* of each */
	unsigned n;
	unsigned fds; /* looked at */
};

static void listening_add(struct listening *l, const struct cube_listener *one, unsigned long inode)
{
	if (l->n == CUBE_LISTENERS_MAX)
		return;
	l->inodes[l->n] = inode;
	l->all[l->n++] = *one;
}

/* ---- the kernel's tables ---- */

/* Words of 32 bits, each as this machine writes the number that lies in memory. */
static bool listening_address(const char *hex, char out[64])
{
	size_t words = strlen(hex) / 8;
	uint32_t raw[4];
	char word[9] = "";

	if (words != 1 && words != 4)
		return false;
	for (size_t i = 0; i < words; i++) {
		memcpy(word, hex + 8 * i, 8);
		raw[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	return inet_ntop(words == 1 ? AF_INET : AF_INET6, raw, out, 64) != NULL;
}

/* SL: ADDRESS:PORT REMOTE STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE ... */
static void listening_tcp_line(struct listening *l, const char *line)
{
	struct cube_listener one = {.target = {.kind = CUBE_TARGET_TCP}};
	unsigned port, state;
	unsigned long inode;
	char hex[40];

	if (sscanf(line, " %*u: %39[0-9A-F]:%4x %*s %2x %*s %*s %*s %*u %*u %lu", hex, &port, &state,
		   &inode) != 4 ||
	    state != TCP_LISTEN || !listening_address(hex, one.address))
		return;
	one.target.port = (uint16_t)port;
	listening_add(l, &one, inode);
}

/* NUM: REFS PROTOCOL FLAGS TYPE STATE INODE PATH; an abstract name has @ for its first byte, as for every NUL
 * in it: such a one cannot be told again and is left out. */
static void listening_unix_line(struct listening *l, const char *line)
{
	struct cube_listener one = {.target = {.kind = CUBE_TARGET_UNIX}};
	unsigned flags, type;
	unsigned long inode;
	char path[128];

	if (sscanf(line, "%*x: %*x %*x %8x %4x %*x %lu %127[^\n]", &flags, &type, &inode, path) != 4 ||
	    !(flags & UNIX_ACCEPTS) || type != UNIX_STREAM || strlen(path) > CUBE_TARGET_PATH)
		return;
	if (path[0] == '@') {
		if (strchr(path + 1, '@'))
			return;
		one.target.kind = CUBE_TARGET_ABSTRACT;
		memmove(path, path + 1, strlen(path));
	}
	memcpy(one.target.path, path, strlen(path) + 1);
	listening_add(l, &one, inode);
}

static void listening_table(struct listening *l, int proc, const char *name,
			    void (*line)(struct listening *l, const char *line))
{
	int fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	char text[512];

	if (!f) {
		cube_close_auto(&fd);
		return;
	}
	for (unsigned n = 0; n < LISTEN_LINES && l->n < CUBE_LISTENERS_MAX && fgets(text, sizeof(text), f);
	     n++)
		line(l, text);
	(void)fclose(f);
}

/* ---- whose they are ---- */

static void listening_name(struct listening *l, int proc, unsigned long inode)
{
	char name[64] = "";

	for (unsigned i = 0; i < l->n; i++) {
		if (l->inodes[i] != inode || l->all[i].program[0])
			continue;
		if (!name[0]) {
			cube_auto_fd fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
			ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof(name) - 1);

			name[n > 0 ? n - 1 : 0] = '\0'; /* less the newline */
		}
		memcpy(l->all[i].program, name, sizeof(name));
	}
}

static void listening_process(struct listening *l, int proc)
{
	int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	char link[64];

	if (!d) {
		cube_close_auto(&fd);
		return;
	}
	while (l->fds < LISTEN_FDS && (e = readdir(d)) != NULL) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);

		l->fds++;
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, LISTEN_PREFIX, strlen(LISTEN_PREFIX)) == 0)
			listening_name(l, proc, strtoul(link + strlen(LISTEN_PREFIX), NULL, 10));
	}
	closedir(d);
}

static ino_t listening_space(int proc)
{
	struct stat st;

	return fstatat(proc, "ns/net", &st, 0) < 0 ? 0 : st.st_ino;
}

/* Every process of the machine that is in that network: those that left the sandbox's other namespaces too. */
static void listening_programs(struct listening *l, int init)
{
	ino_t space = listening_space(init);
	DIR *d = l->n > 0 && space ? opendir("/proc") : NULL;
	const struct dirent *e;

	if (!d)
		return;
	while (l->fds < LISTEN_FDS && (e = readdir(d)) != NULL) {
		cube_auto_fd proc = -1;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		proc = openat(dirfd(d), e->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (proc >= 0 && listening_space(proc) == space)
			listening_process(l, proc);
	}
	closedir(d);
}

/* ---- the operation ---- */

static void listening_find(struct listening *l, int init)
{
	listening_table(l, init, "net/tcp", listening_tcp_line);
	listening_table(l, init, "net/tcp6", listening_tcp_line);
	listening_table(l, init, "net/unix", listening_unix_line);
	listening_programs(l, init);
}

int cube_ns_listening(int proc, void (*each)(void *ctx, const struct cube_listener *l), void *ctx,
		      struct cube_err *err)
{
	struct listening l = {
		.all = cube_calloc(CUBE_LISTENERS_MAX, sizeof(*l.all)),
		.inodes = cube_calloc(CUBE_LISTENERS_MAX, sizeof(*l.inodes)),
	};
	int rc = 0;

	if (l.all && l.inodes)
		listening_find(&l, proc);
	else
		rc = cube_fail(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; rc == 0 && i < l.n; i++)
		each(ctx, &l.all[i]);
	cube_free(l.all);
	cube_free(l.inodes);
	return rc;
}

/* ---- bytes ---- */

/* NAME: bytes and seven more of what came in, bytes of what went out. */
void cube_ns_net_bytes(int proc, uint64_t *ret_in, uint64_t *ret_out)
{
	int fd = openat(proc, "net/dev", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	unsigned long long in, out;
	char line[512], name[32];

	if (!f) {
		cube_close_auto(&fd);
		return;
	}
	*ret_in = *ret_out = 0;
	for (unsigned n = 0; n < 1000 && fgets(line, sizeof(line), f); n++) {
		if (sscanf(line, " %31[^:]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", name, &in, &out) != 3 ||
		    strcmp(name, "lo") == 0)
			continue;
		*ret_in += in;
		*ret_out += out;
	}
	(void)fclose(f);
}
