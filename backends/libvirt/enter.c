/* SPDX-License-Identifier: Apache-2.0 */
/* cube-init in a machine: a byte stream through virtio-serial, whose other end is a unix socket of QEMU's.
 *
 * QEMU takes one connection at a time and passes on what comes when the guest has opened its end. So a machine that was
 * started is greeted at once, and its answer, whenever it comes, says that it is up; that connection is kept for the link
 * that follows. A new link ends the one before, which QEMU would else serve for ever. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/agent/link.h"
#include "backends/agent/wire.h"
#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"

#define ENTER_MS_NS    UINT64_C(1000000)
#define ENTER_S_NS     UINT64_C(1000000000)
#define ENTER_CONSOLE  ((size_t)400) /* of its last words, in a sentence */
#define ENTER_READ_MAX ((off_t)4096)

/* ---- who has the connection ---- */

struct links_one {
	struct links_one *next;
	char id[CUBE_ID_MAX + 1];
	int fd;     /* a copy of the link's, or one that has been greeted */
	bool fresh; /* no link has it yet */
};

struct libvirt_links {
	pthread_mutex_t lock;
	struct links_one *all;
};

struct libvirt_links *libvirt_links_new(void)
{
	struct libvirt_links *l = cube_calloc(1, sizeof(*l));

	if (l != NULL)
		(void)pthread_mutex_init(&l->lock, NULL);
	return l;
}

static void links_free_one(struct links_one *one)
{
	cube_close_auto(&one->fd);
	cube_free(one);
}

void libvirt_links_free(struct libvirt_links *l)
{
	struct links_one *one, *next;

	if (l == NULL)
		return;
	for (one = l->all; one != NULL; one = next) {
		next = one->next;
		links_free_one(one);
	}
	(void)pthread_mutex_destroy(&l->lock);
	cube_free(l);
}

/* What there is for @id, taken out. */
static struct links_one *links_take(struct libvirt_links *l, const char *id)
{
	struct links_one **at, *one;

	pthread_mutex_lock(&l->lock);
	for (at = &l->all; *at != NULL && strcmp((*at)->id, id) != 0;)
		at = &(*at)->next;
	one = *at;
	if (one != NULL)
		*at = one->next;
	pthread_mutex_unlock(&l->lock);
	return one;
}

/* Takes @fd over, also when it fails. */
static int links_put(struct libvirt_links *l, const char *id, int fd, bool fresh)
{
	struct links_one *one = cube_calloc(1, sizeof(*one));

	if (one == NULL) {
		cube_close_auto(&fd);
		return -ENOMEM;
	}
	(void)snprintf(one->id, sizeof(one->id), "%s", id);
	one->fd = fd;
	one->fresh = fresh;
	pthread_mutex_lock(&l->lock);
	one->next = l->all;
	l->all = one;
	pthread_mutex_unlock(&l->lock);
	return 0;
}

void libvirt_links_end(struct cube_libvirt *v, const char *id)
{
	struct links_one *one = links_take(v->links, id);

	if (one == NULL)
		return;
	(void)shutdown(one->fd, SHUT_RDWR);
	links_free_one(one);
}

/* ---- the way to it ---- */

int libvirt_connect(const char *id, const char *path, int *ret_fd, struct cube_err *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cube_auto_fd fd = -1;

	if (strlen(path) >= sizeof(addr.sun_path))
		return cube_fail(err, -ENAMETOOLONG, "sandbox %s: %.200s: the path of a socket is too long",
				 id, path);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cube_fail_errno(err, "a socket");
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? cube_fail(err, -EBUSY,
						   "sandbox %s: somebody else has its port %.107s", id, path)
				       : cube_fail_errno(err, "sandbox %s: its port %.107s", id, path);
	*ret_fd = cube_steal_fd(&fd);
	return 0;
}

static int enter_connect(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, int *ret_fd,
			 struct cube_err *err)
{
	struct libvirt_note note = {.labels = NULL};
	enum cube_state state = CUBE_IS_GONE;
	int rc = libvirt_box_state(v, id, cancel, &state, err);

	if (rc == 0 && state == CUBE_IS_STOPPED)
		rc = cube_fail(err, -EHOSTDOWN, "sandbox %s does not run", id);
	if (rc == 0)
		rc = libvirt_box_note(v, id, cancel, &note, err);
	if (rc < 0)
		return rc;
	if (note.agent[0] == '\0')
		rc = cube_fail(err, -EOPNOTSUPP, "sandbox %s has no port of an agent (" LIBVIRT_PORT ")", id);
	else
		rc = libvirt_connect(id, note.agent, ret_fd, err);
	libvirt_note_done(&note);
	return rc;
}

/* ---- the greeting ---- */

static int enter_hello(int fd, struct cube_err *err)
{
	unsigned char data[128];
	struct cube_wire_out out;

	cube_wire_out_init(&out, data, sizeof(data));
	(void)cube_wire_put_hello(
		&out, &(struct cube_wire_hello){.min = CUBE_WIRE_VERSION_MIN, .max = CUBE_WIRE_VERSION_MAX});
	return send(fd, data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len
		       ? 0
		       : cube_fail_errno(err, "the port of the agent");
}

/* What came: 1 it has greeted, 0 not yet, -EHOSTDOWN the machine has ended. */
static int enter_heard(int fd, struct cube_wire_feed *feed)
{
	struct cube_wire_head head;
	const void *body;
	size_t space;
	void *to = cube_wire_feed_space(feed, &space);
	ssize_t n = recv(fd, to, space, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		return -EHOSTDOWN;
	if (n > 0)
		feed->len += (size_t)n;
	if (!cube_wire_feed_sync(feed))
		return 0;
	return cube_wire_feed_next(feed, &head, &body) > 0 && head.type == CUBE_WIRE_HELLO ? 1 : 0;
}

/* The end of its console, for a sentence. */
static void enter_console(const struct cube_libvirt *v, const char *id, char *out, size_t size)
{
	char path[PATH_MAX], text[ENTER_READ_MAX + 1];
	cube_auto_fd fd = -1;
	off_t end, from;
	ssize_t n = 0;

	*out = '\0';
	if (libvirt_box_path(v, id, LIBVIRT_CONSOLE, path, NULL) < 0)
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	end = lseek(fd, 0, SEEK_END);
	from = end > (off_t)ENTER_CONSOLE ? end - (off_t)ENTER_CONSOLE : 0;
	n = pread(fd, text, sizeof(text) - 1, from);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	text[n > 0 ? n : 0] = '\0';
	if (n > 0) {
		const char *line = strrchr(text, '\n');

		(void)snprintf(out, size, "; its console's last line: %.150s",
			       line != NULL ? line + 1 : text);
	}
}

static int enter_wait(struct cube_libvirt *v, const char *id, int fd, struct cube_cancel *cancel,
		      struct cube_err *err)
{
	uint64_t end = cube_clock_mono() + v->boot_s * ENTER_S_NS;
	struct cube_wire_feed *feed = cube_malloc(sizeof(*feed));
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	char last[200];
	int rc = 0;

	if (feed == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	cube_wire_feed_init(feed);
	while (rc == 0) {
		uint64_t now = cube_clock_mono();

		if (now < end && poll(fds, CUBE_COUNT(fds), (int)((end - now) / ENTER_MS_NS) + 1) > 0 &&
		    fds[0].revents != 0)
			rc = enter_heard(fd, feed);
		if (rc == 0 && cube_cancel_fired(cancel))
			rc = -EINTR;
		else if (rc == 0 && now >= end)
			rc = -ETIMEDOUT;
	}
	cube_free(feed);
	if (rc > 0)
		return 0;
	enter_console(v, id, last, sizeof(last));
	if (rc == -EINTR)
		return cube_fail(err, rc, "cancelled");
	if (rc == -EHOSTDOWN)
		return cube_fail(err, rc, "the machine of sandbox %s has ended before its agent was up%s", id,
				 last);
	return cube_fail(err, rc,
			 "the agent of sandbox %s has not answered within %u seconds (boot in the section)%s",
			 id, v->boot_s, last);
}

int libvirt_enter(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, struct cube_err *err)
{
	cube_auto_fd fd = -1;
	int rc;

	libvirt_links_end(v, id);
	rc = enter_connect(v, id, cancel, &fd, err);
	if (rc == 0)
		rc = enter_hello(fd, err);
	if (rc == 0)
		rc = enter_wait(v, id, fd, cancel, err);
	if (rc == 0)
		rc = links_put(v->links, id, cube_steal_fd(&fd), true);
	return rc;
}

/* ---- the link ---- */

/* A connection that nobody else uses. */
static int link_fd(struct cube_libvirt *v, const char *id, struct cube_cancel *cancel, int *ret_fd,
		   struct cube_err *err)
{
	struct links_one *one = links_take(v->links, id);
	char byte;
	bool fresh = one != NULL && one->fresh &&
		     (recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 || errno == EAGAIN);

	if (fresh)
		*ret_fd = cube_steal_fd(&one->fd);
	else if (one != NULL)
		(void)shutdown(one->fd, SHUT_RDWR);
	if (one != NULL)
		links_free_one(one);
	return fresh ? 0 : enter_connect(v, id, cancel, ret_fd, err);
}

int libvirt_link(struct cube_backend *base, const char *id, const struct cube_link_handler *handler,
		 void *ctx, struct cube_cancel *cancel, struct cube_link **ret, struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	cube_auto_fd fd = -1, copy = -1;
	int rc = link_fd(v, id, cancel, &fd, err);

	if (rc < 0)
		return rc;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return cube_fail_errno(err, "the link to sandbox %s", id);
	rc = cube_agent_link_new(v->loop, fd, false, handler, ctx, ret, err);
	if (rc < 0)
		return rc;
	(void)cube_steal_fd(&fd);
	(void)links_put(v->links, id, cube_steal_fd(&copy), false);
	return 0;
}
