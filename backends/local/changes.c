/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between two states of a sandbox's files.
 *
 * Names come from the upper layers, so that the work is that of what was changed, not of what is there; what they mean
 * comes from the two merged views, so that whiteouts, opaque and renamed directories need no second explanation here.
 * Where a layer's directory stands for something else than what lies below its name (opaque, renamed), all names of
 * both views are looked at from there on. */
#include "backends/local/checkpoint.h"

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"
#include "backends/base/names.h"
#include "backends/local/keep.h"
#include "backends/local/overlay.h"
#include "backends/local/seed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHANGES_DEPTH 256 /* a directory below that is M, and not looked into */
#define CHANGES_CHUNK 65536
#define CHANGES_NO    (-1)

/* One directory, as it is now, as it was, and in the layers that say what may differ. */
struct changes_dir {
	int now, was;  /* CHANGES_NO: there is none */
	int layers[2]; /* upper layers; CHANGES_NO: has nothing here */
	bool all;      /* look at all names of both */
};

struct changes_walk {
	const struct cube_changes *what;
	struct cube_cancel *cancel;
	const struct cube_local_seed *seed; /* files that cubefs itself wrote; NULL: none here */
	struct cube_buf path;
	unsigned depth;
};

static int changes_level(struct changes_walk *w, const struct changes_dir *d);

static void changes_say(struct changes_walk *w, char kind)
{
	w->what->each(w->what->ctx, kind, cube_buf_str(&w->path));
}

/* ---- one name ---- */

static bool changes_same_content(int a, int b, const char *name)
{
	cube_auto_fd fa = openat(a, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cube_auto_fd fb = openat(b, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *block = cube_malloc(2 * CHANGES_CHUNK);
	bool same = fa >= 0 && fb >= 0 && block;
	ssize_t n = 1;

	while (same && n > 0) {
		n = read(fa, block, CHANGES_CHUNK);
		same = n >= 0 && read(fb, block + CHANGES_CHUNK, CHANGES_CHUNK) == n &&
		       memcmp(block, block + CHANGES_CHUNK, (size_t)n) == 0;
	}
	cube_free(block);
	return same;
}

static bool changes_same_link(int a, int b, const char *name)
{
	char ta[PATH_MAX], tb[PATH_MAX];
	ssize_t na = readlinkat(a, name, ta, sizeof(ta)), nb = readlinkat(b, name, tb, sizeof(tb));

	return na >= 0 && na == nb && memcmp(ta, tb, (size_t)na) == 0;
}

static bool changes_same_rights(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static bool changes_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Neither is a directory; both are of one type. The same inode with the same time of its last change is the same file
 * in two snapshots; else the content decides, since any program can set the other times. */
static bool changes_same(const struct changes_dir *d, const char *name, const struct stat *now,
			 const struct stat *was)
{
	if (!changes_same_rights(now, was) || now->st_size != was->st_size || now->st_rdev != was->st_rdev)
		return false;
	if (S_ISLNK(now->st_mode))
		return changes_same_link(d->now, d->was, name);
	if (!changes_same_time(now->st_mtim, was->st_mtim))
		return false;
	if (!S_ISREG(now->st_mode) ||
	    (now->st_ino == was->st_ino && changes_same_time(now->st_ctim, was->st_ctim)))
		return true;
	return changes_same_content(d->now, d->was, name);
}

static int changes_open(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool changes_marked(int layer, const char *mark)
{
	static const char *const spaces[] = {"trusted", "user"};
	char name[48], value[2];

	for (size_t i = 0; i < CUBE_COUNT(spaces); i++) {
		(void)snprintf(name, sizeof(name), "%s.overlay.%s", spaces[i], mark);
		if (fgetxattr(layer, name, value, 0) >= 0)
			return true;
	}
	return false;
}

/* The directory @name of both views; those that are there are opened. */
static int changes_enter(struct changes_walk *w, const struct changes_dir *d, const char *name, bool now,
			 bool was)
{
	struct changes_dir in = {CHANGES_NO, CHANGES_NO, {CHANGES_NO, CHANGES_NO}, d->all || !now || !was};
	int rc = 0;

	if (now)
		in.now = changes_open(d->now, name);
	if (was)
		in.was = changes_open(d->was, name);
	for (size_t i = 0; i < CUBE_COUNT(in.layers); i++) {
		if (d->layers[i] != CHANGES_NO)
			in.layers[i] = changes_open(d->layers[i], name);
		if (in.layers[i] >= 0 &&
		    (changes_marked(in.layers[i], "opaque") || changes_marked(in.layers[i], "redirect")))
			in.all = true;
	}
	if ((now && in.now < 0) || (was && in.was < 0))
		rc = errno == ENOENT || errno == ENOTDIR ? 0 : -errno; /* it went while we looked */
	else
		rc = changes_level(w, &in);
	for (size_t i = 0; i < CUBE_COUNT(in.layers); i++)
		if (in.layers[i] >= 0)
			close(in.layers[i]);
	if (in.now >= 0)
		close(in.now);
	if (in.was >= 0)
		close(in.was);
	return rc;
}

/* Files below a directory that is new are A, each; of one that is gone only its own name is told. */
static int changes_pair(struct changes_walk *w, const struct changes_dir *d, const char *name,
			const struct stat *now, const struct stat *was)
{
	bool dirs = S_ISDIR(now->st_mode) && S_ISDIR(was->st_mode);

	if ((now->st_mode & S_IFMT) != (was->st_mode & S_IFMT)) {
		changes_say(w, 'T');
		return S_ISDIR(now->st_mode) ? changes_enter(w, d, name, true, false) : 0;
	}
	if (dirs ? !changes_same_rights(now, was) : !changes_same(d, name, now, was))
		changes_say(w, 'M');
	return dirs ? changes_enter(w, d, name, true, true) : 0;
}

static int changes_name(struct changes_walk *w, const struct changes_dir *d, const char *name)
{
	struct stat now, was;
	bool is = d->now != CHANGES_NO && fstatat(d->now, name, &now, AT_SYMLINK_NOFOLLOW) == 0;
	bool had = d->was != CHANGES_NO && fstatat(d->was, name, &was, AT_SYMLINK_NOFOLLOW) == 0;

	if (is && w->seed && cube_local_seed_wrote(d->now, cube_buf_str(&w->path), name, w->seed))
		return 0;
	if (is && had)
		return changes_pair(w, d, name, &now, &was);
	if (is || had)
		changes_say(w, is ? 'A' : 'D');
	return is && S_ISDIR(now.st_mode) ? changes_enter(w, d, name, true, false) : 0;
}

/* ---- one directory ---- */

static int changes_names(const struct changes_dir *d, struct cube_names *ret)
{
	const int from[] = {d->all ? d->now : d->layers[0], d->all ? d->was : d->layers[1]};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < CUBE_COUNT(from); i++)
		if (from[i] != CHANGES_NO)
			rc = cube_names_list(ret, from[i]);
	if (rc == 0)
		cube_names_sort(ret);
	return rc;
}

static int changes_level(struct changes_walk *w, const struct changes_dir *d)
{
	struct cube_names names = CUBE_NAMES;
	size_t len = w->path.len;
	int rc;

	if (w->depth >= CHANGES_DEPTH)
		return 0;
	w->depth++;
	rc = changes_names(d, &names);
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		if (i > 0 && strcmp(names.at[i], names.at[i - 1]) == 0)
			continue;
		if (cube_cancel_fired(w->cancel)) {
			rc = -EINTR;
			break;
		}
		if (cube_buf_printf(&w->path, "/%s", names.at[i]) < 0)
			rc = -ENOMEM;
		else
			rc = changes_name(w, d, names.at[i]);
		cube_buf_cut(&w->path, len);
	}
	cube_names_done(&names);
	w->depth--;
	return rc;
}

/* ---- two states ---- */

/* What a call looks at; views are borrowed, the rest is closed by changes_done. */
struct changes_sides {
	int now[CUBE_PART_COUNT], was[CUBE_PART_COUNT];
	int own[CUBE_PART_COUNT];                           /* of was: kept mounts that are ours */
	struct cube_local_layer layers[2][CUBE_PART_COUNT]; /* of now, of was */
	struct cube_local_seed seed;
	char template[CUBE_ID_MAX + 1];
	char base[CUBE_ID_MAX + 1]; /* "": the template */
	struct cube_local_checkpoint cp;
};

/* The template alone, merged, with the /workspace that it may bring along. */
static int changes_template(struct cube_local *b, struct changes_sides *s, struct cube_err *err)
{
	int rc = cube_local_mount_template(b, s->template, &s->own[CUBE_PART_ROOT], err);

	if (rc == 0)
		rc = cube_local_mount_template_workspace(b, s->template, &s->own[CUBE_PART_WORKSPACE], err);
	s->was[CUBE_PART_ROOT] = s->own[CUBE_PART_ROOT];
	s->was[CUBE_PART_WORKSPACE] = s->own[CUBE_PART_WORKSPACE];
	return rc;
}

static int changes_layers(struct cube_local *b, const char *set, struct cube_local_layer *ret,
			  struct cube_err *err)
{
	int rc = cube_local_set_open(&b->store, set, CUBE_PART_ROOT, &ret[CUBE_PART_ROOT], err);

	return rc == 0 ? cube_local_set_open(&b->store, set, CUBE_PART_WORKSPACE, &ret[CUBE_PART_WORKSPACE],
					     err)
		       : rc;
}

static int changes_of_cube(struct cube_local *b, const struct cube_changes *what, struct changes_sides *s,
			   struct cube_err *err)
{
	struct local_cube *c;
	int rc = cube_local_cube_sound(b, what->id, &c, err);

	if (rc == 0)
		rc = cube_local_cube_mount(b, c, NULL, err);
	if (rc == 0)
		rc = changes_layers(b, c->id, s->layers[0], err);
	if (rc < 0)
		return rc;
	s->now[CUBE_PART_ROOT] = c->root;
	s->now[CUBE_PART_WORKSPACE] =
		cube_local_mounts_workspace(c) ? CHANGES_NO : c->workspace; /* else a volume */
	(void)snprintf(s->template, sizeof(s->template), "%s", c->rec.template);
	(void)snprintf(s->base, sizeof(s->base), "%s", what->base ? what->base : c->rec.base);
	s->seed = cube_local_seed_of(b, c);
	return 0;
}

static int changes_of_checkpoint(struct cube_local *b, const struct cube_changes *what,
				 struct changes_sides *s, struct cube_err *err)
{
	int rc = cube_local_checkpoint_read(b, what->cp, false, &s->cp, err);

	if (rc == 0)
		rc = cube_local_view_get(b, what->cp, &s->now[CUBE_PART_ROOT], &s->now[CUBE_PART_WORKSPACE],
					 err);
	if (rc == 0)
		rc = changes_layers(b, what->cp, s->layers[0], err);
	(void)snprintf(s->template, sizeof(s->template), "%s", s->cp.template);
	(void)snprintf(s->base, sizeof(s->base), "%s", what->base ? what->base : "");
	s->seed = (struct cube_local_seed){
		.id = s->cp.of, .hostname = s->cp.hostname, .resolv = "", .ids = &b->host->ids};
	return rc;
}

static int changes_base(struct cube_local *b, struct changes_sides *s, struct cube_err *err)
{
	int rc;

	if (!*s->base || !cube_local_checkpoint_knows(b, s->base))
		return changes_template(b, s, err);
	rc = cube_local_view_get(b, s->base, &s->was[CUBE_PART_ROOT], &s->was[CUBE_PART_WORKSPACE], err);
	return rc == 0 ? changes_layers(b, s->base, s->layers[1], err) : rc;
}

static int changes_part(const struct cube_changes *what, const struct changes_sides *s,
			enum cube_local_part part, struct cube_cancel *cancel)
{
	struct changes_walk w = {.what = what, .cancel = cancel, .path = CUBE_BUF(SIZE_MAX)};
	struct changes_dir d = {.now = CHANGES_NO, .was = CHANGES_NO, .layers = {CHANGES_NO, CHANGES_NO}};
	const char *in_layer = part == CUBE_PART_ROOT ? CUBE_LOCAL_ROOT_DIR : ".";
	int rc = 0;

	if (s->now[part] == CHANGES_NO)
		return 0;
	d.now = changes_open(s->now[part], ".");
	if (s->was[part] != CHANGES_NO)
		d.was = changes_open(s->was[part], ".");
	for (size_t i = 0; i < CUBE_COUNT(d.layers); i++)
		if (s->layers[i][part].upper >= 0)
			d.layers[i] = changes_open(s->layers[i][part].upper, in_layer);
	if (part == CUBE_PART_WORKSPACE)
		rc = cube_buf_adds(&w.path, "/workspace");
	else
		w.seed = &s->seed;
	if (rc == 0 && d.now >= 0)
		rc = changes_level(&w, &d);
	for (size_t i = 0; i < CUBE_COUNT(d.layers); i++)
		if (d.layers[i] >= 0)
			close(d.layers[i]);
	if (d.now >= 0)
		close(d.now);
	if (d.was >= 0)
		close(d.was);
	cube_buf_done(&w.path);
	return rc;
}

static void changes_done(struct changes_sides *s)
{
	for (unsigned p = 0; p < CUBE_PART_COUNT; p++) {
		cube_local_keep_end(s->own[p]);
		cube_local_layer_close(&s->layers[0][p]);
		cube_local_layer_close(&s->layers[1][p]);
	}
}

int cube_local_changes(struct cube_backend *base, const struct cube_changes *what, struct cube_cancel *cancel,
		       struct cube_err *err)
{
	struct cube_local *b = cube_local_of(base);
	struct changes_sides s = {.template = ""};
	int rc;

	for (unsigned p = 0; p < CUBE_PART_COUNT; p++) {
		s.now[p] = s.was[p] = s.own[p] = CHANGES_NO;
		s.layers[0][p] = s.layers[1][p] = (struct cube_local_layer)CUBE_LOCAL_LAYER_NONE;
	}
	rc = what->cp ? changes_of_checkpoint(b, what, &s, err) : changes_of_cube(b, what, &s, err);
	if (rc == 0)
		rc = changes_base(b, &s, err);
	for (unsigned p = 0; rc == 0 && p < CUBE_PART_COUNT; p++) {
		rc = changes_part(what, &s, (enum cube_local_part)p, cancel);
		if (rc < 0)
			(void)cube_fail(err, rc, "cannot tell what changed in %s: %s",
					what->cp ? what->cp : what->id,
					rc == -EINTR ? "interrupted" : cube_errno_text(rc));
	}
	changes_done(&s);
	return rc;
}
