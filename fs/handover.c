/* SPDX-License-Identifier: Apache-2.0 */
/* What a program leaves to the one that takes its place. */
#include "fs/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define HANDOVER_FIRST    "cubefs-handover=1"
#define HANDOVER_MAX      (4 << 20)
#define HANDOVER_CHECK_NS UINT64_C(10000000000)
#define HANDOVER_CHUNKS   16 /* of what it says, at a time */

static const char *const handover_numbers[CUBE_HAND_NUMBERS] = {
	[CUBE_HAND_FUSE] = "fd.fuse",
	[CUBE_HAND_KEEP] = "fd.keep",
	[CUBE_HAND_LINE] = "fd.line",
	[CUBE_HAND_BOSS] = "fd.boss",
	[CUBE_HAND_LOCK] = "fd.lock",
	[CUBE_HAND_LOG] = "fd.log",
	[CUBE_HAND_MOUNTS] = "fd.mounts",
	[CUBE_HAND_DOOR] = "fd.door",
	[CUBE_HAND_PROGRAM] = "fd.program",
	[CUBE_HAND_BEFORE] = "fd.before",
	[CUBE_HAND_CLIENT] = "fd.client",
	[CUBE_HAND_CHILD] = "child",
	[CUBE_HAND_MOUNT_ID] = "mount_id",
	[CUBE_HAND_UID] = "uid",
	[CUBE_HAND_GID] = "gid",
	[CUBE_HAND_ALLOW_OTHER] = "allow_other",
	[CUBE_HAND_SYMLINKS_RAW] = "symlinks_raw",
	[CUBE_HAND_OWNERS_RAW] = "owners_raw",
	[CUBE_HAND_DEBUG] = "debug",
};

static const char *const handover_strings[CUBE_HAND_STRINGS] = {
	[CUBE_HAND_STATE] = "state", [CUBE_HAND_MOUNT] = "mount",
	[CUBE_HAND_CONF] = "conf",   [CUBE_HAND_VERSION] = "version",
	[CUBE_HAND_WHY] = "why",     [CUBE_HAND_TOKEN_FILE] = "9p_token_file",
	[CUBE_HAND_9P] = "9p.0",     [CUBE_HAND_9P + 1] = "9p.1",
	[CUBE_HAND_9P + 2] = "9p.2", [CUBE_HAND_9P + 3] = "9p.3",
	[CUBE_HAND_9P + 4] = "9p.4", [CUBE_HAND_9P + 5] = "9p.5",
	[CUBE_HAND_9P + 6] = "9p.6", [CUBE_HAND_9P + 7] = "9p.7",
};

_Static_assert(CUBE_OPTS_9P == 8, "each address has a name");

void cube_handover_init(struct cube_handover *h)
{
	*h = (struct cube_handover){.text = NULL};
	for (size_t i = 0; i < CUBE_HAND_NUMBERS; i++)
		h->n[i] = -1;
}

void cube_handover_done(struct cube_handover *h)
{
	cube_free(h->text);
	cube_handover_init(h);
}

/* ---- written and read: NAME=VALUE, each with its NUL ---- */

int cube_handover_write(const struct cube_handover *h, int *ret_fd, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(HANDOVER_MAX);
	cube_auto_fd fd = memfd_create("cubefs-handover", MFD_CLOEXEC);
	int r;

	(void)cube_buf_add(&text, HANDOVER_FIRST, sizeof(HANDOVER_FIRST));
	for (size_t i = 0; i < CUBE_HAND_NUMBERS; i++)
		(void)cube_buf_printf(&text, "%s=%lld%c", handover_numbers[i], (long long)h->n[i], 0);
	for (size_t i = 0; i < CUBE_HAND_STRINGS; i++)
		if (h->s[i] != NULL)
			(void)cube_buf_printf(&text, "%s=%s%c", handover_strings[i], h->s[i], 0);
	r = text.error != 0 ? text.error : fd < 0 ? -errno : cube_file_write_all(fd, text.data, text.len);
	cube_buf_done(&text);
	if (r < 0)
		return cube_fail(err, r, "what is to be handed over: %s", cube_errno_text(r));
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

static void handover_record(struct cube_handover *h, const char *name, size_t len, const char *value)
{
	for (size_t i = 0; i < CUBE_HAND_NUMBERS; i++)
		if (strlen(handover_numbers[i]) == len && memcmp(handover_numbers[i], name, len) == 0)
			h->n[i] = strtoll(value, NULL, 10);
	for (size_t i = 0; i < CUBE_HAND_STRINGS; i++)
		if (strlen(handover_strings[i]) == len && memcmp(handover_strings[i], name, len) == 0)
			h->s[i] = value;
}

int cube_handover_read(int fd, struct cube_handover *ret, struct cube_err *err)
{
	struct cube_buf text = CUBE_BUF(HANDOVER_MAX);
	struct cube_handover h;
	char path[32];
	size_t len;
	int r;

	cube_handover_init(&h);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = cube_file_read(AT_FDCWD, path, &text);
	h.text = cube_buf_steal(&text, &len);
	if (r < 0 || h.text == NULL || strcmp(h.text, HANDOVER_FIRST) != 0) {
		cube_free(h.text);
		return cube_fail(err, -EPROTO, "nothing is handed over there that this cubefs can read");
	}
	for (size_t at = 0; at < len; at += strlen(h.text + at) + 1) {
		const char *equals = strchr(h.text + at, '=');

		if (equals != NULL)
			handover_record(&h, h.text + at, (size_t)(equals - (h.text + at)), equals + 1);
	}
	*ret = h;
	return 0;
}

/* ---- the other program ---- */

static void handover_inherit(const struct cube_handover *h, int memory, bool inherited)
{
	int flag = inherited ? 0 : FD_CLOEXEC;

	for (size_t i = 0; i < CUBE_HAND_FDS; i++)
		if (h->n[i] >= 0)
			(void)fcntl((int)h->n[i], F_SETFD, flag);
	(void)fcntl(memory, F_SETFD, flag);
}

static int handover_exec_with(const struct cube_handover *h, int memory, int program, const char *role)
{
	char name[] = "cubefs", verb[] = "takeover", what[16], number[16], none[] = "";
	char *mount = h->s[CUBE_HAND_MOUNT] != NULL ? cube_strdup(h->s[CUBE_HAND_MOUNT]) : NULL;
	char *argv[] = {name, verb, what, number, mount, NULL};
	int error;

	(void)snprintf(what, sizeof(what), "%s", role);
	(void)snprintf(number, sizeof(number), "%d", memory);
	handover_inherit(h, memory, true);
	(void)syscall(SYS_execveat, program, none, argv, environ, AT_EMPTY_PATH);
	error = errno;
	handover_inherit(h, memory, false);
	cube_free(mount);
	return -error;
}

int cube_handover_exec(const struct cube_handover *h, int program, const char *role, struct cube_err *err)
{
	cube_auto_fd memory = -1;
	int r = cube_handover_write(h, &memory, err);

	if (r == 0) {
		r = handover_exec_with(h, memory, program, role);
		(void)cube_fail(err, r, "the program cannot be run: %s", cube_errno_text(r));
	}
	return r;
}

static pid_t handover_check_fork(const struct cube_handover *h, int memory, int program, int line)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)dup2(line, STDOUT_FILENO);
	(void)dup2(line, STDERR_FILENO);
	dprintf(STDERR_FILENO, "%s", cube_errno_text(handover_exec_with(h, memory, program, "check")));
	_exit(126);
}

int cube_handover_check_start(const struct cube_handover *h, int program, struct cube_handover_check *c,
			      struct cube_err *err)
{
	cube_auto_fd memory = -1, says = -1;
	int line[2], r = cube_handover_write(h, &memory, err);
	pid_t pid;

	if (r < 0)
		return r;
	if (pipe2(line, O_CLOEXEC) < 0)
		return cube_fail_errno(err, "pipe");
	says = line[1];
	c->line = line[0];
	(void)fcntl(c->line, F_SETFL, O_NONBLOCK);
	pid = handover_check_fork(h, memory, program, says);
	c->pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0); /* nobody has waited for it yet */
	if (c->pidfd >= 0) {
		cube_buf_init(&c->said, 4096);
		c->until = cube_clock_mono() + HANDOVER_CHECK_NS;
		return 0;
	}
	r = cube_fail_errno(err, "the new program cannot be asked");
	if (pid > 0)
		(void)kill(pid, SIGKILL);
	cube_handover_check_drop(c);
	return r;
}

/* True: it will say no more. One that never stops is not listened to for ever. */
static bool handover_check_hear(struct cube_handover_check *c)
{
	char chunk[512];
	ssize_t n;

	for (unsigned i = 0; i < HANDOVER_CHUNKS; i++) {
		n = read(c->line, chunk, sizeof(chunk));
		if (n < 0)
			return errno != EAGAIN && errno != EINTR;
		if (n == 0)
			return true;
		(void)cube_buf_add_escaped(&c->said, chunk, (size_t)n, false);
	}
	return false;
}

int cube_handover_check_look(struct cube_handover_check *c, struct cube_err *err)
{
	int r = 0;

	if (!handover_check_hear(c) && cube_clock_mono() < c->until)
		return 1;
	/* one that closed its output and goes on */
	(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	if (strncmp(cube_buf_str(&c->said), "ok", 2) != 0)
		r = cube_fail(err, -EPROTO, "the new program cannot take over: %s",
			      c->said.len > 0 ? cube_buf_str(&c->said) : "it says nothing");
	cube_handover_check_drop(c);
	return r;
}

void cube_handover_check_init(struct cube_handover_check *c)
{
	*c = (struct cube_handover_check){.line = -1, .pidfd = -1};
}

void cube_handover_check_drop(struct cube_handover_check *c)
{
	cube_close_auto(&c->line);
	cube_close_auto(&c->pidfd);
	cube_buf_done(&c->said);
	cube_handover_check_init(c);
}

/* ---- the configuration ---- */

int cube_handover_conf(const struct cube_conf *conf, struct cube_buf *out)
{
	const struct cube_conf_section *s;
	const char *key;

	for (size_t i = 0; (s = cube_conf_at(conf, i)) != NULL; i++) {
		if (cube_conf_section_name(s)[0] != '\0')
			(void)cube_buf_printf(out, "[%s]\n", cube_conf_section_name(s));
		for (size_t k = 0; (key = cube_conf_key(s, k)) != NULL; k++)
			(void)cube_buf_printf(out, "%s=%s\n", key, cube_conf_get(s, key));
	}
	return out->error;
}
