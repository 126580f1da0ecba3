/* SPDX-License-Identifier: Apache-2.0 */
/* One question to libvirt.
 *
 * Its functions block for as long as a hypervisor pleases, and cannot be interrupted. So each question has a thread, and who
 * asks waits for that, for the cancel object and for the clock. A question that nobody waits for any more ends by itself
 * when it can; it holds the connection, never the instance. */
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
#include "backends/base/clock.h"

#define ASK_ALIVE_S     5 /* between two signs of life of the other side, ... */
#define ASK_ALIVE_COUNT 3 /* of which so many may be missing */
#define ASK_MS_NS       UINT64_C(1000000)
#define ASK_STACK       ((size_t)512 << 10)

/* ---- the connection ---- */

struct libvirt_conn {
	pthread_mutex_t lock; /* guards refs and now */
	unsigned refs;
	virConnectPtr now; /* NULL: there is none */
	char uri[256];
};

struct libvirt_conn *libvirt_conn_new(const char *uri)
{
	struct libvirt_conn *c = cube_calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	(void)pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	(void)snprintf(c->uri, sizeof(c->uri), "%s", uri);
	return c;
}

static void conn_ref(struct libvirt_conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->refs++;
	pthread_mutex_unlock(&c->lock);
}

void libvirt_conn_unref(struct libvirt_conn *c)
{
	unsigned left;

	if (c == NULL)
		return;
	pthread_mutex_lock(&c->lock);
	left = --c->refs;
	pthread_mutex_unlock(&c->lock);
	if (left > 0)
		return;
	if (c->now != NULL)
		(void)virConnectClose(c->now);
	(void)pthread_mutex_destroy(&c->lock);
	cube_free(c);
}

/* Another one takes its place with the next question. */
static void conn_drop(struct libvirt_conn *c, virConnectPtr dead)
{
	virConnectPtr old = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->now == dead)
		old = cube_steal(c->now);
	pthread_mutex_unlock(&c->lock);
	if (old != NULL)
		(void)virConnectClose(old);
}

/* A reference to a connection that is alive, as far as is known; NULL: libvirt's error says why there is none. Two that
 * connect at once both do, and one of the two is kept. */
static virConnectPtr conn_get(struct libvirt_conn *c)
{
	virConnectPtr got = NULL, fresh = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->now != NULL && virConnectRef(c->now) == 0)
		got = c->now;
	pthread_mutex_unlock(&c->lock);
	if (got != NULL && virConnectIsAlive(got) == 1)
		return got;
	if (got != NULL) {
		conn_drop(c, got);
		(void)virConnectClose(got);
	}
	fresh = virConnectOpen(c->uri);
	if (fresh == NULL)
		return NULL;
	(void)virConnectSetKeepAlive(fresh, ASK_ALIVE_S, ASK_ALIVE_COUNT);
	pthread_mutex_lock(&c->lock);
	if (c->now == NULL && virConnectRef(fresh) == 0)
		c->now = fresh;
	pthread_mutex_unlock(&c->lock);
	return fresh;
}

/* ---- what goes wrong ---- */

/* By libvirt's number. What is not here is an error of the other side's own. */
static const struct {
	int theirs, ours;
} ask_errors[] = {
	{VIR_ERR_NO_DOMAIN, -ENOENT},
	{VIR_ERR_NO_CONNECT, -EHOSTUNREACH},
	{VIR_ERR_RPC, -EHOSTUNREACH},
	{VIR_ERR_NO_SERVER, -EHOSTUNREACH},
	{VIR_ERR_AUTH_FAILED, -EACCES},
	{VIR_ERR_AUTH_CANCELLED, -EACCES},
	{VIR_ERR_AUTH_UNAVAILABLE, -EACCES},
	{VIR_ERR_ACCESS_DENIED, -EACCES},
	{VIR_ERR_NO_SUPPORT, -EOPNOTSUPP},
	{VIR_ERR_OPERATION_UNSUPPORTED, -EOPNOTSUPP},
	{VIR_ERR_CONFIG_UNSUPPORTED, -EOPNOTSUPP},
	{VIR_ERR_OPERATION_TIMEOUT, -ETIMEDOUT},
	{VIR_ERR_OPERATION_INVALID, -EBUSY},
	{VIR_ERR_DOM_EXIST, -EEXIST},
	{VIR_ERR_NO_MEMORY, -ENOMEM},
};

int libvirt_fail(struct cube_err *err, const char *what)
{
	const virError *e = virGetLastError();
	int code = -EREMOTEIO;

	if (e == NULL)
		return cube_fail(err, code, "%s: libvirt does not say why not", what);
	for (size_t i = 0; i < CUBE_COUNT(ask_errors); i++)
		if (ask_errors[i].theirs == e->code)
			code = ask_errors[i].ours;
	/* Of its transport, whatever the number. */
	if (e->code == VIR_ERR_SYSTEM_ERROR && (e->domain == VIR_FROM_RPC || e->domain == VIR_FROM_REMOTE))
		code = e->int1 == EACCES || e->int1 == EPERM ? -EACCES : -EHOSTUNREACH;
	return cube_fail(err, code, "%s: %.250s", what,
			 e->message != NULL ? e->message : "libvirt does not say why not");
}

/* ---- a question ---- */

struct question {
	pthread_mutex_t lock; /* guards refs */
	unsigned refs;        /* who asks, the thread */
	int done;             /* an eventfd */
	struct libvirt_conn *conn;
	int (*fn)(struct libvirt_answer *a);
	char ref[LIBVIRT_REF]; /* "": about no domain */
	bool uuid;
	char what[CUBE_ID_MAX + 80];
	char *text;
	void (*ctx_done)(void *ctx);
	struct libvirt_answer answer;
	int rc;
	struct cube_err err;
};

static void question_unref(struct question *q)
{
	unsigned left;

	pthread_mutex_lock(&q->lock);
	left = --q->refs;
	pthread_mutex_unlock(&q->lock);
	if (left > 0)
		return;
	libvirt_conn_unref(q->conn);
	if (q->ctx_done != NULL)
		q->ctx_done(q->answer.ctx);
	cube_free(q->answer.got);
	cube_free(q->text);
	cube_close_auto(&q->done);
	(void)pthread_mutex_destroy(&q->lock);
	cube_free(q);
}

/* On its thread: what libvirt says, in our words. */
static int question_ask(struct question *q)
{
	struct libvirt_answer *a = &q->answer;
	int rc = 0;

	if (q->ref[0] != '\0') {
		a->dom = q->uuid ? virDomainLookupByUUIDString(a->conn, q->ref)
				 : virDomainLookupByName(a->conn, q->ref);
		if (a->dom == NULL)
			return libvirt_fail(&q->err, q->what);
	}
	if (q->fn(a) < 0)
		rc = libvirt_fail(&q->err, q->what);
	if (a->dom != NULL)
		(void)virDomainFree(a->dom);
	a->dom = NULL;
	return rc;
}

static void *question_run(void *ctx)
{
	struct question *q = ctx;
	struct libvirt_answer *a = &q->answer;

	virResetLastError();
	a->conn = conn_get(q->conn);
	if (a->conn == NULL) {
		q->rc = libvirt_fail(&q->err, q->what);
		if (q->rc != -EACCES)
			q->rc = q->err.code = -EHOSTUNREACH;
	} else {
		q->rc = question_ask(q);
		if (q->rc == -EHOSTUNREACH)
			conn_drop(q->conn, a->conn);
		(void)virConnectClose(a->conn);
		a->conn = NULL;
	}
	(void)pthread_mutex_lock(&q->lock); /* who waits has all of it when he has had the lock */
	(void)eventfd_write(q->done, 1);
	(void)pthread_mutex_unlock(&q->lock);
	question_unref(q);
	return NULL;
}

static int question_thread(struct question *q)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;
	int rc;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, ASK_STACK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	q->refs = 2;
	rc = pthread_create(&thread, &attr, question_run, q);
	if (rc != 0)
		q->refs = 1;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return -rc;
}

/* Until it is answered. */
static int question_wait(const struct question *q, uint32_t timeout_s, struct cube_cancel *cancel)
{
	uint64_t end = cube_clock_mono() + (uint64_t)timeout_s * 1000 * ASK_MS_NS;
	struct pollfd fds[] = {{.fd = q->done, .events = POLLIN},
			       {.fd = cube_cancel_fd(cancel), .events = POLLIN}};

	for (;;) {
		uint64_t now = cube_clock_mono();
		int n = poll(fds, CUBE_COUNT(fds), now < end ? (int)((end - now) / ASK_MS_NS) + 1 : 0);

		if (fds[0].revents != 0 && n > 0)
			return 0;
		if (cube_cancel_fired(cancel))
			return -EINTR;
		if (n == 0 && cube_clock_mono() >= end)
			return -ETIMEDOUT;
	}
}

static struct question *question_new(struct cube_libvirt *v, const struct libvirt_ask *ask,
				     struct cube_err *err)
{
	struct question *q = cube_calloc(1, sizeof(*q));
	int rc = 0;

	if (q == NULL) {
		(void)cube_fail(err, -ENOMEM, "out of memory");
		if (ask->ctx_done != NULL)
			ask->ctx_done(ask->ctx);
		return NULL;
	}
	(void)pthread_mutex_init(&q->lock, NULL);
	q->refs = 1;
	q->answer.ctx = ask->ctx;
	q->ctx_done = ask->ctx_done;
	q->conn = v->conn;
	conn_ref(q->conn);
	q->fn = ask->fn;
	q->answer.n = ask->n;
	q->done = eventfd(0, EFD_CLOEXEC);
	if (ask->text != NULL)
		q->text = cube_strdup(ask->text);
	q->answer.text = q->text;
	if (q->done < 0 || (ask->text != NULL && q->text == NULL))
		rc = cube_fail(err, q->done < 0 ? -errno : -ENOMEM, "%s: out of memory or descriptors",
			       ask->what);
	if (rc == 0 && ask->id != NULL)
		rc = libvirt_ref(ask->id, q->ref, err);
	q->uuid = ask->id != NULL && !libvirt_is_ours(ask->id);
	(void)snprintf(q->what, sizeof(q->what), "%s%s%s", ask->what, ask->id != NULL ? " sandbox " : "",
		       ask->id != NULL ? ask->id : "");
	if (rc == 0)
		return q;
	question_unref(q);
	return NULL;
}

int libvirt_do(struct cube_libvirt *v, const struct libvirt_ask *ask, struct cube_cancel *cancel,
	       struct libvirt_answer *ret, struct cube_err *err)
{
	struct question *q = question_new(v, ask, err);
	uint32_t timeout_s = ask->timeout_s != 0 ? ask->timeout_s : v->timeout_s;
	int rc;

	if (q == NULL)
		return err != NULL ? err->code : -ENOMEM;
	rc = question_thread(q);
	if (rc < 0) {
		rc = cube_fail(err, rc, "%s: no thread can be started: %s", q->what, cube_errno_text(rc));
		question_unref(q);
		return rc;
	}
	rc = question_wait(q, timeout_s, cancel);
	(void)pthread_mutex_lock(&q->lock);
	(void)pthread_mutex_unlock(&q->lock);
	if (rc == -ETIMEDOUT)
		rc = cube_fail(err, rc, "%s: libvirt at %.150s has not answered for %u seconds", q->what,
			       v->uri, timeout_s);
	else if (rc < 0)
		rc = cube_fail(err, rc, "%s: cancelled", q->what);
	else if (q->rc < 0)
		rc = cube_fail(err, q->rc, "%s", q->err.text);
	else if (ret != NULL) {
		*ret = q->answer;
		ret->text = NULL;
		q->answer.got = NULL;
		q->ctx_done = NULL; /* ret->ctx is the caller's */
	}
	question_unref(q);
	return rc;
}
