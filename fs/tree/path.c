/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs mkdir, rmdir and mv: a path is walked from the directory of the `ctl` it was written to, and the
 * operation is the tree's own, or, below files/, that of the real files. No link is followed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "fs/tree/tree_priv.h"

/* One path of the verb. */
struct path_end {
	char *text; /* a copy that is cut at its slashes; owned */
	struct cube_node *dir;
	char *inside; /* dir is `files`: the directories below it, "" for none */
	char *name;   /* the last word */
};

/* A verb under way. Belongs to its request. */
struct path_work {
	struct cube_req req;
	struct cube_verb_call *call; /* NULL: nobody waits any more */
	enum cube_path_act act;
	struct path_end ends[2];
	unsigned n_ends;
};

static const enum cube_req_op path_ops[] = {
	[CUBE_PATH_MKDIR] = CUBE_REQ_MKDIR,
	[CUBE_PATH_RMDIR] = CUBE_REQ_RMDIR,
	[CUBE_PATH_MV] = CUBE_REQ_RENAME,
};

#define PATH_NEW_MODE 0755

static void path_free(struct path_work *w)
{
	for (unsigned i = 0; i < w->n_ends; i++) {
		if (w->ends[i].dir != NULL)
			cube_node_unref(w->ends[i].dir);
		cube_free(w->ends[i].text);
	}
	cube_free(w);
}

/* ---- the walk ---- */

/* The next word at *at, cut off; NULL: none is left. `.` is no word. */
static char *path_word(char **at)
{
	for (;;) {
		char *word = *at + strspn(*at, "/");
		size_t len = strcspn(word, "/");

		if (len == 0)
			return NULL;
		*at = word + len + (word[len] == '/');
		word[len] = '\0';
		if (strcmp(word, ".") != 0)
			return word;
	}
}

/* Of what is below files/ the last word is the name, what is in front of it stays one text. */
static void path_split_inside(struct path_end *e, char *rest)
{
	char *end = rest + strlen(rest), *slash;

	while (end > rest && (end[-1] == '/' || (end[-1] == '.' && end - 1 > rest && end[-2] == '/')))
		end--;
	*end = '\0';
	slash = strrchr(rest, '/');
	e->name = slash != NULL ? slash + 1 : rest;
	e->inside = slash != NULL ? rest : end;
	if (slash != NULL)
		*slash = '\0';
}

static int path_walk(struct path_end *e, struct cube_node *from)
{
	char *at = e->text, *word = path_word(&at);

	e->dir = cube_node_ref(from);
	for (;;) {
		struct cube_node *next;
		char *then;
		int code;

		e->name = word;
		if (e->dir->entry->files) {
			word[strlen(word)] = *at != '\0' ? '/' : '\0';
			path_split_inside(e, word);
			return 0;
		}
		then = path_word(&at);
		if (then == NULL)
			return 0;
		code = cube_dir_enter(e->dir, word, &next);
		if (code < 0)
			return code;
		cube_node_unref(e->dir);
		e->dir = next;
		word = then;
	}
}

/* ---- the end ---- */

static void path_fail(const struct path_work *w, struct cube_err *err, int code)
{
	char *const *words = w->call->words;

	if (err->code != code)
		(void)cube_fail(err, code, "%s", cube_errno_text(code));
	if (w->act == CUBE_PATH_MV)
		(void)cube_fail_in(err, "%s '%s' '%s'", words[0], words[1], words[2]);
	else
		(void)cube_fail_in(err, "%s '%s'", words[0], words[1]);
}

static void path_end(struct path_work *w, int code)
{
	struct cube_tree *t = w->req.tree;
	struct cube_verb_call *call;

	cube_req_fini(&w->req);
	cube_domain_enter(t->domain);
	call = w->call;
	if (call != NULL) {
		call->state = NULL;
		call->cancel = NULL;
		if (code < 0) {
			call->err = w->req.err;
			path_fail(w, &call->err, code);
		}
	}
	if (code == 0 && w->act != CUBE_PATH_MKDIR)
		cube_tree_tell(t, w->ends[0].dir, w->ends[0].name); /* no kernel has done this itself */
	path_free(w);
	if (call != NULL)
		cube_verb_finish(call, code < 0 ? code : 0);
	cube_domain_leave(t->domain);
}

static void path_done(struct cube_req *r, int result)
{
	struct path_work *w = cube_container_of(r, struct path_work, req);

	if (result == 0 && r->op == CUBE_REQ_MKDIR)
		cube_tree_forget(r->tree, r->entry.id, 1); /* no front end has been told of it */
	path_end(w, result);
}

static void path_cancel(struct cube_verb_call *call)
{
	struct path_work *w = cube_steal(call->state);

	w->call = NULL;
	call->cancel = NULL;
	cube_req_call_off(&w->req, -EINTR);
}

/* ---- below files/: on any thread, no lock ---- */

/* The directory @inside, from @root on: a counted node (or @root itself). */
static int path_real_walk(struct cube_files_space *s, uint64_t root, char *inside, uint64_t *ret)
{
	struct cube_files_entry e = {.id = root};
	char *at = inside, *word;

	while ((word = path_word(&at)) != NULL) {
		uint64_t dir = e.id;
		int code = cube_files_lookup(s, dir, word, &e);

		if (dir != root)
			cube_files_forget(s, dir, 1);
		if (code < 0)
			return code;
		if (!S_ISDIR(e.st.st_mode)) {
			cube_files_forget(s, e.id, 1);
			return S_ISLNK(e.st.st_mode) ? -ELOOP : -ENOTDIR;
		}
	}
	*ret = e.id;
	return 0;
}

static int path_real_mkdir(struct path_work *w, uint64_t dir)
{
	const struct cube_caller *by = &w->req.caller;
	const struct cube_files_cred cred = {.uid = by->uid, .gid = by->gid, .pid = by->pid};
	struct cube_files_space *s = w->req.files_view->files;
	struct cube_files_entry e;
	int code = cube_files_mkdir(s, &cred, dir, w->ends[0].name, PATH_NEW_MODE, &e);

	if (code == 0)
		cube_files_forget(s, e.id, 1);
	return code;
}

static int path_real_act(struct path_work *w, const uint64_t dirs[2])
{
	struct cube_files_space *s = w->req.files_view->files;

	switch (w->act) {
	case CUBE_PATH_MKDIR:
		return path_real_mkdir(w, dirs[0]);
	case CUBE_PATH_RMDIR:
		return cube_files_rmdir(s, dirs[0], w->ends[0].name);
	case CUBE_PATH_MV:
		return cube_files_rename(s, dirs[0], w->ends[0].name, dirs[1], w->ends[1].name,
					 RENAME_NOREPLACE);
	}
	return -EINVAL;
}

static void path_real(struct cube_req *r)
{
	struct path_work *w = cube_container_of(r, struct path_work, req);
	struct cube_files_space *s = r->files_view->files;
	uint64_t dirs[2] = {0};
	unsigned n = 0;
	int code = 0;

	while (code == 0 && n < w->n_ends) {
		code = path_real_walk(s, r->real_id, w->ends[n].inside, &dirs[n]);
		if (code == 0)
			n++;
	}
	if (code == 0)
		code = path_real_act(w, dirs);
	while (n-- > 0)
		if (dirs[n] != r->real_id)
			cube_files_forget(s, dirs[n], 1);
	path_end(w, code);
}

/* ---- the beginning ---- */

static struct cube_node *path_from(struct cube_tree *t, const struct cube_verb_call *call)
{
	struct cube_node *n;
	struct cube_obj *o;

	if (call->scope == CUBE_SCOPE_ROOT)
		return cube_node_ref(t->root_node);
	o = cube_obj_get(t, &cube_type_cube, call->object);
	if (o == NULL)
		return NULL;
	n = cube_node_get(o, o->type->self);
	cube_obj_unref(o);
	return n;
}

static int path_walk_all(struct cube_tree *t, struct path_work *w)
{
	struct cube_node *from = path_from(t, w->call);
	int code = from != NULL ? 0 : -ENOMEM;

	for (unsigned i = 1; code == 0 && i < w->call->n_words; i++) {
		struct path_end *e = &w->ends[w->n_ends++];

		e->text = cube_strdup(w->call->words[i]);
		code = e->text != NULL ? path_walk(e, from) : -ENOMEM;
	}
	if (from != NULL)
		cube_node_unref(from);
	return code;
}

static void path_fill(struct path_work *w)
{
	const struct path_end *last = &w->ends[w->n_ends - 1];

	w->req.op = path_ops[w->act];
	w->req.caller = w->call->by;
	w->req.node = w->ends[0].dir->id;
	w->req.name = w->ends[0].name;
	w->req.new_parent = last->dir->id;
	w->req.new_name = last->name;
	w->req.flags = w->act == CUBE_PATH_MV ? RENAME_NOREPLACE : 0;
	w->req.done = path_done;
	w->req.real = path_real;
	w->req.noted = true; /* who wrote the verb notes it */
}

int cube_path_start(void *ctx, enum cube_path_act act, struct cube_verb_call *call, struct cube_err *err)
{
	struct path_work *w = cube_calloc(1, sizeof(*w));
	int code;

	if (w == NULL)
		return cube_fail(err, -ENOMEM, "%s: out of memory", call->verb->name);
	w->act = act;
	w->call = call;
	code = path_walk_all(ctx, w);
	if (code < 0) {
		path_fail(w, err, code);
		path_free(w);
		return code;
	}
	path_fill(w);
	call->state = w;
	call->cancel = path_cancel;
	cube_req_submit(ctx, &w->req);
	return 1;
}
