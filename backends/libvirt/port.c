/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of process 1 of a machine (backends/agent/init/port.h). One line, one answer, one connection. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/clock.h"

#define PORT_MS    5000
#define PORT_LINE  256
#define PORT_MS_NS UINT64_C(1000000)

/* Its answer, without the newline. */
static int port_read(int fd, const char *id, struct cube_cancel *cancel, char line[PORT_LINE],
		     struct cube_err *err)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	uint64_t end = cube_clock_mono() + PORT_MS * PORT_MS_NS;
	size_t len = 0;

	for (;;) {
		uint64_t now = cube_clock_mono();
		ssize_t n;

		if (now >= end)
			return cube_fail(
				err, -EOPNOTSUPP,
				"process 1 of sandbox %s does not answer: is it cube-init with --port-fd?",
				id);
		(void)poll(fds, CUBE_COUNT(fds), (int)((end - now) / PORT_MS_NS) + 1);
		if (cube_cancel_fired(cancel))
			return cube_fail(err, -EINTR, "cancelled");
		n = recv(fd, line + len, PORT_LINE - 1 - len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return cube_fail(err, -EHOSTDOWN, "the machine of sandbox %s has ended", id);
		len += n > 0 ? (size_t)n : 0;
		line[len] = '\0';
		if (strchr(line, '\n') != NULL) {
			*strchr(line, '\n') = '\0';
			return 0;
		}
		if (len == PORT_LINE - 1)
			return cube_fail(err, -EREMOTEIO, "process 1 of sandbox %s answers what is no line",
					 id);
	}
}

int libvirt_port_ask(const struct libvirt_note *n, const char *id, const char *line,
		     struct cube_cancel *cancel, struct cube_err *err)
{
	char text[PORT_LINE], answer[PORT_LINE];
	cube_auto_fd fd = -1;
	int len = snprintf(text, sizeof(text), "%s\n", line), code, rc;

	if (n->asked[0] == '\0')
		return cube_fail(err, -EOPNOTSUPP, "sandbox %s has no port for that (" LIBVIRT_ASKED ")", id);
	rc = libvirt_connect(id, n->asked, &fd, err);
	if (rc < 0)
		return rc;
	if (len < 0 || (size_t)len >= sizeof(text) || send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return cube_fail(err, -EIO, "process 1 of sandbox %s cannot be asked", id);
	rc = port_read(fd, id, cancel, answer, err);
	if (rc < 0 || strcmp(answer, "ok") == 0)
		return rc;
	code = strncmp(answer, "error ", 6) == 0 ? (int)strtol(answer + 6, NULL, 10) : 0;
	return cube_fail(err, code > 0 && code < 4096 ? -code : -EREMOTEIO, "sandbox %s: %.30s: %s", id, line,
			 code > 0 ? cube_errno_text(code) : "process 1 answers nonsense");
}

/* Of one that runs; a start says it by the kernel's command line. */
static int rename_inside(struct cube_libvirt *v, const struct libvirt_note *n, const char *id,
			 struct cube_err *err)
{
	char line[CUBE_ID_MAX + 16];
	enum cube_state state = CUBE_IS_GONE;
	int rc = libvirt_box_state(v, id, NULL, &state, err);

	(void)snprintf(line, sizeof(line), "name %.64s", n->name);
	return rc == 0 && state == CUBE_IS_RUNNING ? libvirt_port_ask(n, id, line, NULL, err) : rc;
}

int libvirt_rename(struct cube_backend *base, const char *id, const char *name, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct libvirt_template t;
	struct libvirt_note note = {.labels = NULL};
	int rc = libvirt_box_note(v, id, NULL, &note, err);

	if (rc < 0)
		return rc;
	(void)snprintf(note.name, sizeof(note.name), "%.64s", name);
	rc = libvirt_template_find(v, note.template, &t, err);
	if (rc == 0)
		rc = rename_inside(v, &note, id, err);
	if (rc == 0)
		rc = libvirt_box_define(v, &note, &t, NULL, err);
	libvirt_note_done(&note);
	return rc;
}
