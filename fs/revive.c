/* SPDX-License-Identifier: Apache-2.0 */
/* Whether, and when, another worker follows one that ended. */
#include "fs/revive.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/log.h"
#include "fs/takeover.h"

#define REVIVE_FIRST_MS 50
#define REVIVE_MOST_MS  5000

int cube_revive_init(struct cube_revive *v, int keep_fd, struct cube_err *err)
{
	int r;

	*v = (struct cube_revive){.keep = NULL};
	r = cube_keep_open(keep_fd, &v->keep, err);
	if (r == 0)
		v->served = atomic_load(&v->keep->head->lives) > 0; /* another program's */
	return r;
}

void cube_revive_begin(struct cube_revive *v)
{
	v->began = cube_clock_mono();
	atomic_fetch_add(&v->keep->head->lives, 1);
	atomic_store(&v->keep->head->ready, 0);
	v->serves = 0;
}

void cube_revive_look(struct cube_revive *v)
{
	if (v->serves == 0 && atomic_load(&v->keep->head->ready) != 0)
		v->serves = cube_clock_mono();
}

bool cube_revive_hung(struct cube_revive *v, unsigned seconds)
{
	uint32_t limit = atomic_load(&v->keep->head->canary);

	if (limit == 0 || seconds < limit || v->serves == 0 || v->serves == UINT64_MAX ||
	    cube_clock_mono() - v->serves < limit * UINT64_C(1000000000))
		return false;
	v->serves = UINT64_MAX;
	atomic_store(&v->keep->head->hung, seconds);
	return true;
}

/* True: told to end meanwhile. */
static bool revive_wait(int signal_fd, unsigned ms)
{
	uint64_t until = cube_clock_mono() + ms * UINT64_C(1000000), now;
	struct pollfd p = {.fd = signal_fd, .events = POLLIN};
	struct signalfd_siginfo info;

	while ((now = cube_clock_mono()) < until) {
		if (poll(&p, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD && info.ssi_signo != CUBE_REVIVE_SILENT)
				return true;
	}
	return false;
}

static bool revive_may(struct cube_revive *v, bool killed)
{
	struct cube_keep_head *h = v->keep->head;
	bool served = atomic_load(&h->ready) != 0;
	bool lasted = served && cube_clock_mono() - v->began >= CUBE_REVIVE_QUICK_S * UINT64_C(1000000000);

	v->served = v->served || served;
	if (lasted)
		v->in_a_row = 0;
	else if (!killed) /* whoever kills them may go on as long as he likes */
		v->in_a_row++;
	return v->served && v->in_a_row < CUBE_REVIVE_MOST;
}

static unsigned revive_pause(const struct cube_revive *v)
{
	unsigned ms = v->in_a_row > 1 ? REVIVE_FIRST_MS << (v->in_a_row - 2) : 0;

	return ms < REVIVE_MOST_MS ? ms : REVIVE_MOST_MS;
}

bool cube_revive_again(struct cube_revive *v, int status, bool told, int signal_fd)
{
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	if (told || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return false;
	cube_takeover_tidy(v->keep);
	if (!revive_may(v, killed)) {
		if (v->served)
			cube_log(CUBE_LOG_ERROR, "supervise",
				 "%u workers in a row ended at once: the mount is given up, the sandboxes "
				 "stay",
				 v->in_a_row);
		return false;
	}
	atomic_store(&v->keep->head->signal, WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
	atomic_fetch_add(&v->keep->head->deaths, 1);
	cube_log(CUBE_LOG_WARNING, "supervise", "the worker ended (%s %d): another one takes over",
		 WIFSIGNALED(status) ? "signal" : "code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return !revive_wait(signal_fd, revive_pause(v));
}

void cube_revive_done(struct cube_revive *v)
{
	cube_keep_close(v->keep);
	v->keep = NULL;
}
