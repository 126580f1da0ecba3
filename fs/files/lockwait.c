/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a lock in a system call that a cancel can end.
 *
 * The kernel has no way to wait for a lock and a descriptor at once. So the caller's thread waits in the
 * lock's own system call, and one thread of the space watches the cancels of all that wait: when one fires,
 * it sends that thread a signal, whose only effect is that the call ends with EINTR; and again every few
 * milliseconds until the thread has left, since the first may come just before it enters the call. Nothing
 * runs while nothing happens.
 *
 * The signal is SIGURG: nobody else in the daemon wants it, and it is harmless where it strays (ignored by
 * default). */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "fs/files/files_priv.h"

#define WAIT_SIGNAL   SIGURG
#define WAIT_AGAIN_MS 5

struct cube_flockwait {
	pthread_t thread;
	pthread_mutex_t mutex;
	struct cube_list waiters; /* under mutex, as all that follows */
	unsigned n;
	bool stop;
	int news; /* eventfd: look again */
};

struct waiter {
	struct cube_list in_list;
	pthread_t thread;
	struct cube_cancel *cancel;
};

static void wait_on_signal(int sig)
{
	(void)sig;
}

static void wait_install_handler(void)
{
	const struct sigaction action = {.sa_handler =
						 wait_on_signal}; /* without SA_RESTART: that is the point */

	(void)sigaction(WAIT_SIGNAL, &action, NULL);
}

/* The descriptors to watch, and the first of them the news; NULL: memory. */
static struct pollfd *wait_collect_locked(struct cube_flockwait *w, nfds_t *ret_n, bool *ret_fired)
{
	struct pollfd *p = cube_calloc(w->n + 1, sizeof(*p));
	nfds_t n = 0;

	*ret_fired = false;
	if (p == NULL)
		return NULL;
	p[n++] = (struct pollfd){.fd = w->news, .events = POLLIN};
	cube_list_each (l, &w->waiters) {
		struct waiter *x = cube_list_entry(l, struct waiter, in_list);

		if (cube_cancel_fired(x->cancel)) {
			*ret_fired = true;
			(void)pthread_kill(x->thread, WAIT_SIGNAL);
		} else {
			p[n++] = (struct pollfd){.fd = cube_cancel_fd(x->cancel), .events = POLLIN};
		}
	}
	*ret_n = n;
	return p;
}

static void *wait_watch(void *arg)
{
	struct cube_flockwait *w = arg;
	uint64_t drop;
	bool fired, stop;
	nfds_t n;

	for (;;) {
		struct pollfd *p;

		(void)pthread_mutex_lock(&w->mutex);
		stop = w->stop;
		p = stop ? NULL : wait_collect_locked(w, &n, &fired);
		(void)pthread_mutex_unlock(&w->mutex);
		if (stop)
			return NULL;
		/* without memory: blind, but not for long */
		(void)poll(p, p == NULL ? 0 : n, p == NULL || fired ? WAIT_AGAIN_MS : -1);
		cube_free(p);
		while (read(w->news, &drop, sizeof(drop)) > 0)
			continue;
	}
}

static void wait_tell(struct cube_flockwait *w)
{
	const uint64_t one = 1;

	while (write(w->news, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
}

static struct cube_flockwait *wait_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct cube_flockwait *w = cube_calloc(1, sizeof(*w));
	sigset_t all, old;
	int r = -1;

	if (w == NULL)
		return NULL;
	(void)pthread_once(&once, wait_install_handler);
	cube_list_init(&w->waiters);
	w->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&w->mutex, NULL);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	if (w->news >= 0)
		r = pthread_create(&w->thread, NULL, wait_watch, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		return w;
	if (w->news >= 0)
		(void)close(w->news);
	(void)pthread_mutex_destroy(&w->mutex);
	cube_free(w);
	return NULL;
}

void cube_flockwait_free(struct cube_flockwait *w)
{
	if (w == NULL)
		return;
	(void)pthread_mutex_lock(&w->mutex);
	w->stop = true;
	(void)pthread_mutex_unlock(&w->mutex);
	wait_tell(w);
	(void)pthread_join(w->thread, NULL);
	(void)close(w->news);
	(void)pthread_mutex_destroy(&w->mutex);
	cube_free(w);
}

static struct cube_flockwait *wait_of(struct cube_files_space *s)
{
	struct cube_flockwait *w;

	(void)pthread_mutex_lock(&s->locks);
	if (s->lockwait == NULL)
		s->lockwait = wait_new();
	w = s->lockwait;
	(void)pthread_mutex_unlock(&s->locks);
	return w;
}

static void wait_enter(struct cube_flockwait *w, struct waiter *x)
{
	(void)pthread_mutex_lock(&w->mutex);
	cube_list_push(&w->waiters, &x->in_list);
	w->n++;
	(void)pthread_mutex_unlock(&w->mutex);
	wait_tell(w);
}

/* After this nobody sends the signal; one that was sent has come, since it is not blocked. */
static void wait_leave(struct cube_flockwait *w, struct waiter *x)
{
	(void)pthread_mutex_lock(&w->mutex);
	cube_list_remove(&x->in_list);
	w->n--;
	(void)pthread_mutex_unlock(&w->mutex);
}

int cube_flockwait(struct cube_files_space *s, struct cube_cancel *cancel, int (*try)(void *ctx), void *ctx)
{
	struct waiter x = {.thread = pthread_self(), .cancel = cancel};
	struct cube_flockwait *w;
	sigset_t one, old;
	int r;

	if (cancel == NULL) {
		do
			r = try(ctx);
		while (r == -EINTR);
		return r;
	}
	w = wait_of(s);
	if (w == NULL)
		return -ENOMEM;
	(void)sigemptyset(&one);
	(void)sigaddset(&one, WAIT_SIGNAL);
	(void)pthread_sigmask(SIG_UNBLOCK, &one, &old);
	wait_enter(w, &x);
	do
		r = cube_cancel_fired(cancel) ? -EINTR : try(ctx);
	while (r == -EINTR && !cube_cancel_fired(cancel));
	wait_leave(w, &x);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}
