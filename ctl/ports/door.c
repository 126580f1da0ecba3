/* SPDX-License-Identifier: Apache-2.0 */
/* Listening on this side. The socket is made under the lock, so that a name that is refused leaves nothing; it is
 * watched on the loop's thread. */
#include "ctl/ports/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/heir.h"
#include "ctl/cube.h"
#include "ctl/domain_priv.h"

#define DOOR_BACKLOG 4096
#define DOOR_BREATH  100u /* ms, when there are no descriptors left */

struct cube_door {
	struct cube_post start, stop, again; /* to the loop */
	bool again_posted;
	atomic_bool closed; /* and perhaps the domain is gone */
	struct cube_domain *domain;
	struct cube_port *port; /* under the lock; NULL: closed */
	struct cube_list
		resting; /* under the lock: domain_own.doors_resting, while all ports together have too many */
	int fd;
	/* the loop's thread */
	struct cube_watch *watch;
	struct cube_timer *breath;
};

/* ---- the loop's side ---- */

/* Under the lock. Nobody is let in until cube_door_again, or cube_doors_again. */
static bool door_full(struct cube_door *d)
{
	struct cube_domain_own *own = cube_domain_own(d->domain);

	if (own->n_port_conns >= own->d.port_connections) {
		if (cube_list_empty(&d->resting))
			cube_list_push(&own->doors_resting, &d->resting);
		return true;
	}
	return d->port->n_conns >= CUBE_PORT_CONNS;
}

static void door_breathed(void *ctx)
{
	struct cube_door *d = ctx;

	cube_watch_set(d->watch, CUBE_WATCH_IN);
}

static void door_rest(struct cube_door *d)
{
	cube_watch_set(d->watch, 0);
	if (d->breath == NULL)
		d->breath = cube_timer_new(d->domain->loop, door_breathed, d);
	if (d->breath != NULL)
		cube_timer_start(d->breath, DOOR_BREATH);
}

static void door_let_in(struct cube_door *d)
{
	/* cppcheck-suppress nullPointer ; whose address it is does not matter */
	int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			door_rest(d);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
	cube_conn_through(d->port, fd);
}

static void door_accept(void *ctx, unsigned events)
{
	struct cube_door *d = ctx;

	(void)events;
	cube_domain_enter(d->domain);
	if (d->port == NULL || d->domain->closing || door_full(d))
		cube_watch_set(d->watch, 0);
	else
		door_let_in(d);
	cube_domain_leave(d->domain);
}

static void door_start(struct cube_post *post)
{
	struct cube_door *d = cube_container_of(post, struct cube_door, start);

	d->watch = cube_watch_new(d->domain->loop, d->fd, CUBE_WATCH_IN, door_accept, d);
}

/* May come after the domain was closed. */
static void door_stop(struct cube_post *post)
{
	struct cube_door *d = cube_container_of(post, struct cube_door, stop);

	cube_timer_free(d->breath);
	cube_watch_free(d->watch);
	cube_close_auto(&d->fd);
	cube_free(d);
}

static void door_again(struct cube_post *post)
{
	struct cube_door *d = cube_container_of(post, struct cube_door, again);

	if (atomic_load(&d->closed))
		return;
	cube_domain_enter(d->domain);
	d->again_posted = false;
	if (d->watch != NULL && d->port != NULL && !door_full(d))
		cube_watch_set(d->watch, CUBE_WATCH_IN);
	cube_domain_leave(d->domain);
}

/* ---- under the lock ---- */

static socklen_t door_address(const char *host, uint16_t at, struct sockaddr_storage *ret)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(at)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(at)};

	if (inet_pton(AF_INET, host, &a.sin_addr) == 1) {
		memcpy(ret, &a, sizeof(a));
		return sizeof(a);
	}
	if (inet_pton(AF_INET6, host, &a6.sin6_addr) == 1) {
		memcpy(ret, &a6, sizeof(a6));
		return sizeof(a6);
	}
	return 0;
}

static uint16_t door_at(int fd)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	struct sockaddr_in a4;
	struct sockaddr_in6 a6;
	socklen_t len = sizeof(a);

	if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return 0;
	memcpy(&a4, &a, sizeof(a4));
	memcpy(&a6, &a, sizeof(a6));
	return ntohs(a.ss_family == AF_INET6 ? a6.sin6_port : a4.sin_port);
}

static int door_socket(const char *host, uint16_t at, struct cube_err *err)
{
	struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
	socklen_t len = door_address(host, at, &a);
	cube_auto_fd fd = -1;

	if (len == 0)
		return cube_fail(err, -EINVAL, "'%s' is no address of IPv4 or IPv6", host);
	fd = cube_heir_take((const struct sockaddr *)&a);
	if (fd >= 0)
		return cube_steal_fd(&fd);
	fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cube_fail_errno(err, "cannot make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (a.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){1}, sizeof(int));
	if (bind(fd, (const struct sockaddr *)&a, len) < 0 || listen(fd, DOOR_BACKLOG) < 0)
		return cube_fail_errno(err, "cannot listen at %s port %u", host, at);
	return cube_steal_fd(&fd);
}

int cube_door_open(struct cube_port *p, const char *host, uint16_t at, uint16_t *ret_at,
		   struct cube_door **ret, struct cube_err *err)
{
	int fd = door_socket(host, at, err);
	struct cube_door *d;

	if (fd < 0)
		return fd;
	d = cube_calloc(1, sizeof(*d));
	if (d == NULL) {
		(void)close(fd);
		return cube_fail(err, -ENOMEM, "out of memory");
	}
	*d = (struct cube_door){.start = {.fn = door_start},
				.stop = {.fn = door_stop},
				.again = {.fn = door_again},
				.domain = p->cube->domain,
				.port = p,
				.fd = fd};
	cube_list_init(&d->resting);
	*ret_at = door_at(fd);
	cube_loop_post(d->domain->loop, &d->start);
	*ret = d;
	return 0;
}

void cube_door_close(struct cube_door *d)
{
	if (d == NULL || d->port == NULL)
		return;
	d->port = NULL;
	cube_list_remove(&d->resting);
	atomic_store(&d->closed, true);
	(void)shutdown(d->fd, SHUT_RDWR); /* nobody gets in from now on, though the loop comes to it later */
	cube_loop_post(d->domain->loop, &d->stop);
}

void cube_door_again(struct cube_door *d)
{
	if (d == NULL || d->port == NULL || d->again_posted)
		return;
	d->again_posted = true;
	cube_loop_post(d->domain->loop, &d->again);
}

void cube_doors_again(struct cube_domain *d)
{
	struct cube_list *resting = &cube_domain_own(d)->doors_resting;

	for (struct cube_list *i = cube_list_pop(resting); i != NULL; i = cube_list_pop(resting))
		cube_door_again(cube_list_entry(i, struct cube_door, resting));
}
