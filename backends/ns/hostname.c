/* SPDX-License-Identifier: Apache-2.0 */
/* What says a sandbox's name inside. */
#include "backends/ns/hostname.h"

#include "backends/base/buf.h"
#include "backends/base/child.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the kernel's ---- */

/* In a child of one thread: only such may enter a user namespace. System calls only. */
static _Noreturn void hostname_child(int user, int uts, const char *name, size_t len)
{
	/* Root is above all user namespaces and may be refused its own by nothing; an ordinary user's daemon is
	 * above those of its sandboxes too. Where that is so, the name can be set from where we are. */
	if (!cube_child_enter(uts, CLONE_NEWUTS) &&
	    (!cube_child_enter(user, CLONE_NEWUSER) || !cube_child_enter(uts, CLONE_NEWUTS)))
		cube_child_exit(errno);
	cube_child_exit(syscall(SYS_sethostname, name, len) == 0 ? 0 : errno);
}

int cube_ns_hostname(int proc, const char *name)
{
	cube_auto_fd user = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	cube_auto_fd uts = openat(proc, "ns/uts", O_RDONLY | O_CLOEXEC);
	int status = 0;
	pid_t pid;

	if (user < 0 || uts < 0)
		return -errno;
	pid = cube_child(0);
	if (pid == 0)
		hostname_child(user, uts, name, strlen(name));
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* ---- files ---- */

static int line_write(int fd, const struct cube_buf *text)
{
	if (pwrite(fd, text->data, text->len, 0) != (ssize_t)text->len)
		return -EIO;
	return ftruncate(fd, (off_t)text->len) < 0 ? -errno : 0;
}

int cube_ns_line(int fd, const char *line)
{
	struct cube_buf text = CUBE_BUF(CUBE_NS_FILE_MAX);
	int rc = cube_buf_printf(&text, "%s\n", line) < 0 ? -ENOMEM : line_write(fd, &text);

	cube_buf_done(&text);
	return rc;
}

/* @text with the word @old of each line that has it as its second as @name. */
static int hosts_text(const char *text, const char *old, const char *name, struct cube_buf *out)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n"), address = strcspn(text, " \t\n");
		size_t gap = address + strspn(text + address, " \t"), word = strcspn(text + gap, " \t\n");

		if (gap > address && word == strlen(old) && strncmp(text + gap, old, word) == 0) {
			(void)cube_buf_add(out, text, gap);
			(void)cube_buf_adds(out, name);
			(void)cube_buf_add(out, text + gap + word, len - gap - word);
		} else {
			(void)cube_buf_add(out, text, len);
		}
		text += len;
		if (*text == '\n') {
			(void)cube_buf_addc(out, '\n');
			text++;
		}
	}
	return out->error;
}

int cube_ns_hosts_rename(int fd, const char *old, const char *name)
{
	struct cube_buf text = CUBE_BUF(CUBE_NS_FILE_MAX + 1), fresh = CUBE_BUF(2 * CUBE_NS_FILE_MAX);
	char path[64];
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = cube_file_read(AT_FDCWD, path, &text);
	if (rc == 0)
		rc = hosts_text(cube_buf_str(&text), old, name, &fresh);
	if (rc == 0 && fresh.len > 0)
		rc = line_write(fd, &fresh);
	cube_buf_done(&text);
	cube_buf_done(&fresh);
	return rc;
}
