/* SPDX-License-Identifier: Apache-2.0 */
/* INTERRUPT: a caller that waits has some signal. Which one the kernel does not say, and it says so only
 * once; so the caller is looked at, and if the signal means nothing (a window was resized, a child ended) it
 * is looked at again every now and then until its request is answered.
 *
 * libfuse calls us with a lock of the request held, maybe just as we answer it: so nothing is done there but
 * to send the request's number to the loop. */
#include "backends/base/alloc.h"
#include "fs/fuse/priv.h"
#include "fs/tree/proc.h"

#define INTERRUPT_AGAIN_MS 100

struct watched {
	struct cube_list link;
	struct cube_post post;
	struct cube_fuse *f;
	uint64_t key;
};

/* True when nothing more is to be done. */
static bool interrupt_look(const struct watched *w)
{
	bool lasting;
	pid_t pid;

	if (!cube_tree_waiting(w->f->tree, w->key, &pid, &lasting))
		return true;
	if (!cube_proc_interrupted(pid, lasting))
		return false;
	return cube_tree_cancel(w->f->tree, w->key);
}

static void interrupt_again(void *ctx)
{
	struct cube_fuse *f = ctx;

	cube_list_each (i, &f->watched) {
		struct watched *w = cube_list_entry(i, struct watched, link);

		if (interrupt_look(w)) {
			cube_list_remove(&w->link);
			cube_free(w);
		}
	}
	if (!cube_list_empty(&f->watched))
		cube_timer_start(f->timer, INTERRUPT_AGAIN_MS);
}

static void interrupt_posted(struct cube_post *post)
{
	struct watched *w = cube_container_of(post, struct watched, post);
	struct cube_fuse *f = w->f;

	if (interrupt_look(w)) {
		cube_free(w);
		return;
	}
	if (cube_list_empty(&f->watched))
		cube_timer_start(f->timer, INTERRUPT_AGAIN_MS);
	cube_list_push(&f->watched, &w->link);
}

static void interrupt_arrived(fuse_req_t req, void *data)
{
	struct watched *w = cube_calloc(1, sizeof(*w));

	if (w == NULL)
		return; /* the caller can be interrupted again */
	*w = (struct watched){.f = fuse_req_userdata(req), .key = (uint64_t)(uintptr_t)data};
	cube_list_init(&w->link);
	w->post.fn = interrupt_posted;
	cube_loop_post(w->f->o.loop, &w->post);
}

/* Under the domain lock: the request cannot be answered before this returns. */
void cube_fuse_parked(struct cube_req *r)
{
	const struct cube_fuse_call *c = cube_container_of(r, struct cube_fuse_call, r);

	fuse_req_interrupt_func(c->a.req, interrupt_arrived, (void *)(uintptr_t)r->key);
}

int cube_fuse_interrupts_init(struct cube_fuse *f)
{
	cube_list_init(&f->watched);
	f->timer = cube_timer_new(f->o.loop, interrupt_again, f);
	return f->timer == NULL ? -1 : 0;
}

void cube_fuse_interrupts_done(struct cube_fuse *f)
{
	struct cube_list *i;

	while ((i = cube_list_pop(&f->watched)) != NULL)
		cube_free(cube_list_entry(i, struct watched, link));
	if (f->timer != NULL)
		cube_timer_free(f->timer);
}
