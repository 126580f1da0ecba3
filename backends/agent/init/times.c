/* SPDX-License-Identifier: Apache-2.0 */
/* The end of its life, and what ended commands left.
 *
 * A daemon that is there ends a sandbox itself, by its backend. So the deadline is only looked at while nobody is
 * connected, and a daemon that went just then has a moment to come back. */
#include "backends/agent/init/times.h"

#include "backends/agent/init/actions.h"
#include "backends/agent/init/conn.h"
#include "backends/agent/init/ev.h"
#include "backends/agent/init/everyone.h"
#include "backends/agent/init/job.h"
#include "backends/agent/init/report.h"

#define S_NS       (1000 * INIT_MS)
#define GRACE      (2 * S_NS)  /* for a daemon to come back */
#define STOP_GRACE (2 * S_NS)  /* between TERM and KILL, where nobody watches */
#define LOOK_AGAIN (60 * S_NS) /* the timers' clock stands still while the machine is suspended */
#define LEFT_FIRST (1 * S_NS)
#define LEFT_MAX   (10 * S_NS)

static struct {
	enum cube_wire_end what;
	uint64_t at; /* init_boottime */
	struct init_timer timer;
	uint64_t still; /* since when (init_now) everything stands still for it; 0: it does not */
} life;

static struct {
	struct init_timer timer;
	uint64_t wait; /* until the next look */
} left;

/* ---- The end ---- */

static void life_still(void)
{
	if (life.still != 0)
		return;
	life.still = init_now();
	init_everyone_freeze(true);
}

static void life_look(struct init_timer *t)
{
	uint64_t now = init_boottime(), wait;

	if (life.what == CUBE_WIRE_END_NONE || init_conn_up())
		return;
	if (now < life.at) {
		wait = life.at - now < LOOK_AGAIN ? life.at - now : LOOK_AGAIN;
		init_timer_set(t, init_now() + wait, life_look);
	} else if (life.what == CUBE_WIRE_END_STOP) {
		init_actions_shutdown(STOP_GRACE);
	} else {
		life_still();
	}
}

void init_times_deadline(uint64_t ns, enum cube_wire_end what)
{
	life.what = what;
	life.at = init_boottime() + ns;
}

void init_times_alone(void)
{
	if (life.what != CUBE_WIRE_END_NONE)
		init_timer_set(&life.timer, init_now() + GRACE, life_look);
}

void init_times_met(void)
{
	init_timer_stop(&life.timer);
	if (life.still == 0)
		return;
	init_job_paused(init_now() - life.still);
	life.still = 0;
	life.what = CUBE_WIRE_END_NONE; /* that was it; the daemon says what comes next */
	init_everyone_freeze(false);
}

/* ---- What is left ---- */

static void left_again(struct init_timer *t)
{
	uint64_t n;

	if (!init_conn_up())
		return; /* nobody asks any more */
	n = init_everyone_count();
	if (n == 0) {
		init_tell_left(init_everyone_holds() ? CUBE_WIRE_LEFT_HELD : 0);
		return;
	}
	left.wait = left.wait * 2 < LEFT_MAX ? left.wait * 2 : LEFT_MAX;
	init_timer_set(t, init_now() + left.wait, left_again);
}

void init_times_look(void)
{
	uint64_t n = init_everyone_count();

	init_tell_left(n == 0 && init_everyone_holds() ? CUBE_WIRE_LEFT_HELD : n);
	init_timer_stop(&left.timer);
	left.wait = LEFT_FIRST;
	if (n > 0)
		init_timer_set(&left.timer, init_now() + left.wait, left_again);
}
