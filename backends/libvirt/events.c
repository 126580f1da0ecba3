/* SPDX-License-Identifier: Apache-2.0 */
/* Libvirt's event loop, and what becomes of domains, by whosever hand.
 *
 * The loop is libvirt's own and the process's only one: it carries the signs of life of every connection, so it runs
 * whenever there is an instance. What it tells is put into a short list here, which the thread of `watch` takes. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/alloc.h"

/* ---- the loop ---- */

static struct {
	pthread_mutex_t lock;
	unsigned holders;
	pthread_t thread;
	bool registered, run;
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void events_quiet(void *ctx, virErrorPtr error)
{
	(void)ctx;
	(void)error; /* who asks gets it with the answer; libvirt would print it */
}

static bool events_go(void)
{
	bool go;

	pthread_mutex_lock(&events.lock);
	go = events.run;
	pthread_mutex_unlock(&events.lock);
	return go;
}

static void *events_main(void *ctx)
{
	(void)ctx;
	while (events_go())
		if (virEventRunDefaultImpl() < 0)
			(void)poll(NULL, 0, 100);
	return NULL;
}

static void events_wake(int timer, void *ctx)
{
	(void)ctx;
	(void)virEventRemoveTimeout(timer);
}

static int events_start(void)
{
	sigset_t all, before;
	int rc;

	if (!events.registered) {
		virSetErrorFunc(NULL, events_quiet);
		if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
			return -ENOMEM;
		events.registered = true;
	}
	events.run = true;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&events.thread, NULL, events_main, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int libvirt_events_hold(struct cube_err *err)
{
	int rc = 0;

	pthread_mutex_lock(&events.lock);
	if (events.holders == 0)
		rc = events_start();
	if (rc == 0)
		events.holders++;
	pthread_mutex_unlock(&events.lock);
	return rc < 0 ? cube_fail(err, rc, "libvirt's event loop cannot be started: %s", cube_errno_text(rc))
		      : 0;
}

void libvirt_events_drop(void)
{
	bool last;

	pthread_mutex_lock(&events.lock);
	last = --events.holders == 0;
	if (last)
		events.run = false;
	pthread_mutex_unlock(&events.lock);
	if (!last)
		return;
	(void)virEventAddTimeout(0, events_wake, NULL, NULL); /* it is waiting */
	(void)pthread_join(events.thread, NULL);
}

/* ---- what becomes of domains ---- */

#define WATCH_MAX 4096 /* untold ones; beyond that all are looked at again */

struct watch_item {
	char id[CUBE_ID_MAX + 1];
	enum cube_state state;
};

struct watch {
	pthread_mutex_t lock; /* guards all but told */
	unsigned refs;        /* who watches, and libvirt once for each callback */
	int told;             /* an eventfd: there is something */
	struct watch_item *items;
	size_t n, room;
	bool overflow, closed;
	virConnectPtr conn;
	int callback;
};

static struct watch *watch_new(void)
{
	struct watch *w = cube_calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	(void)pthread_mutex_init(&w->lock, NULL);
	w->refs = 1;
	w->callback = -1;
	w->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return w;
}

static void watch_unref(void *ctx)
{
	struct watch *w = ctx;
	unsigned left;

	pthread_mutex_lock(&w->lock);
	left = --w->refs;
	pthread_mutex_unlock(&w->lock);
	if (left > 0)
		return;
	cube_close_auto(&w->told);
	cube_free(w->items);
	(void)pthread_mutex_destroy(&w->lock);
	cube_free(w);
}

static void watch_ref(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->refs++;
	pthread_mutex_unlock(&w->lock);
}

static void watch_add(struct watch *w, const char *id, enum cube_state state)
{
	pthread_mutex_lock(&w->lock);
	if (w->n == w->room && w->room < WATCH_MAX) {
		size_t room = w->room > 0 ? w->room * 2 : 64;
		struct watch_item *more = cube_realloc(w->items, room * sizeof(*more));

		if (more != NULL) {
			w->items = more;
			w->room = room;
		}
	}
	if (w->n < w->room) {
		(void)snprintf(w->items[w->n].id, sizeof(w->items[w->n].id), "%s", id);
		w->items[w->n++].state = state;
	} else {
		w->overflow = true;
	}
	pthread_mutex_unlock(&w->lock);
	(void)eventfd_write(w->told, 1);
}

/* By libvirt's event. What is not here changes no state. */
static const struct {
	int event;
	enum cube_state state;
} watch_states[] = {
	{VIR_DOMAIN_EVENT_STARTED, CUBE_IS_RUNNING},  {VIR_DOMAIN_EVENT_RESUMED, CUBE_IS_RUNNING},
	{VIR_DOMAIN_EVENT_SUSPENDED, CUBE_IS_PAUSED}, {VIR_DOMAIN_EVENT_PMSUSPENDED, CUBE_IS_PAUSED},
	{VIR_DOMAIN_EVENT_STOPPED, CUBE_IS_STOPPED},  {VIR_DOMAIN_EVENT_CRASHED, CUBE_IS_STOPPED},
	{VIR_DOMAIN_EVENT_UNDEFINED, CUBE_IS_GONE},
};

static int watch_lifecycle(virConnectPtr conn, virDomainPtr dom, int event, int detail, void *ctx)
{
	char id[CUBE_ID_MAX + 1];

	(void)conn;
	(void)detail;
	libvirt_id_of(dom, id);
	for (size_t i = 0; i < CUBE_COUNT(watch_states); i++)
		if (event == watch_states[i].event)
			watch_add(ctx, id, watch_states[i].state);
	return 0;
}

static void watch_closed(virConnectPtr conn, int reason, void *ctx)
{
	struct watch *w = ctx;

	(void)conn;
	(void)reason;
	pthread_mutex_lock(&w->lock);
	w->closed = true;
	pthread_mutex_unlock(&w->lock);
	(void)eventfd_write(w->told, 1);
}

/* On the thread of a question, as is watch_end. */
static int watch_begin(struct libvirt_answer *a)
{
	struct watch *w = a->ctx;

	if (virConnectRef(a->conn) < 0)
		return -1;
	w->conn = a->conn;
	watch_ref(w);
	w->callback =
		virConnectDomainEventRegisterAny(a->conn, NULL, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
						 VIR_DOMAIN_EVENT_CALLBACK(watch_lifecycle), w, watch_unref);
	if (w->callback < 0) {
		watch_unref(w);
		return -1;
	}
	/* Without a reference: it is taken back before ours ends (watch_end), and a driver that cannot be lost forgets it. */
	(void)virConnectRegisterCloseCallback(a->conn, watch_closed, w, NULL);
	return 0;
}

static int watch_end(struct libvirt_answer *a)
{
	struct watch *w = a->ctx;

	if (w->callback >= 0) {
		(void)virConnectDomainEventDeregisterAny(w->conn, w->callback);
		(void)virConnectUnregisterCloseCallback(w->conn, watch_closed);
	}
	if (w->conn != NULL)
		(void)virConnectClose(w->conn);
	return 0;
}

static int watch_ask(struct cube_libvirt *v, struct watch *w, int (*fn)(struct libvirt_answer *a),
		     struct cube_cancel *cancel, struct cube_err *err)
{
	watch_ref(w);
	return libvirt_do(
		v,
		&(struct libvirt_ask){.fn = fn, .what = "follow libvirt", .ctx = w, .ctx_done = watch_unref},
		cancel, NULL, err);
}

/* Tells what there is: -EHOSTUNREACH when the connection has ended. */
static int watch_tell(struct watch *w, const struct cube_news *news)
{
	struct watch_item *items;
	size_t n;
	bool overflow, closed;

	pthread_mutex_lock(&w->lock);
	items = cube_steal(w->items);
	n = w->n;
	overflow = w->overflow;
	closed = w->closed;
	w->n = w->room = 0;
	w->overflow = false;
	pthread_mutex_unlock(&w->lock);
	for (size_t i = 0; i < n; i++)
		news->changed(news->ctx, items[i].id, items[i].state);
	if (overflow)
		news->begun(news->ctx);
	cube_free(items);
	return closed ? -EHOSTUNREACH : 0;
}

static int watch_run(struct watch *w, const struct cube_news *news, struct cube_cancel *cancel)
{
	struct pollfd fds[] = {{.fd = w->told, .events = POLLIN},
			       {.fd = cube_cancel_fd(cancel), .events = POLLIN}};
	eventfd_t n;
	int rc = 0;

	while (rc == 0) {
		(void)poll(fds, CUBE_COUNT(fds), -1);
		if (cube_cancel_fired(cancel))
			return -EINTR;
		(void)eventfd_read(w->told, &n);
		rc = watch_tell(w, news);
	}
	return rc;
}

int libvirt_watch(struct cube_backend *base, const struct cube_news *news, struct cube_cancel *cancel,
		  struct cube_err *err)
{
	struct cube_libvirt *v = libvirt_of(base);
	struct watch *w = watch_new();
	int rc;

	if (w == NULL)
		return cube_fail(err, -ENOMEM, "out of memory");
	rc = w->told < 0 ? cube_fail(err, -EMFILE, "out of descriptors")
			 : watch_ask(v, w, watch_begin, cancel, err);
	if (rc == 0) {
		news->begun(news->ctx);
		rc = watch_run(w, news, cancel);
		rc = cube_fail(err, rc,
			       rc == -EINTR ? "cancelled" : "libvirt at %.150s has ended the connection",
			       v->uri);
	}
	(void)watch_ask(v, w, watch_end, NULL, NULL);
	watch_unref(w);
	return rc;
}
