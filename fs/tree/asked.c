/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that only the sandbox's backend knows: it is asked at each open, which is answered when the answer is there.
 * That is a few milliseconds; where it takes longer the text is as it was last known. */
#include "ctl/ports/port.h"
#include "fs/tree/tree_priv.h"

#define ASKED_MS 2000u

static int asked_check(struct cube_req *r)
{
	struct cube_cube *c = r->n->obj->type->cube(r->n->obj->p);
	bool ports = r->n->entry->arg == CUBE_ASKED_PORTS;
	struct cube_asked *a = ports ? &c->ports.asked : &c->access.asked;
	uint64_t wanted = (uintptr_t)r->state;

	if (r->late || (wanted != 0 && a->answers >= wanted))
		return 0;
	if (wanted == 0) {
		wanted = a->answers + 1 + a->asking; /* one that is under way may be too old */
		r->state = (void *)(uintptr_t)wanted;
	}
	if (ports)
		cube_ports_ask(c);
	else
		cube_access_ask(c);
	if (a->answers >= wanted)
		return 0;
	if (!cube_alarm_is_on(&r->alarm))
		cube_req_timeout(r, ASKED_MS);
	return cube_req_wait(r, &a->answered);
}

const struct cube_class cube_class_asked = {.check = asked_check};
