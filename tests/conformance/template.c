/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: import of a directory, use, removal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "tests/conformance/conformance.h"

struct source {
	char path[64];
	int fd;
};

static void make(int dir, const char *name, const char *text, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* A directory as a template could be. */
static struct source source_make(void)
{
	struct source src = {.path = "/tmp/cubefs-source.XXXXXX"};

	assert_non_null(mkdtemp(src.path));
	src.fd = open(src.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(src.fd >= 0);
	assert_int_equal(fchmod(src.fd, 0755), 0);
	assert_int_equal(mkdirat(src.fd, "tmp", 0755), 0);
	assert_int_equal(mkdirat(src.fd, "etc", 0755), 0);
	assert_int_equal(mkdirat(src.fd, "bin", 0755), 0);
	put_shell(src.fd);
	make(src.fd, "etc/motd", "from the template\n", 0640);
	make(src.fd, "etc/run", "#!/bin/sh\n", 0755);
	assert_int_equal(symlinkat("motd", src.fd, "etc/link"), 0);
	return src;
}

static void source_done(struct source *src)
{
	assert_int_equal(close(src->fd), 0);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, src->path), 0);
}

static void log_line(void *ctx, const char *line)
{
	assert_true(strlen(line) > 0 && strchr(line, '\n') == NULL);
	(*(unsigned *)ctx)++;
}

static void log_percent(void *ctx, unsigned percent)
{
	(void)ctx;
	assert_true(percent <= 100);
}

static struct cube_template_order order(const char *name, const char *path, int fd, unsigned *lines)
{
	return (struct cube_template_order){.name = name,
					    .source = path,
					    .fd = fd,
					    .log = log_line,
					    .progress = log_percent,
					    .ctx = lines};
}

static void import(struct subject *s, const char *name, const struct source *src)
{
	struct cube_err err;
	unsigned lines = 0;

	const struct cube_template_order o = order(name, src->path, src->fd, &lines);

	if (cube_backend_template_import(s->stage.b, &o, NULL, &err) < 0)
		fail_msg("import: %s", err.text);
	assert_true(lines > 0);
}

struct search {
	const char *name;
	struct cube_template found;
	unsigned hits;
};

static void search_each(void *ctx, const struct cube_template *t)
{
	struct search *search = ctx;

	if (strcmp(t->name, search->name) == 0) {
		search->found = *t;
		search->hits++;
	}
}

static struct search search(struct subject *s, const char *name)
{
	struct search found = {.name = name};
	struct cube_err err;

	if (cube_backend_template_list(s->stage.b, search_each, &found, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(found.hits <= 1);
	return found;
}

static void count_each(void *ctx, const struct cube_template *t)
{
	assert_true(t->state[0] != '\0');
	(*(unsigned *)ctx)++;
}

static void listed(struct subject *s)
{
	unsigned n = 0;

	assert_int_equal(cube_backend_template_list(s->stage.b, count_each, &n, NULL), 0);
	assert_true(n >= 1); /* the default */
	assert_int_equal(search(s, "no-such-template").hits, 0);
}

static void imported(struct subject *s)
{
	struct source src = source_make();
	struct search found;
	struct cube_root root;
	struct stat st;
	char link[16] = "";
	char *id;

	import(s, "t:1", &src);
	found = search(s, "t:1");
	assert_int_equal(found.hits, 1);
	assert_string_equal(found.found.state, "ready");
	assert_true(found.found.fingerprint[0] != '\0');
	id = stage_create(&s->stage, "t:1");
	assert_int_equal(cube_backend_root(s->stage.b, id, &root, NULL), 0);
	assert_int_equal(fstatat(root.fd, "etc/motd", &st, 0), 0);
	assert_int_equal(st.st_size, 18);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(fstatat(root.fd, "etc/run", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(readlinkat(root.fd, "etc/link", link, sizeof(link) - 1), 4);
	assert_int_equal(fstatat(root.fd, "workspace", &st, 0), 0);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "t:1", NULL), 0);
	assert_int_equal(search(s, "t:1").hits, 0);
	cube_free(id);
	source_done(&src);
}

static void imported_again(struct subject *s)
{
	struct source src = source_make();
	char first[72];

	import(s, "twice", &src);
	memcpy(first, search(s, "twice").found.fingerprint, sizeof(first));
	import(s, "twice", &src);
	assert_string_equal(search(s, "twice").found.fingerprint, first);
	make(src.fd, "etc/new", "new\n", 0644);
	import(s, "twice", &src);
	assert_string_not_equal(search(s, "twice").found.fingerprint, first);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "twice", NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "twice", NULL), 0);
	source_done(&src);
}

/* A change in a sandbox is not one of the template. */
static void own_copy(struct subject *s)
{
	struct source src = source_make();
	struct cube_root root;
	char *first, *second;

	import(s, "own", &src);
	first = stage_create(&s->stage, "own");
	assert_int_equal(cube_backend_root(s->stage.b, first, &root, NULL), 0);
	assert_int_equal(unlinkat(root.fd, "etc/motd", 0), 0);
	cube_root_close(&root);
	second = stage_create(&s->stage, "own");
	assert_int_equal(cube_backend_root(s->stage.b, second, &root, NULL), 0);
	assert_int_equal(faccessat(root.fd, "etc/motd", F_OK, AT_EACCESS), 0);
	cube_root_close(&root);
	assert_int_equal(cube_backend_destroy(s->stage.b, first, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, second, NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "own", NULL), 0);
	cube_free(first);
	cube_free(second);
	source_done(&src);
}

static void in_use(struct subject *s)
{
	struct source src = source_make();
	struct cube_err err;
	char *id;

	import(s, "used", &src);
	id = stage_create(&s->stage, "used");
	expect_failure(cube_backend_template_remove(s->stage.b, "used", &err), -EBUSY, &err);
	assert_int_equal(search(s, "used").hits, 1);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "used", NULL), 0);
	cube_free(id);
	source_done(&src);
}

static void refused(struct subject *s)
{
	struct cube_err err;
	unsigned lines = 0;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	struct cube_template_order o = order("../t", "/", -1, &lines);

	expect_failure(cube_backend_template_import(s->stage.b, &o, NULL, &err), -EINVAL, &err);
	o = order("bad", "/dev/null", null, &lines);
	assert_true(cube_backend_template_import(s->stage.b, &o, NULL, &err) < 0);
	assert_true(err.text[0] != '\0');
	assert_int_equal(search(s, "bad").hits, 0);
	expect_failure(cube_backend_template_remove(s->stage.b, "a/b", &err), -EINVAL, &err);
	assert_int_equal(close(null), 0);
}

static void cancelled(struct subject *s)
{
	struct source src = source_make();
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_err err;
	unsigned lines = 0;

	cube_cancel_fire(cancel);
	const struct cube_template_order o = order("cut", src.path, src.fd, &lines);

	expect_failure(cube_backend_template_import(s->stage.b, &o, cancel, &err), -EINTR, &err);
	assert_int_equal(search(s, "cut").hits, 0);
	cube_cancel_unref(cancel);
	source_done(&src);
}

/* What a sandbox was when it stopped, as a layer; and a template of it, with what it says of its programs. */
static void built(struct subject *s)
{
	static const char layer[] = "~0123456789abcdef0123456789abcdef";
	struct source src = source_make();
	struct cube_template t = {.name = "made", .source = "build", .fingerprint = "sha256:1"};
	struct cube_template_config config, got;
	struct cube_err err;
	struct cube_root root;
	char *id;

	import(s, "below", &src);
	id = stage_create(&s->stage, "below");
	assert_int_equal(cube_backend_root(s->stage.b, id, &root, NULL), 0);
	make(root.fd, "etc/new", "new\n", 0644);
	assert_int_equal(unlinkat(root.fd, "etc/motd", 0), 0);
	cube_root_close(&root);
	expect_failure(cube_backend_template_commit(s->stage.b, id, "no-layer", NULL, &err), -EINVAL, &err);
	assert_int_equal(cube_backend_stop(s->stage.b, id, 1, NULL, NULL), 0);
	assert_int_equal(cube_backend_template_commit(s->stage.b, id, layer, NULL, NULL), 0);
	assert_int_equal(cube_backend_template_commit(s->stage.b, id, layer, NULL, NULL), 0);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);

	cube_template_config_init(&config);
	assert_int_equal(cube_buf_add(&config.env, "A=b c", 6), 0);
	expect_failure(cube_backend_template_derive(s->stage.b, "nothing", &t, &config, &err), -ENOENT, &err);
	assert_int_equal(cube_backend_template_derive(s->stage.b, layer, &t, &config, NULL), 0);
	assert_int_equal(cube_backend_template_derive(s->stage.b, layer, &t, &config, NULL), 0);
	assert_int_equal(cube_backend_template_config(s->stage.b, "made", &got, NULL), 0);
	assert_int_equal(got.env.len, 6);
	assert_string_equal(got.env.data, "A=b c");
	cube_template_config_done(&got);
	cube_template_config_done(&config);
	assert_string_equal(search(s, "made").found.fingerprint, "sha256:1");

	id = stage_create(&s->stage, "made");
	assert_int_equal(cube_backend_root(s->stage.b, id, &root, NULL), 0);
	assert_int_equal(faccessat(root.fd, "etc/new", F_OK, AT_EACCESS), 0);
	assert_int_equal(faccessat(root.fd, "etc/run", F_OK, AT_EACCESS), 0);
	assert_int_equal(faccessat(root.fd, "etc/motd", F_OK, AT_EACCESS), -1);
	cube_root_close(&root);
	expect_failure(cube_backend_template_remove(s->stage.b, "made", &err), -EBUSY, &err);
	assert_int_equal(cube_backend_destroy(s->stage.b, id, NULL), 0);
	cube_free(id);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "made", NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, layer, NULL), 0);
	assert_int_equal(cube_backend_template_remove(s->stage.b, "below", NULL), 0);
	assert_int_equal(search(s, layer).hits, 0);
	expect_failure(cube_backend_template_config(s->stage.b, "made", &got, &err), -ENOENT, &err);
	source_done(&src);
}

const struct check checks_template[] = {
	{"templates are listed", CUBE_CAP_TEMPLATES, 0, listed},
	{"a directory as a template", CUBE_CAP_TEMPLATES | CUBE_CAP_FILES, 0, imported},
	{"import again", CUBE_CAP_TEMPLATES, 0, imported_again},
	{"a sandbox has a copy of its own", CUBE_CAP_TEMPLATES | CUBE_CAP_FILES, 0, own_copy},
	{"a template in use", CUBE_CAP_TEMPLATES, 0, in_use},
	{"layers and what is built of them",
	 CUBE_CAP_TEMPLATES | CUBE_CAP_BUILD | CUBE_CAP_FILES | CUBE_CAP_STOP, 0, built},
	{"templates that are refused", CUBE_CAP_TEMPLATES, 0, refused},
	{"import that is cancelled", CUBE_CAP_TEMPLATES, 0, cancelled},
	{.name = NULL},
};
