/* SPDX-License-Identifier: Apache-2.0 */
/* Circular doubly linked list, embedded in its elements. */
#ifndef CUBEFS_BACKENDS_BASE_LIST_H
#define CUBEFS_BACKENDS_BASE_LIST_H

#include <stdbool.h>

#include "backends/base/macros.h"

struct cube_list {
	struct cube_list *next, *prev;
};

#define CUBE_LIST_INIT(name)                                                                                 \
	{                                                                                                    \
		&(name), &(name)                                                                             \
	}

static inline void cube_list_init(struct cube_list *l)
{
	l->next = l->prev = l;
}

static inline bool cube_list_empty(const struct cube_list *l)
{
	return l->next == l;
}

/* Puts @e at the end of @head. @e must be in no list. */
static inline void cube_list_push(struct cube_list *head, struct cube_list *e)
{
	e->prev = head->prev;
	e->next = head;
	head->prev->next = e;
	head->prev = e;
}

/* Takes @e out of its list and leaves it alone in one of its own, so that doing it twice is harmless. */
static inline void cube_list_remove(struct cube_list *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	cube_list_init(e);
}

/* First element, taken out; NULL when empty. */
static inline struct cube_list *cube_list_pop(struct cube_list *head)
{
	struct cube_list *e = head->next;

	if (e == head)
		return NULL;
	cube_list_remove(e);
	return e;
}

#define cube_list_entry(p, type, member) cube_container_of(p, type, member)

/* for (struct cube_list *i = ...): safe when the body removes @it itself, and only that one. */
/* NOLINTBEGIN(bugprone-macro-parentheses): @it is a name to declare */
#define cube_list_each(it, head)                                                                             \
	for (struct cube_list *it = (head)->next, *it##_next = it->next; it != (head);                       \
	     it = it##_next, it##_next = it->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
