/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a mount and the trees shown in it: their beginning, their end, who keeps them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/buf.h"
#include "backends/base/file.h"
#include "fs/files/files_priv.h"

/* What the kernel would take off the modes of new files (0 in a daemon that set it so). */
static mode_t space_umask(void)
{
	struct cube_buf text = CUBE_BUF(64 << 10);
	const char *line;
	mode_t mask = 0;

	if (cube_file_read(AT_FDCWD, "/proc/self/status", &text) == 0) {
		line = strstr(cube_buf_str(&text), "\nUmask:");
		if (line != NULL)
			mask = (mode_t)strtoul(line + strlen("\nUmask:"), NULL, 8);
	}
	cube_buf_done(&text);
	return mask;
}

/* An empty file of nobody's, O_PATH. */
static int space_nothing(void)
{
	char path[CUBE_FD_PATH];
	int fd = memfd_create("detached", MFD_CLOEXEC), nothing;

	if (fd < 0)
		return -1;
	nothing = open(cube_fstep_path(fd, path), O_PATH | O_CLOEXEC);
	(void)close(fd);
	return nothing;
}

static int space_init_locks(struct cube_files_space *s)
{
	pthread_rwlockattr_t attr;
	int r = pthread_rwlockattr_init(&attr);

	if (r != 0)
		return -r;
	/* Look-ups never end on a busy mount: who wants to add a node must not wait for that. */
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	r = pthread_rwlock_init(&s->lock, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
	(void)pthread_cond_init(&s->released, NULL);
	return r != 0 ? -r : -pthread_mutex_init(&s->locks, NULL);
}

static int space_init(struct cube_files_space *s)
{
	if (getrandom(&s->key, sizeof(s->key), 0) != sizeof(s->key))
		return -EIO;
	if (cube_fhash_init(&s->by_id) < 0 || cube_fhash_init(&s->by_place) < 0 ||
	    cube_fhash_init(&s->by_object) < 0)
		return -ENOMEM;
	s->fds_dir = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->nothing = space_nothing();
	return s->fds_dir < 0 || s->nothing < 0 ? -EIO : 0;
}

struct cube_files_space *cube_files_space_new(const struct cube_files_options *options)
{
	struct cube_files_space *s = cube_calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	if (space_init_locks(s) < 0) {
		cube_free(s);
		return NULL;
	}
	s->options = *options;
	if (options->keep != NULL)
		s->last_id = atomic_load(&options->keep->head->last_file);
	s->fds_dir = s->nothing = -1;
	s->umask = space_umask();
	s->max_lru = cube_flru_limit();
	cube_list_init(&s->lru);
	cube_fowns_init(&s->owns);
	if (space_init(s) < 0) {
		cube_files_space_free(s);
		return NULL;
	}
	return s;
}

void cube_files_space_free(struct cube_files_space *s)
{
	if (s == NULL)
		return;
	(void)pthread_rwlock_wrlock(&s->lock);
	cube_fnode_collect_all_locked(s); /* the kernel sends no FORGET at an unmount */
	(void)pthread_rwlock_unlock(&s->lock);
	cube_flockwait_free(s->lockwait);
	cube_fwatch_free(s->watch);
	cube_fowns_done(&s->owns);
	cube_imap_free(s->again);
	cube_fhash_done(&s->by_id);
	cube_fhash_done(&s->by_place);
	cube_fhash_done(&s->by_object);
	if (s->fds_dir >= 0)
		(void)close(s->fds_dir);
	if (s->nothing >= 0)
		(void)close(s->nothing);
	(void)pthread_cond_destroy(&s->released);
	(void)pthread_mutex_destroy(&s->locks);
	(void)pthread_rwlock_destroy(&s->lock);
	cube_free(s);
}

static void tree_set_owners(struct cube_files *f, const struct cube_root *root)
{
	bool same = root->uid_base == 0 && root->gid_base == 0 && root->id_count == UINT32_MAX;

	f->uid_base = root->uid_base;
	f->gid_base = root->gid_base;
	f->id_count = same ? 0 : root->id_count;
	f->swap_owner = root->swap_owner && !f->space->options.owners_raw;
	f->other_rights = f->id_count > 0 && (f->uid_base != geteuid() || f->gid_base != getegid());
}

static int tree_attach(struct cube_files_space *s, struct cube_root *root, uint64_t seed, void *owner,
		       uint64_t root_id, struct cube_files **ret)
{
	struct cube_files *f = cube_calloc(1, sizeof(*f));
	int r;

	if (f == NULL)
		return -ENOMEM;
	f->space = s;
	f->kept = CUBE_KEEP_NONE;
	f->root_id = root_id;
	f->seed = seed;
	f->owner = owner;
	atomic_init(&f->refs, 1);
	atomic_init(&f->detached, false);
	atomic_init(&f->quiet, false);
	atomic_init(&f->runs, 0);
	atomic_init(&f->asked, false);
	atomic_init(&f->unkept, false);
	atomic_init(&f->keeps, false);
	atomic_init(&f->n_open, 0);
	atomic_init(&f->closed_wall, 0);
	cube_list_init(&f->handles);
	tree_set_owners(f, root);
	r = cube_fmount_setup(f, root);
	if (r == 0)
		r = cube_fnode_new_root(f);
	if (r < 0) {
		cube_fmount_give_back(f);
		cube_files_unref(f);
		return r;
	}
	root->fd = -1;
	for (unsigned i = 0; i < root->n_mounts; i++)
		root->mounts[i].fd = -1;
	*ret = f;
	return 0;
}

int cube_files_attach(struct cube_files_space *s, struct cube_root *root, uint64_t seed, void *owner,
		      struct cube_files **ret)
{
	return tree_attach(s, root, seed, owner, 0, ret);
}

/* Several threads may do this at once, each for a tree of its own. */
int cube_files_attach_again(struct cube_files_space *s, struct cube_root *root, uint64_t seed, void *owner,
			    uint64_t root_id, uint32_t record, struct cube_files **ret)
{
	int r = tree_attach(s, root, seed, owner, root_id, ret);

	if (r < 0)
		return r;
	(*ret)->kept = record;
	(void)pthread_rwlock_wrlock(&s->lock);
	if (s->again == NULL)
		s->again = cube_imap_new();
	if (s->again != NULL)
		(void)cube_imap_put(s->again, (uint64_t)record + 1, *ret);
	(void)pthread_rwlock_unlock(&s->lock);
	return 0;
}

/* The next open handle's descriptor, for voiding outside the lock; NULL: no more. */
static struct cube_ffd *tree_pop_handle(struct cube_files *f, struct cube_fnode **ret_node)
{
	struct cube_files_space *s = f->space;
	struct cube_ffd *fd = NULL;

	(void)pthread_rwlock_wrlock(&s->lock);
	for (struct cube_list *l; fd == NULL && (l = cube_list_pop(&f->handles)) != NULL;) {
		struct cube_files_handle *h = cube_list_entry(l, struct cube_files_handle, in_tree);

		fd = cube_ffd_ref(h->fd);
		if (fd != NULL) {
			*ret_node = h->n;
			cube_fnode_pin_more(h->n);
		}
	}
	(void)pthread_rwlock_unlock(&s->lock);
	return fd;
}

/* From here on no new call gets in; those under way keep what they have. */
static void tree_close_locked(struct cube_files *f, struct cube_ffd *tops[1 + CUBE_MOUNTS_MAX])
{
	struct cube_files_space *s = f->space;

	atomic_store(&f->detached, true);
	for (unsigned i = 0; i < f->n_mounts; i++)
		tops[i] = cube_steal(f->mounts[i].fd);
	cube_list_each (l, &s->lru) {
		struct cube_fnode *n = cube_list_entry(l, struct cube_fnode, lru);

		if (n->tree == f)
			cube_flru_drop_locked(n);
	}
	if (f->root != NULL)
		cube_fnode_collect_locked(f->root);
}

void cube_files_detach(struct cube_files *f)
{
	struct cube_ffd *tops[1 + CUBE_MOUNTS_MAX] = {NULL}, *fd;
	struct cube_fnode *n;

	(void)pthread_rwlock_wrlock(&f->space->lock);
	tree_close_locked(f, tops);
	(void)pthread_rwlock_unlock(&f->space->lock);
	cube_fwatch_tree_gone(f);
	for (unsigned i = 0; i < f->n_mounts; i++)
		cube_ffd_unref(tops[i]);
	while ((fd = tree_pop_handle(f, &n)) != NULL) {
		cube_flock_drop_all(n);
		cube_ffd_void(fd, f->space->nothing);
		cube_ffd_unref(fd);
		cube_fnode_unpin(n);
	}
	cube_files_unref(f);
}

void cube_files_cut(struct cube_files *f, const char *path)
{
	struct cube_files_space *s = f->space;
	struct cube_fmount *m = cube_fmount_find(f, path);
	struct cube_ffd *top;

	if (m == NULL)
		return;
	(void)pthread_rwlock_wrlock(&s->lock);
	top = cube_steal(m->fd);
	cube_list_each (l, &s->lru) {
		struct cube_fnode *n = cube_list_entry(l, struct cube_fnode, lru);

		if (n->tree == f && n->mount == m)
			cube_flru_drop_locked(n);
	}
	(void)pthread_rwlock_unlock(&s->lock);
	cube_ffd_unref(top);
	cube_fwatch_tree_gone(f);
}

/* The root's node, which is there as long as it is attached, has a reference too. */
bool cube_files_idle(const struct cube_files *f)
{
	return atomic_load(&f->refs) <= 2 && cube_files_open_count(f) == 0;
}

struct cube_files *cube_files_ref(struct cube_files *f)
{
	atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
	return f;
}

void cube_files_unref(struct cube_files *f)
{
	if (f == NULL || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) > 1)
		return;
	if (f->space->options.keep != NULL)
		cube_keep_give(&f->space->options.keep->roots, f->kept);
	cube_fmount_clear(f);
	cube_free(f);
}

uint64_t cube_files_root(const struct cube_files *f)
{
	return f->root_id;
}

unsigned long cube_files_open_count(const struct cube_files *f)
{
	return atomic_load(&f->n_open);
}

uint64_t cube_files_closed_wall(const struct cube_files *f)
{
	return atomic_load(&f->closed_wall);
}

void *cube_files_owner(struct cube_files_space *s, uint64_t id)
{
	struct cube_fnode *n;
	void *owner;

	if (cube_fnode_pin(s, id, &n) < 0)
		return NULL;
	owner = n->tree->owner;
	cube_fnode_unpin(n);
	return owner;
}
