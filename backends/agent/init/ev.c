/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop over epoll, a signalfd and a list of timers. */
#include "backends/agent/init/ev.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define EV_BATCH 32
/* Woken this much later than asked for, the agent was frozen with everything else: a message about how
 * long may be on its way, and the time-outs wait for it. */
#define EV_LATE  (UINT64_C(1000) * INIT_MS)
#define EV_GRACE (UINT64_C(500) * INIT_MS)

static struct {
	int epoll;
	bool stop;
	struct init_ev signals;
	struct cube_list timers;   /* in no order: there are as many as running jobs that have one */
	struct epoll_event *batch; /* what init_ev_del must forget about */
	int batch_len;
	uint64_t hold; /* no timer before this */
	void (*on_child)(void);
	void (*on_signal)(int sig);
} ev_loop = {.epoll = -1};

static uint64_t ev_clock(clockid_t id)
{
	struct timespec t = {0};

	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000 * INIT_MS + (uint64_t)t.tv_nsec;
}

uint64_t init_now(void)
{
	return ev_clock(CLOCK_MONOTONIC);
}

uint64_t init_boottime(void)
{
	return ev_clock(CLOCK_BOOTTIME);
}

uint64_t init_wall(void)
{
	return ev_clock(CLOCK_REALTIME);
}

/* A sender in our own process namespace has a number there, one outside has 0: what runs inside must not be
 * able to end its sandbox. */
static bool ev_is_inside(const struct signalfd_siginfo *info)
{
	return getpid() == 1 && info->ssi_pid != 0;
}

static void ev_signals(struct init_ev *ev, uint32_t events)
{
	struct signalfd_siginfo info[8];
	bool child = false;
	ssize_t n;

	(void)events;
	while ((n = read(ev->fd, info, sizeof(info))) > 0) {
		for (size_t i = 0; i < (size_t)n / sizeof(info[0]); i++) {
			if (info[i].ssi_signo == SIGCHLD)
				child = true;
			else if (!ev_is_inside(&info[i]))
				ev_loop.on_signal((int)info[i].ssi_signo);
		}
	}
	if (child)
		ev_loop.on_child();
}

int init_ev_open(void (*on_child)(void), void (*on_signal)(int sig))
{
	sigset_t all;
	int fd;

	cube_list_init(&ev_loop.timers);
	ev_loop.on_child = on_child;
	ev_loop.on_signal = on_signal;
	ev_loop.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (ev_loop.epoll < 0)
		return -errno;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, NULL);
	/* What the kernel raises for a fault must not be read but kill: a loop of faults would never end. */
	(void)sigdelset(&all, SIGSEGV);
	(void)sigdelset(&all, SIGBUS);
	(void)sigdelset(&all, SIGFPE);
	(void)sigdelset(&all, SIGILL);
	fd = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	return init_ev_add(&ev_loop.signals, fd, EPOLLIN, ev_signals);
}

int init_ev_add(struct init_ev *ev, int fd, uint32_t events, void (*fn)(struct init_ev *, uint32_t))
{
	struct epoll_event e = {.events = events, .data = {.ptr = ev}};

	if (epoll_ctl(ev_loop.epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	*ev = (struct init_ev){.fd = fd, .events = events, .fn = fn};
	return 0;
}

void init_ev_mod(struct init_ev *ev, uint32_t events)
{
	struct epoll_event e = {.events = events, .data = {.ptr = ev}};

	if (ev->fn == NULL || ev->events == events)
		return;
	ev->events = events;
	(void)epoll_ctl(ev_loop.epoll, EPOLL_CTL_MOD, ev->fd, &e);
}

void init_ev_del(struct init_ev *ev)
{
	if (ev->fn == NULL)
		return;
	(void)epoll_ctl(ev_loop.epoll, EPOLL_CTL_DEL, ev->fd, NULL);
	ev->fn = NULL;
	for (int i = 0; i < ev_loop.batch_len; i++) {
		if (ev_loop.batch[i].data.ptr == ev)
			ev_loop.batch[i].data.ptr = NULL;
	}
}

void init_timer_set(struct init_timer *t, uint64_t at, void (*fn)(struct init_timer *))
{
	if (t->at == 0)
		cube_list_push(&ev_loop.timers, &t->link);
	t->at = at > 0 ? at : 1;
	t->fn = fn;
}

void init_timer_stop(struct init_timer *t)
{
	if (t->at == 0)
		return;
	cube_list_remove(&t->link);
	t->at = 0;
}

/* The first moment at which a timer may fire; 0: there is none. */
static uint64_t ev_next(void)
{
	uint64_t next = 0;

	cube_list_each (i, &ev_loop.timers) {
		const struct init_timer *t = cube_list_entry(i, struct init_timer, link);

		if (next == 0 || t->at < next)
			next = t->at;
	}
	return next != 0 && next < ev_loop.hold ? ev_loop.hold : next;
}

/* One round of descriptors: how many there were. */
static int ev_wait(int timeout_ms)
{
	struct epoll_event batch[EV_BATCH];
	int n = epoll_wait(ev_loop.epoll, batch, EV_BATCH, timeout_ms);

	ev_loop.batch = batch;
	ev_loop.batch_len = n > 0 ? n : 0;
	for (int i = 0; i < ev_loop.batch_len; i++) {
		struct init_ev *ev = batch[i].data.ptr;

		if (ev != NULL)
			ev->fn(ev, batch[i].events);
	}
	ev_loop.batch_len = 0;
	ev_loop.batch = NULL;
	return n;
}

static struct init_timer *ev_due(uint64_t now)
{
	cube_list_each (i, &ev_loop.timers) {
		struct init_timer *t = cube_list_entry(i, struct init_timer, link);

		if (t->at <= now)
			return t;
	}
	return NULL;
}

/* Timers whose time has come, after everything that can be read was read. */
static void ev_fire(uint64_t asked)
{
	uint64_t now = init_now();
	struct init_timer *t;

	if (asked == 0 || now < asked)
		return;
	if (now > asked + EV_LATE)
		ev_loop.hold = now + EV_GRACE;
	while (ev_wait(0) > 0)
		;
	if (now < ev_loop.hold)
		return;
	/* Those that were due at @now: one that sets itself again waits for the next round. */
	while ((t = ev_due(now)) != NULL) {
		init_timer_stop(t);
		t->fn(t);
	}
}

static int ev_timeout(uint64_t next)
{
	uint64_t now = init_now();
	uint64_t ms;

	if (next == 0)
		return -1;
	if (next <= now)
		return 0;
	ms = (next - now + INIT_MS - 1) / INIT_MS;
	return ms > 60000 ? 60000 : (int)ms;
}

void init_ev_run(void (*after)(void))
{
	while (!ev_loop.stop) {
		uint64_t next = ev_next();

		(void)ev_wait(ev_timeout(next));
		ev_fire(next);
		after();
	}
}

void init_ev_stop(void)
{
	ev_loop.stop = true;
}
