/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a sandbox by their number, and those of them that may be forgotten. An array in the order of the
 * numbers: a new one comes last, a walk and a look-up cost a search by halves, however many there are. */
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/ctl_priv.h"

#define INDEX_FIRST ((size_t)16)

/* The first place whose number is not below @number. */
static size_t index_place(const struct cube_job_index *x, uint64_t number)
{
	size_t low = 0, high = x->n;

	if (high > 0 && x->jobs[high - 1]->number < number) /* a new one */
		return high;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->jobs[mid]->number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int index_room(struct cube_job_index *x)
{
	size_t cap = x->cap > 0 ? 2 * x->cap : INDEX_FIRST;
	struct cube_job **more;

	if (x->n < x->cap)
		return 0;
	more = cube_realloc(x->jobs, cap * sizeof(struct cube_job *));
	if (more == NULL)
		return -ENOMEM;
	x->jobs = more;
	x->cap = cap;
	return 0;
}

int cube_job_index_add(struct cube_job_index *x, struct cube_job *j)
{
	size_t at = index_place(x, j->number);

	if (index_room(x) < 0)
		return -ENOMEM;
	memmove(&x->jobs[at + 1], &x->jobs[at], (x->n - at) * sizeof(struct cube_job *));
	x->jobs[at] = j;
	x->n++;
	return 0;
}

void cube_job_index_take(struct cube_job_index *x, const struct cube_job *j)
{
	size_t at = index_place(x, j->number);

	if (at == x->n || x->jobs[at] != j)
		return;
	x->n--;
	memmove(&x->jobs[at], &x->jobs[at + 1], (x->n - at) * sizeof(struct cube_job *));
}

void cube_job_index_free(struct cube_job_index *x)
{
	cube_free(x->jobs);
	*x = (struct cube_job_index){0};
}

struct cube_job *cube_job_by_number(struct cube_cube *c, uint64_t number)
{
	const struct cube_job_index *x = &cube_own(c)->index;
	size_t at = index_place(x, number);

	return at < x->n && x->jobs[at]->number == number ? x->jobs[at] : NULL;
}

struct cube_job *cube_job_next(struct cube_cube *c, uint64_t seq)
{
	const struct cube_job_index *x = &cube_own(c)->index;
	size_t at = seq < UINT64_MAX ? index_place(x, seq + 1) : x->n;

	return at < x->n ? x->jobs[at] : NULL;
}

struct cube_job *cube_job_next_live(struct cube_cube *c, uint64_t seq)
{
	const struct cube_job_index *x = &cube_own(c)->index;

	for (size_t at = seq < UINT64_MAX ? index_place(x, seq + 1) : x->n; at < x->n; at++)
		if (x->jobs[at]->state != CUBE_JOB_ENDED)
			return x->jobs[at];
	return NULL;
}

/* ---- What may be forgotten: numbered ones, in the order of their ends ---- */

void cube_job_ended_add(struct cube_job *j)
{
	struct cube_own *own = cube_own(j->cube);
	struct cube_list *at = own->ended.prev;

	if (j->named || !cube_list_empty(&cube_job_own(j)->in_ended))
		return;
	/* After a load they come in the order of their numbers. */
	while (at != &own->ended && cube_job_of_ended(at)->finished_wall > j->finished_wall)
		at = at->prev;
	cube_list_push(at->next, &cube_job_own(j)->in_ended);
	own->ended_numbered++;
}

void cube_job_ended_take(struct cube_job *j)
{
	if (cube_list_empty(&cube_job_own(j)->in_ended))
		return;
	cube_list_remove(&cube_job_own(j)->in_ended);
	cube_own(j->cube)->ended_numbered--;
}
