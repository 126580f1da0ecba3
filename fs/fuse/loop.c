/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that read requests and serve them. */
#include "fs/fuse/loop.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"
#include "fs/fuse/room.h"

#define LOOP_IDLE    16
#define LOOP_SIGNAL  (SIGRTMIN + 4)
#define LOOP_STEP_NS 5000000
#define LOOP_SMALL   4096 /* such a request is moved, so that the memory it was read into is another thread's */

struct loop {
	struct fuse_session *se;
	struct cube_wire *wire;
	struct cube_rooms rooms;
	pthread_mutex_t lock;
	sem_t over;
	struct cube_list threads;
	unsigned count, idle, most;
	bool ended;
	int error;
};

struct loop_thread {
	struct cube_list list;
	struct loop *l;
	pthread_t id;
	atomic_bool waits; /* for a request */
	void *room;
	char small[LOOP_SMALL];
};

static void *loop_serve(void *arg);

static int loop_start(struct loop *l)
{
	struct loop_thread *t = cube_calloc(1, sizeof(*t));
	int code;

	if (t == NULL)
		return -ENOMEM;
	t->l = l;
	code = pthread_create(&t->id, NULL, loop_serve, t);
	if (code != 0) {
		cube_free(t);
		return -code;
	}
	cube_list_push(&l->threads, &t->list);
	l->count++;
	l->idle++;
	return 0;
}

static int loop_receive(struct loop_thread *t, struct fuse_buf *buf)
{
	int n;

	*buf = (struct fuse_buf){.mem = t->room};
	atomic_store(&t->waits, true);
	n = fuse_session_receive_buf(t->l->se, buf);
	atomic_store(&t->waits, false);
	if (n > 0 && (size_t)n <= sizeof(t->small)) {
		memcpy(t->small, t->room, (size_t)n);
		buf->mem = t->small;
		cube_room_give(&t->l->rooms, t->room);
		t->room = NULL;
	}
	return n;
}

static void loop_busy(struct loop *l)
{
	(void)pthread_mutex_lock(&l->lock);
	if (--l->idle == 0 && l->count < l->most && !l->ended)
		(void)loop_start(l); /* without it the next one waits for one of those that serve */
	(void)pthread_mutex_unlock(&l->lock);
}

/* False: there are enough others. */
static bool loop_again(struct loop_thread *t)
{
	struct loop *l = t->l;
	bool wanted;

	(void)pthread_mutex_lock(&l->lock);
	wanted = l->idle < LOOP_IDLE || l->ended;
	if (wanted) {
		l->idle++;
	} else {
		l->count--;
		cube_list_remove(&t->list);
		cube_room_give(&l->rooms, t->room); /* who joins the others does not wait for this one */
		(void)pthread_detach(t->id);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return wanted;
}

static void loop_end(struct loop *l, int error)
{
	(void)pthread_mutex_lock(&l->lock);
	l->ended = true;
	if (l->error == 0)
		l->error = error;
	(void)pthread_mutex_unlock(&l->lock);
	fuse_session_exit(l->se);
	(void)sem_post(&l->over);
}

static void *loop_serve(void *arg)
{
	struct loop_thread *t = arg;
	struct loop *l = t->l;
	struct fuse_buf buf;
	int n = 0;

	while (!fuse_session_exited(l->se)) {
		if (t->room == NULL)
			t->room = cube_room_take(&l->rooms);
		n = t->room != NULL ? loop_receive(t, &buf) : -ENOMEM;
		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		loop_busy(l);
		fuse_session_process_buf(l->se, &buf);
		cube_wire_served(l->wire);
		if (!loop_again(t)) {
			cube_free(t);
			return NULL;
		}
	}
	loop_end(l, n < 0 && n != -EINTR ? n : 0);
	return NULL;
}

static void loop_woken(int sig)
{
	(void)sig;
}

/* One that waits is woken, again where the signal came just before it waited; one that serves comes to its end. */
static void loop_join_one(struct loop_thread *t)
{
	struct timespec until;

	do {
		if (atomic_load(&t->waits))
			(void)pthread_kill(t->id, LOOP_SIGNAL);
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += LOOP_STEP_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(t->id, NULL, &until) == ETIMEDOUT);
}

static void loop_join(struct loop *l)
{
	struct cube_list *it;

	(void)pthread_mutex_lock(&l->lock);
	l->ended = true;
	(void)pthread_mutex_unlock(&l->lock);
	while ((it = cube_list_pop(&l->threads)) != NULL) {
		struct loop_thread *t = cube_list_entry(it, struct loop_thread, list);

		loop_join_one(t);
		cube_room_give(&l->rooms, t->room);
		cube_free(t);
	}
}

int cube_fuse_loop(struct fuse_session *se, struct cube_wire *wire, unsigned most)
{
	struct loop l = {.se = se, .wire = wire, .most = most};
	struct sigaction woken = {.sa_handler = loop_woken};
	int code;

	(void)sigemptyset(&woken.sa_mask);
	(void)sigaction(LOOP_SIGNAL, &woken, NULL);
	cube_rooms_init(&l.rooms);
	cube_list_init(&l.threads);
	(void)pthread_mutex_init(&l.lock, NULL);
	(void)sem_init(&l.over, 0, 0);
	(void)pthread_mutex_lock(&l.lock);
	code = loop_start(&l);
	(void)pthread_mutex_unlock(&l.lock);
	while (code == 0 && !fuse_session_exited(se)) /* who ends it may send this thread a signal */
		(void)sem_wait(&l.over);
	fuse_session_exit(se);
	loop_join(&l);
	(void)sem_destroy(&l.over);
	(void)pthread_mutex_destroy(&l.lock);
	cube_rooms_done(&l.rooms);
	fuse_session_reset(se);
	return code < 0 ? code : l.error;
}
