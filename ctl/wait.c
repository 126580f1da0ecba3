/* SPDX-License-Identifier: Apache-2.0 */
/* Waking those who wait. */
#include "ctl/wait.h"

void cube_wake(struct cube_waitq *q)
{
	struct cube_list now = CUBE_LIST_INIT(now);
	struct cube_list *e;

	if (cube_list_empty(&q->waiters))
		return;
	/* Onto a list of our own first: a waiter may add itself again, or take others out of the queue. */
	now.next = q->waiters.next;
	now.prev = q->waiters.prev;
	now.next->prev = &now;
	now.prev->next = &now;
	cube_list_init(&q->waiters);

	while ((e = cube_list_pop(&now)) != NULL) {
		struct cube_waiter *w = cube_list_entry(e, struct cube_waiter, link);

		w->wake(w);
	}
}
