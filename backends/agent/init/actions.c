/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's messages, put into effect. What names a job or a session that is not there is passed over: it
 * ended while the message was on its way. */
#include "backends/agent/init/actions.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/agent/init/conn.h"
#include "backends/agent/init/everyone.h"
#include "backends/agent/init/group.h"
#include "backends/agent/init/job.h"
#include "backends/agent/init/pty.h"
#include "backends/agent/init/session.h"
#include "backends/agent/init/stream.h"
#include "backends/agent/init/times.h"

#define SHUTDOWN_POLL (20 * INIT_MS)
#define SHUTDOWN_END  (2000 * INIT_MS) /* behind KILL */

static uint64_t boot;

void init_actions_setup(void)
{
	if (getrandom(&boot, sizeof(boot), GRND_NONBLOCK) != (ssize_t)sizeof(boot) || boot == 0)
		boot = init_wall() | 1;
}

static int act_hello(const struct cube_wire_hello *m)
{
	const struct cube_wire_hello answer = {
		.min = CUBE_WIRE_VERSION_MIN,
		.max = CUBE_WIRE_VERSION_MAX,
		.caps = (init_conn_passes_fds() ? CUBE_WIRE_CAP_FDS : 0) |
			(init_group_exact() ? CUBE_WIRE_CAP_GROUPS : 0) |
			(init_pty_there() ? CUBE_WIRE_CAP_TTY : 0) |
			(geteuid() == 0 ? CUBE_WIRE_CAP_USERS : 0) | CUBE_WIRE_CAP_TIMES | CUBE_WIRE_CAP_HELD,
		.boot = boot,
	};

	(void)m;
	init_times_met();
	return init_conn_greet(&answer);
}

static int act_start(uint64_t id, const struct cube_wire_start *m, void *message, int out_fd, int order_fd)
{
	return init_job_start(id, m, message, out_fd, order_fd);
}

static int act_input(uint64_t id, const void *data, size_t len)
{
	struct init_job *job = init_job_find(id);

	return job != NULL && !job->ended ? init_input_add(&job->input, data, len) : 0;
}

static int act_eof(uint64_t id)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_input_end(&job->input);
	return 0;
}

static int act_kill(uint64_t id, int sig)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_job_kill(job, sig);
	return 0;
}

static int act_interrupt(uint64_t id)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_job_interrupt(job);
	return 0;
}

static int act_winsize(uint64_t id, uint16_t rows, uint16_t cols)
{
	const struct init_job *job = init_job_find(id);

	if (job != NULL && job->tty >= 0)
		init_pty_size(job->tty, rows, cols);
	return 0;
}

static int act_timeout(uint64_t id, uint32_t seconds)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_job_timeout(job, seconds);
	return 0;
}

static int act_forget(uint64_t id)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_job_forget(job);
	return 0;
}

static int act_session_close(uint64_t id, bool reset)
{
	struct init_session *s = init_session_find(id);

	if (s != NULL)
		init_session_close(s, reset);
	return 0;
}

/* Their ends will say that it was us. */
static int all_sig;

static void act_note_signal(struct init_job *job)
{
	if (!job->ended)
		job->signals |= UINT64_C(1) << (all_sig - 1);
}

static int act_kill_all(int sig)
{
	all_sig = sig;
	init_job_each(act_note_signal);
	init_everyone_signal(sig);
	return 0;
}

static int act_freeze(bool on)
{
	init_everyone_freeze(on);
	return 0;
}

static int act_paused(uint64_t ms)
{
	init_job_paused(ms * INIT_MS);
	return 0;
}

static int act_ack(uint64_t id, uint64_t upto)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_stream_ack(job, upto);
	return 0;
}

static int act_resume(uint64_t id, uint64_t from)
{
	struct init_job *job = init_job_find(id);

	if (job != NULL)
		init_stream_resume(job, from);
	return 0;
}

static int act_look(void)
{
	init_times_look();
	return 0;
}

static int act_deadline(uint64_t ms, enum cube_wire_end what)
{
	init_times_deadline(ms * INIT_MS, what);
	return 0;
}

const struct init_handler init_actions = {
	.hello = act_hello,
	.start = act_start,
	.input = act_input,
	.eof = act_eof,
	.kill = act_kill,
	.interrupt = act_interrupt,
	.winsize = act_winsize,
	.timeout = act_timeout,
	.forget = act_forget,
	.session_close = act_session_close,
	.kill_all = act_kill_all,
	.freeze = act_freeze,
	.paused = act_paused,
	.ack = act_ack,
	.resume = act_resume,
	.look = act_look,
	.deadline = act_deadline,
};

static struct init_timer shutdown_timer;
static uint64_t shutdown_kill; /* when patience ends; 0: nobody asked for the end */

static bool shutdown_running;

static void shutdown_note(struct init_job *job)
{
	shutdown_running = shutdown_running || !job->ended;
}

/* Nobody is left, and the ends have been noted (the loop tells them before it stops). */
static bool shutdown_over(void)
{
	shutdown_running = false;
	init_job_each(shutdown_note);
	return !shutdown_running && !init_everyone_left();
}

static void shutdown_look(struct init_timer *t)
{
	uint64_t now = init_now();

	if (shutdown_over() || now > shutdown_kill + SHUTDOWN_END) {
		init_ev_stop();
		return;
	}
	if (now >= shutdown_kill)
		(void)act_kill_all(SIGKILL);
	init_timer_set(t, now + SHUTDOWN_POLL, shutdown_look);
}

/* A shell at a terminal ignores TERM; that its terminal goes away it hears. */
static void shutdown_hang_up(struct init_job *job)
{
	if (job->tty >= 0 && job->group != NULL && !job->ended)
		init_group_signal(job->group, SIGHUP, false);
}

void init_actions_shutdown(uint64_t grace)
{
	uint64_t at = init_now() + grace;

	if (shutdown_kill != 0) {
		shutdown_kill = at < shutdown_kill ? at : shutdown_kill;
		return;
	}
	shutdown_kill = at;
	(void)act_kill_all(SIGTERM);
	init_job_each(shutdown_hang_up);
	(void)act_kill_all(SIGCONT);
	shutdown_look(&shutdown_timer);
}
