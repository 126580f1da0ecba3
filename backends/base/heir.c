/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that the worker before this one had. */
#include "backends/base/heir.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/alloc.h"

struct heir {
	struct heir *next;
	int fd;
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_un un;
	} at;
};

static pthread_mutex_t heir_lock = PTHREAD_MUTEX_INITIALIZER;
static struct heir *heirs;

static bool heir_listens(int fd)
{
	socklen_t len = sizeof(int);
	int listens = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens != 0;
}

void cube_heir_add(int fd)
{
	struct heir *h = heir_listens(fd) ? cube_calloc(1, sizeof(*h)) : NULL;
	socklen_t len = sizeof(h->at) - 1; /* a path of full length has no end of its own */

	if (h == NULL || getsockname(fd, &h->at.any, &len) < 0) {
		cube_free(h);
		(void)close(fd);
		return;
	}
	h->fd = fd;
	(void)pthread_mutex_lock(&heir_lock);
	h->next = heirs;
	heirs = h;
	(void)pthread_mutex_unlock(&heir_lock);
}

static bool heir_is_at(const struct heir *h, const struct sockaddr *a)
{
	if (h->at.any.sa_family != a->sa_family)
		return false;
	if (a->sa_family == AF_UNIX)
		return strcmp(h->at.un.sun_path, ((const struct sockaddr_un *)(const void *)a)->sun_path) ==
		       0;
	if (a->sa_family == AF_INET)
		return memcmp(&h->at.in, a, sizeof(h->at.in)) == 0;
	return a->sa_family == AF_INET6 && memcmp(&h->at.in6, a, sizeof(h->at.in6)) == 0;
}

int cube_heir_take(const struct sockaddr *a)
{
	int fd = -1;

	(void)pthread_mutex_lock(&heir_lock);
	for (struct heir **p = &heirs; *p != NULL; p = &(*p)->next) {
		struct heir *h = *p;

		if (!heir_is_at(h, a))
			continue;
		*p = h->next;
		fd = h->fd;
		cube_free(h);
		break;
	}
	(void)pthread_mutex_unlock(&heir_lock);
	return fd;
}

void cube_heir_drop(void)
{
	(void)pthread_mutex_lock(&heir_lock);
	while (heirs != NULL) {
		struct heir *h = heirs;

		heirs = h->next;
		(void)close(h->fd);
		cube_free(h);
	}
	(void)pthread_mutex_unlock(&heir_lock);
}
