/* SPDX-License-Identifier: Apache-2.0 */
/* The worker, as one of three processes: what it asks of the keeper, and how it begins. */
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "fs/daemon.h"
#include "fs/process.h"
#include "fs/tree/proc.h"

#define WORKER_ANSWER_MS 1000

static void worker_ready(void *ctx)
{
	struct cube_process *p = ctx;

	cube_process_say(p->start, CUBE_PROCESS_READY);
	cube_close_auto(&p->start->ready_fd);
	p->start->ready_fd = -1;
}

static void worker_unmount(void *ctx)
{
	const struct cube_process *p = ctx;
	struct cube_keeper_ask ask = {.what = CUBE_KEEPER_UNMOUNT};

	(void)send(p->keeper_fd, &ask, sizeof(ask), MSG_NOSIGNAL);
}

/* How did that process end? The keeper is in the namespace of those who use the mount; we may be in one of
 * our own, from which it cannot be seen. One question at a time; a keeper that is gone answers nothing. */
static int worker_ask_exit(void *ctx, pid_t pid)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	const struct cube_process *p = ctx;
	struct cube_keeper_ask ask = {.what = CUBE_KEEPER_EXIT, .pid = pid};
	struct pollfd answer = {.fd = p->keeper_fd, .events = POLLIN};
	int32_t signal = 0;

	(void)pthread_mutex_lock(&one);
	if (send(p->keeper_fd, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask) ||
	    poll(&answer, 1, WORKER_ANSWER_MS) != 1 ||
	    recv(p->keeper_fd, &signal, sizeof(signal), MSG_DONTWAIT) != sizeof(signal))
		signal = 0;
	(void)pthread_mutex_unlock(&one);
	return signal;
}

int cube_worker_run(struct cube_process *p)
{
	const struct cube_opts *opts = p->start->opts;
	struct cube_daemon_options o = {.state_dir = p->start->state.path,
					.conf = p->start->conf,
					.fuse_fd = p->fuse_fd,
					.keep_fd = p->keep_fd,
					.uid = p->uid,
					.gid = p->gid,
					.symlinks_raw = opts->symlinks_raw,
					.owners_raw = opts->owners_raw,
					.debug = opts->debug,
					.p9 = opts->p9,
					.n_p9 = opts->n_p9,
					.p9_token_file = opts->p9_token_file,
					.ready = worker_ready,
					.unmount = worker_unmount,
					.ctx = p};
	struct cube_err err = {0};

	if (p->uid != 0)
		cube_proc_ask(worker_ask_exit, p);
	return cube_daemon_run(&o, &err) < 0 ? cube_process_fail(p->start, &err) : 0;
}
