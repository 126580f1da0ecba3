/* SPDX-License-Identifier: Apache-2.0 */
/* Spool files of jobs.
 *
 * They are named by slots (jobs/out.K, and jobs/order.K where there are two streams), not by jobs, and a
 * forgotten job's file becomes the next one's: making a file costs a file system ten times as much as
 * truncating one, and ext4 looks for long at inodes that were freed lately. One is kept ready, open and
 * empty, so that a start makes no system call here. A file is used again only if nobody has it open any more,
 * neither a reader nor the far side for a background child that still prints: the kernel gives a write lease
 * only then.
 *
 * The limit. The daemon gives back the middle of what is above it, in regard of readers: a pin keeps what a
 * plain reader saw at its open, until twice the limit more has come (then the far side, which was told four
 * times the limit as a last resort, would punch anyway). */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

#define PIN_FACTOR       3u /* pins count below so many times the limit */
#define FREE_MAX         64u
#define OUTPUT_LOOK_BACK (8 * CUBE_SPOOL_RECORD)

static void slot_name(char out[32], const char *what, uint32_t slot)
{
	(void)snprintf(out, 32, "jobs/%s.%u", what, slot);
}

static int slot_open(const struct cube_cube *c, const char *what, uint32_t slot, int flags)
{
	char name[32];
	int fd;

	slot_name(name, what, slot);
	fd = openat(c->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	return fd >= 0 ? fd : -errno;
}

static void slot_unlink(const struct cube_cube *c, const char *what, uint32_t slot)
{
	char name[32];

	slot_name(name, what, slot);
	(void)unlinkat(c->dir_fd, name, 0);
}

int cube_output_dir(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);

	if (!own->have_dir && mkdirat(c->dir_fd, "jobs", 0700) < 0 && errno != EEXIST)
		return -errno;
	own->have_dir = true;
	return 0;
}

/* ---- Holders ---- */

static struct cube_output *output_new(uint32_t slot, int out_fd)
{
	struct cube_output *o = cube_calloc(1, sizeof(*o));

	if (o == NULL)
		return NULL;
	atomic_init(&o->refs, 1);
	o->slot = slot;
	o->out_fd = out_fd;
	o->order_fd = -1;
	return o;
}

void cube_output_unref(struct cube_output *o)
{
	if (o == NULL || atomic_fetch_sub(&o->refs, 1) > 1)
		return;
	cube_close_auto(&o->out_fd);
	cube_close_auto(&o->order_fd);
	cube_free(o->pins);
	cube_free(o);
}

/* ---- Making ---- */

/* Empty and ours alone, or not at all. */
static bool output_recycle(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		return false;
	bool done = ftruncate(fd, 0) == 0;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return done;
}

static struct cube_output *output_make(struct cube_cube *c, uint32_t slot, int flags, int *code)
{
	int fd = slot_open(c, "out", slot, flags);
	struct cube_output *o = fd >= 0 ? output_new(slot, fd) : NULL;

	*code = fd < 0 ? fd : o == NULL ? -ENOMEM : 0;
	if (o == NULL)
		cube_close_auto(&fd);
	return o;
}

static struct cube_output *output_take(struct cube_cube *c, int *code)
{
	struct cube_own *own = cube_own(c);
	struct cube_output *o = cube_steal(own->spare);

	if (o != NULL)
		return o;
	if (own->n_free > 0)
		return output_make(c, own->free_slots[--own->n_free], 0, code);
	*code = cube_output_dir(c);
	return *code < 0 ? NULL : output_make(c, own->next_slot++, O_CREAT | O_EXCL, code);
}

int cube_output_start(struct cube_job *j, struct cube_err *err)
{
	struct cube_job_own *own = cube_job_own(j);
	int code = 0;

	own->has_order = !j->merge && !j->tty;
	if (own->slot != CUBE_NO_SLOT) /* it was sent before and never arrived: its file is still empty */
		j->output = output_make(j->cube, own->slot, O_TRUNC, &code);
	else
		j->output = output_take(j->cube, &code);
	if (j->output == NULL)
		return cube_fail(err, code, "job '%s': a file for its output: %s", j->name,
				 cube_errno_text(code));
	own->slot = j->output->slot;
	if (own->has_order) {
		j->output->order_fd = slot_open(j->cube, "order", own->slot, O_CREAT | O_TRUNC);
		if (j->output->order_fd < 0)
			return cube_fail_errno(err, "job '%s': a file for its output", j->name);
	}
	return 0;
}

void cube_output_reopen(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	int code;

	if (own->slot == CUBE_NO_SLOT)
		return;
	j->output = output_make(j->cube, own->slot, 0, &code);
	if (j->output != NULL && own->has_order)
		j->output->order_fd = slot_open(j->cube, "order", own->slot, 0);
	/* What it printed until now was in the transcript, or is passed over there. */
	if (j->output != NULL)
		cube_output_measure(j, &j->total, &j->err_total);
	own->said_out = j->total - (own->has_order ? j->err_total : 0);
	own->said_err = j->err_total;
}

/* ---- Ahead ---- */

struct ahead_work {
	struct cube_work work;
	struct cube_cube *cube;
	uint32_t slot;
};

static void ahead_run(struct cube_work *w)
{
	struct ahead_work *a = cube_container_of(w, struct ahead_work, work);
	struct cube_cube *c = a->cube;
	struct cube_domain *d = c->domain;
	int code;
	struct cube_output *o = output_make(c, a->slot, O_CREAT | O_EXCL, &code);

	cube_domain_enter(d);
	cube_own(c)->spare_busy = false;
	if (cube_own(c)->spare == NULL)
		cube_own(c)->spare = cube_steal(o);
	cube_output_unref(o);
	cube_cube_unref(c);
	cube_task_end(d);
	cube_domain_leave(d);
	cube_free(a);
}

void cube_output_ahead(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct ahead_work *a;

	if (own->spare != NULL || own->spare_busy || own->n_free > 0 || c->phase == CUBE_REMOVED ||
	    c->domain->closing)
		return;
	a = cube_calloc(1, sizeof(*a));
	if (a == NULL)
		return;
	a->work.run = ahead_run;
	a->cube = cube_cube_ref(c);
	a->slot = own->next_slot++;
	own->spare_busy = true;
	cube_task_submit(c->domain, &a->work);
}

/* ---- Giving up ---- */

static void slot_free(struct cube_own *own, uint32_t slot)
{
	if (own->n_free == own->cap_free) {
		size_t cap = own->cap_free == 0 ? 8 : 2 * own->cap_free;
		unsigned *grown =
			cap <= FREE_MAX ? cube_realloc(own->free_slots, cap * sizeof(*grown)) : NULL;

		if (grown == NULL) {
			slot_unlink(&own->c, "out", slot);
			return;
		}
		own->free_slots = grown;
		own->cap_free = cap;
	}
	own->free_slots[own->n_free++] = slot;
}

/* The file is made, not kept open: most sandboxes wait for long before the first command. */
void cube_output_prepare(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	struct cube_output *o;
	uint32_t slot;
	int code = mkdirat(c->dir_fd, "jobs", 0700) < 0 && errno != EEXIST ? -errno : 0;

	if (code < 0)
		return; /* the first command says so */
	cube_domain_enter(c->domain);
	slot = own->next_slot++;
	cube_domain_leave(c->domain);
	o = output_make(c, slot, O_CREAT, &code);
	cube_domain_enter(c->domain);
	if (o != NULL)
		slot_free(own, slot);
	cube_domain_leave(c->domain);
	cube_output_unref(o);
}

static void slot_recycle(struct cube_cube *c, uint32_t slot)
{
	struct cube_own *own = cube_own(c);
	int code;
	struct cube_output *o = output_make(c, slot, 0, &code);

	if (o == NULL || !output_recycle(o->out_fd))
		slot_unlink(c, "out", slot);
	else if (own->spare == NULL)
		own->spare = cube_steal(o);
	else
		slot_free(own, slot);
	cube_output_unref(o);
}

void cube_output_release(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);

	cube_output_unref(cube_steal(j->output));
	cube_own(j->cube)->spool_bytes -= own->spool_bytes;
	own->spool_bytes = 0;
	if (own->slot == CUBE_NO_SLOT)
		return;
	if (own->has_order)
		slot_unlink(j->cube, "order", own->slot);
	if (j->cube->phase != CUBE_REMOVED) /* else all of it goes with the directory */
		slot_recycle(j->cube, own->slot);
	own->slot = CUBE_NO_SLOT;
}

/* ---- Size ---- */

/* What is in the files, where that is more than @total. */
static void output_measure(const struct cube_output *o, uint64_t *total, uint64_t *err_total)
{
	unsigned char record[CUBE_SPOOL_RECORD];
	uint64_t start, before;
	struct stat st;

	if (fstat(o->out_fd, &st) < 0 || (uint64_t)st.st_size < *total)
		return;
	*total = (uint64_t)st.st_size;
	if (o->order_fd < 0 || fstat(o->order_fd, &st) < 0)
		return;
	/* The last may be of bytes that never came, behind what the limit took; no more than one each time that we died. */
	for (off_t at = st.st_size / CUBE_SPOOL_RECORD * CUBE_SPOOL_RECORD, least = at - OUTPUT_LOOK_BACK;;
	     at -= CUBE_SPOOL_RECORD) {
		if (at <= 0 || at <= least ||
		    pread(o->order_fd, record, sizeof(record), at - CUBE_SPOOL_RECORD) !=
			    (ssize_t)sizeof(record))
			return;
		memcpy(&start, record, 8);
		memcpy(&before, record + 8, 8);
		start = le64toh(start);
		before = le64toh(before);
		if ((start & ~CUBE_SPOOL_STDERR) <= *total)
			break;
	}
	uint64_t of_stream = before + (*total - (start & ~CUBE_SPOOL_STDERR));
	*err_total = start & CUBE_SPOOL_STDERR ? of_stream : *total - of_stream;
}

void cube_output_measure(struct cube_job *j, uint64_t *total, uint64_t *err_total)
{
	*total = j->total;
	*err_total = j->err_total;
	if (j->output != NULL)
		output_measure(j->output, total, err_total);
}

void cube_output_account(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	uint64_t now = j->total < own->limit || own->limit == 0 ? j->total : own->limit;

	if (own->slot == CUBE_NO_SLOT)
		now = 0;
	cube_own(j->cube)->spool_bytes += now - own->spool_bytes;
	own->spool_bytes = now;
}

/* ---- The limit ---- */

static uint64_t output_lowest_pin(const struct cube_output *o)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t i = 0; i < o->n_pins; i++)
		if (o->pins[i] < lowest)
			lowest = o->pins[i];
	return lowest;
}

void cube_output_punch(struct cube_job *j)
{
	uint64_t limit = cube_job_own(j)->limit, keep;

	if (j->output == NULL || j->total <= limit || limit == 0)
		return;
	keep = j->total < PIN_FACTOR * limit ? output_lowest_pin(j->output) : UINT64_MAX;
	cube_spool_punch(j->output->out_fd, j->total, limit, keep, &j->output->punched);
}

/* The lowest offset behind the first half that a view shows. */
static uint64_t pin_offset(const struct cube_spool_view *v)
{
	return v->total > v->limit ? v->total - v->limit / 2 : v->limit / 2;
}

void cube_output_pin(struct cube_output *o, const struct cube_spool_view *v)
{
	if (o->n_pins == o->cap_pins) {
		size_t cap = o->cap_pins == 0 ? 4 : 2 * o->cap_pins;
		uint64_t *grown = cube_realloc(o->pins, cap * sizeof(*grown));

		if (grown == NULL)
			return; /* its reader may see the middle go; unpin finds nothing and does nothing */
		o->pins = grown;
		o->cap_pins = cap;
	}
	o->pins[o->n_pins++] = pin_offset(v);
}

void cube_output_unpin(struct cube_output *o, const struct cube_spool_view *v)
{
	uint64_t offset = pin_offset(v);

	for (size_t i = 0; i < o->n_pins; i++) {
		if (o->pins[i] != offset)
			continue;
		o->pins[i] = o->pins[--o->n_pins];
		return;
	}
}

/* ---- Reading ---- */

/* Of an ended one: opened for this reader alone, so that nothing stays open when nobody reads. */
static struct cube_output *view_open(struct cube_job *j)
{
	struct cube_job_own *own = cube_job_own(j);
	struct cube_output *o;
	int code;

	if (own->spool_dropped)
		return output_new(CUBE_NO_SLOT, -1);
	if (own->slot == CUBE_NO_SLOT)
		return NULL;
	o = output_make(j->cube, own->slot, 0, &code);
	if (o != NULL && own->has_order)
		o->order_fd = slot_open(j->cube, "order", own->slot, 0);
	if (o != NULL && own->has_order && o->order_fd < 0)
		o->order_fd = -1;
	return o;
}

struct cube_output *cube_job_view(struct cube_job *j, struct cube_spool_view *v)
{
	const struct cube_job_own *own = cube_job_own(j);
	struct cube_output *o = j->output;

	if (j->state < CUBE_JOB_RUNNING)
		return NULL;
	if (o != NULL)
		atomic_fetch_add(&o->refs, 1);
	else
		o = view_open(j);
	if (o == NULL)
		return NULL;
	*v = (struct cube_spool_view){.out_fd = o->out_fd,
				      .order_fd = o->order_fd,
				      .total = j->total,
				      .err_total = j->err_total,
				      .limit = own->spool_dropped ? 0 : own->limit};
	return o;
}

/* ---- Another link ---- */

int cube_output_adopt(struct cube_job *j, struct cube_link *agent)
{
	struct cube_spool_view v;
	struct cube_output *o = cube_job_view(j, &v);
	int code = 0;

	if (o == NULL)
		return 0;
	if (o->out_fd >= 0) {
		output_measure(o, &v.total, &v.err_total);
		code = cube_link_adopt(agent, j->number, o->out_fd, o->order_fd, v.total, v.err_total);
	}
	cube_output_unref(o);
	return code;
}
