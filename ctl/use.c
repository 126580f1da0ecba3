/* SPDX-License-Identifier: Apache-2.0 */
/* Is a sandbox in use, and if not, since when?
 *
 * Most of it is looked up when somebody asks, so that nothing on the way of a command or of a file pays for it:
 * jobs are in their list, files are counted where they are opened, a lease is a time. What has no such place of
 * its own is counted by begin and end. What ended commands left running only the far side can see: times.c asks
 * it when everything else says that it is idle. */
#include "backends/base/clock.h"
#include "ctl/ctl_priv.h"
#include "ctl/volume_priv.h"

/* The newest are at the end, and are those that run. */
static bool use_by_jobs(const struct cube_cube *c)
{
	for (struct cube_list *i = c->jobs.prev; i != &c->jobs; i = i->prev) {
		enum cube_job_state s = cube_list_entry(i, struct cube_job, link)->state;

		if (s == CUBE_JOB_RUNNING || s == CUBE_JOB_WAITING)
			return true;
	}
	return false;
}

static uint64_t use_of_files(struct cube_cube *c)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	return w->files_used != NULL ? w->files_used(w->ctx, c) : 0;
}

bool cube_use_busy(struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);

	return own->uses > 0 || (own->left > 0 && !c->times.idle_background) ||
	       c->times.lease_wall > cube_clock_wall() || use_by_jobs(c) || use_of_files(c) == UINT64_MAX;
}

uint64_t cube_use_idle_since(struct cube_cube *c)
{
	uint64_t since = c->used_wall, files;

	if (cube_use_busy(c))
		return 0;
	files = use_of_files(c);
	if (files != UINT64_MAX && files > since)
		since = files;
	return c->times.lease_wall > since ? c->times.lease_wall : since;
}

static bool use_runs(struct cube_cube *c)
{
	return use_by_jobs(c) || cube_own(c)->left > 0;
}

static void use_runs_too(void *ctx, struct cube_cube *c)
{
	bool *runs = ctx;

	*runs = *runs || use_runs(c);
}

bool cube_volume_runs(struct cube_volume_entry *v)
{
	bool runs = false;

	cube_volume_users(v, use_runs_too, &runs);
	return runs;
}

bool cube_use_runs(struct cube_cube *c)
{
	const struct cube_own *own = cube_own(c);
	bool runs = use_runs(c);

	for (size_t i = 0; i < own->n_volumes && !runs; i++)
		if (own->volumes[i].volume != NULL)
			runs = cube_volume_runs(own->volumes[i].volume);
	return runs;
}

static void use_quiet(struct cube_cube *c, bool quiet)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	if (w->files_quiet != NULL)
		w->files_quiet(w->ctx, c, quiet);
}

void cube_use_starts(struct cube_cube *c)
{
	use_quiet(c, false);
}

/* Not while something is done to it as a whole: a sandbox that is resumed has what ran before. */
static bool use_can_be_quiet(struct cube_cube *c)
{
	return c->phase == CUBE_RUNNING && cube_own(c)->op == NULL && cube_conn_ready(c) && !use_by_jobs(c);
}

void cube_use_ask(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (!use_can_be_quiet(c))
		return; /* who asks does so again when that has changed */
	if (!own->left_asked)
		own->left_asked = cube_link_look(c->agent) == 0;
}

/* An alarm that is on already comes early at the worst, and looks then. */
void cube_use_note(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	c->used_wall = cube_clock_wall();
	own->left_known = false;
	use_quiet(c, false);
	if (c->times.idle_s != 0 && !cube_alarm_is_on(&own->due))
		cube_times_look(c);
}

/* Whoever opens a file outside may be about to map it, and is not kept waiting for what was left running: so that is asked
 * for as soon as it can be there. */
void cube_use_ended(struct cube_cube *c)
{
	const struct cube_domain_watcher *w = &c->domain->watcher;

	cube_use_note(c);
	if (use_of_files(c) != 0 && w->files_served != NULL && w->files_served(w->ctx) != NULL)
		cube_use_ask(c);
}

void cube_use_begin(struct cube_cube *c)
{
	cube_own(c)->uses++;
}

void cube_use_end(struct cube_cube *c)
{
	cube_own(c)->uses--;
	cube_use_note(c);
}

void cube_use_left(struct cube_cube *c, uint64_t n, bool still)
{
	struct cube_own *own = cube_own(c);
	bool fewer = own->left > 0 && n == 0;

	own->left = n;
	own->left_asked = false;
	if (fewer)
		cube_use_note(c);
	own->left_known = true;
	if (still && use_can_be_quiet(c))
		use_quiet(c, true);
	if (!fewer && n == 0)
		cube_times_look(c); /* that was what it waited for */
}

void cube_use_unlinked(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	own->left = 0;
	own->left_asked = own->left_known = false;
	use_quiet(c, false);
}
