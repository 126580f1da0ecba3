/* SPDX-License-Identifier: Apache-2.0 */
/* The backend libvirt without a machine: its section, a domain's description, libvirt's own driver for tests, and another side
 * that is not there or says nothing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/registry.h"
#include "tests/unit/backends/stage.h"

#ifdef CUBEFS_LIBVIRT
#include "backends/libvirt/libvirt_priv.h"

#ifdef __SANITIZE_THREAD__
/* Both are built without the sanitizer, which sees their memory change hands and not how. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:libglib-2.0.so\nrace:libvirt.so\n";
}
#endif

/* What libvirt's driver for tests has from the beginning. */
#define FOREIGN "6695eb01-f6a4-8304-79aa-97f2502e193f"

static struct cube_libvirt *instance(struct stage *s)
{
	return cube_container_of(s->b, struct cube_libvirt, base);
}

/* A template that is enough for a description. */
static void template_make(struct stage *s)
{
	const char *dir = instance(s)->templates;
	char path[PATH_MAX + 32];
	int fd;

	assert_int_equal(cube_file_mkdir_path(dir, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/bare", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/bare/kernel", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/bare", dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(cube_file_replace(fd, "info.json", "{}", 2, 0644), 0);
	(void)close(fd);
}

static void stage_test_driver(struct stage *s)
{
	struct cube_err err;

	if (stage_open(s, cube_backend_find("libvirt"), "url = test:///default\ntemplate = bare", &err) < 0)
		fail_msg("%s", err.text);
	assert_true(instance(s)->host.known);
	template_make(s);
}

/* ---- the section ---- */

static void refused(void **state)
{
	static const struct {
		const char *conf, *word;
	} cases[] = {
		{"colour = red", "colour"},        {"accel = warp", "accel"},   {"timeout = 0", "timeout"},
		{"timeout = soon", "timeout"},     {"boot = 0", "boot"},        {"dir = here", "dir"},
		{"templates = ../x", "templates"}, {"memory = much", "memory"},
	};

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(cases); i++) {
		struct stage s;
		struct cube_err err;

		assert_int_equal(stage_open(&s, cube_backend_find("libvirt"), cases[i].conf, &err), -EINVAL);
		if (strstr(err.text, cases[i].word) == NULL)
			fail_msg("'%s' does not say '%s'", err.text, cases[i].word);
	}
}

/* ---- descriptions ---- */

static const struct libvirt_template plain = {
	.name = "t", .kernel = "/k & more", .initrd = "/i", .arch = "x86_64", .words = "a=\"b\""};

static int describe(const char *labels, char **ret, struct cube_err *err)
{
	struct libvirt_note note = {.uid = "0123456789abcdef",
				    .name = "dev",
				    .template = "t",
				    .created = UINT64_C(1796066600123456789),
				    .net = CUBE_NET_OPEN,
				    .disk = UINT64_C(5) << 30,
				    .memory = UINT64_C(256) << 20,
				    .cpus = 2,
				    .labels = cube_strdup(labels)};
	struct libvirt_machine m = {.id = note.uid,
				    .note = &note,
				    .template = &plain,
				    .root = "/d/<root>",
				    .workspace = "/d/w",
				    .socket = "/d/agent.sock",
				    .console = "/d/c"};
	int rc = libvirt_xml(&m, ret, err);

	libvirt_note_done(&note);
	return rc;
}

static void noted(void **state)
{
	struct libvirt_note got;
	struct cube_err err;
	char *xml = NULL;

	(void)state;
	assert_int_equal(describe("a=1\nb=<&\"'> \xc3\xa9\n", &xml, &err), 0);
	assert_int_equal(libvirt_note_read(xml, &got, &err), 0);
	assert_string_equal(got.uid, "0123456789abcdef");
	assert_string_equal(got.name, "dev");
	assert_string_equal(got.template, "t");
	assert_string_equal(got.labels, "a=1\nb=<&\"'> \xc3\xa9\n");
	assert_string_equal(got.agent, "/d/agent.sock");
	assert_true(got.created == UINT64_C(1796066600123456789) && got.disk == UINT64_C(5) << 30);
	assert_int_equal(got.net, CUBE_NET_OPEN);
	assert_int_equal(got.cpus, 2);
	libvirt_note_done(&got);
	cube_free(xml);
	assert_int_equal(describe("a=\x01\n", &xml, &err), -EINVAL);
	assert_non_null(strstr(err.text, "control character"));
}

/* What others wrote into a domain. */
static void not_noted(void **state)
{
	static const char *const broken[] = {"", "<domain>", "no xml", "<a></b>"};
	static const char *const foreign[] = {
		"<domain/>",
		"<domain><metadata><sandbox uid='0123456789abcdef'/></metadata></domain>",
		"<domain><metadata><c:sandbox xmlns:c='urn:other' "
		"uid='0123456789abcdef'/></metadata></domain>",
		"<domain><metadata><c:sandbox xmlns:c='urn:cubefs:sandbox:1' "
		"uid='../../etc'/></metadata></domain>",
		"<domain><metadata><c:sandbox xmlns:c='urn:cubefs:sandbox:1'/></metadata></domain>",
	};
	struct libvirt_note got;
	struct cube_err err;

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(broken); i++)
		assert_int_equal(libvirt_note_read(broken[i], &got, &err), -EREMOTEIO);
	for (size_t i = 0; i < CUBE_COUNT(foreign); i++) {
		assert_int_equal(libvirt_note_read(foreign[i], &got, &err), 0);
		assert_string_equal(got.uid, "");
		libvirt_note_done(&got);
	}
}

/* An entity is not expanded, nor fetched. */
static void entities(void **state)
{
	struct libvirt_note got;
	struct cube_err err;
	const char *xml =
		"<!DOCTYPE domain [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><domain><metadata>"
		"<c:sandbox xmlns:c='urn:cubefs:sandbox:1' uid='0123456789abcdef'><labels>&e;</labels>"
		"</c:sandbox></metadata></domain>";

	(void)state;
	if (libvirt_note_read(xml, &got, &err) < 0)
		return;
	assert_true(got.labels == NULL || strstr(got.labels, "root") == NULL);
	libvirt_note_done(&got);
}

/* ---- libvirt's driver for tests ---- */

static void life(void **state)
{
	struct stage s;
	struct cube_err err;
	char uid[17], *id, *again;
	struct cube_spec spec = stage_spec(uid);

	(void)state;
	stage_test_driver(&s);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), 0);
	assert_string_equal(id, uid);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &again, &err), 0);
	assert_string_equal(again, id);
	cube_free(again);
	assert_true(stage_listed(&s, id));
	assert_int_equal(cube_backend_pause(s.b, id, NULL, &err), 0);
	assert_int_equal(cube_backend_pause(s.b, id, NULL, &err), 0);
	assert_int_equal(stage_state(&s, id), CUBE_IS_PAUSED);
	assert_int_equal(cube_backend_resume(s.b, id, NULL, &err), 0);
	assert_int_equal(stage_state(&s, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_stop(s.b, id, 0, NULL, &err), 0);
	assert_int_equal(stage_state(&s, id), CUBE_IS_STOPPED);
	assert_int_equal(cube_backend_pause(s.b, id, NULL, &err), -EHOSTDOWN);
	assert_int_equal(cube_backend_start(s.b, id, NULL, &err), 0);
	assert_int_equal(stage_state(&s, id), CUBE_IS_RUNNING);
	assert_int_equal(cube_backend_destroy(s.b, id, &err), 0);
	assert_int_equal(cube_backend_destroy(s.b, id, &err), 0);
	assert_false(stage_listed(&s, id));
	cube_free(id);
	stage_close(&s);
}

static unsigned count_layers(struct stage *s)
{
	char path[PATH_MAX + 16];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "%s/layers", instance(s)->dir);
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL) /* NOLINT(concurrency-mt-unsafe) */
		n += strstr(e->d_name, ".qcow2") != NULL;
	(void)closedir(d);
	return n;
}

static void box_file(struct stage *s, const char *id, const char *name, char out[PATH_MAX])
{
	assert_int_equal(libvirt_box_path(instance(s), id, name, out, NULL), 0);
}

/* One that is made and stands still, with what a deleted checkpoint has left under its disks. */
static char *layered(struct stage *s)
{
	const struct cube_take take = {.cp = "c0", .files = true};
	struct cube_err err;
	char uid[17], path[PATH_MAX], *id;
	struct stat st;
	struct cube_spec spec = stage_spec(uid);
	uint32_t still;

	stage_test_driver(s);
	assert_int_equal(cube_backend_create(s->b, &spec, NULL, &id, &err), 0);
	assert_int_equal(cube_backend_stop(s->b, id, 0, NULL, &err), 0);
	if (libvirt_checkpoint(s->b, id, &take, NULL, &still, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(count_layers(s), 2);
	assert_int_equal(libvirt_checkpoint_remove(s->b, take.cp, &err), 0);
	assert_int_equal(count_layers(s), 2);
	box_file(s, id, LIBVIRT_ROOT ".qcow2", path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600); /* its name is in QEMU's command line */
	return id;
}

/* What is under a disk stays, whatever is noted of it: an operation may have been cut off behind the note. */
static void needed(void **state)
{
	static const struct libvirt_layer none = {.name = ""};
	struct libvirt_layer wrong;
	struct cube_err err;
	struct stage s;
	char *id;

	(void)state;
	id = layered(&s);
	assert_int_equal(libvirt_layer_set_under(instance(&s), id, LIBVIRT_ROOT, &none, &err), 0);
	assert_int_equal(libvirt_layer_new(&wrong), 0);
	assert_int_equal(libvirt_layer_set_under(instance(&s), id, LIBVIRT_WORKSPACE, &wrong, &err), 0);
	libvirt_layers_sweep(instance(&s));
	assert_int_equal(count_layers(&s), 2);
	assert_int_equal(cube_backend_destroy(s.b, id, &err), 0);
	assert_int_equal(count_layers(&s), 0);
	cube_free(id);
	stage_close(&s);
}

/* A checkpoint that cannot be taken has changed nothing. */
static void not_taken(void **state)
{
	const struct cube_take take = {.cp = "c1", .files = true};
	struct libvirt_layer before, after;
	char path[PATH_MAX];
	struct cube_err err;
	struct stage s;
	uint32_t still;
	char *id;
	int fd;

	(void)state;
	id = layered(&s);
	assert_int_equal(libvirt_layer_under(instance(&s), id, LIBVIRT_WORKSPACE, &before, &err), 0);
	assert_int_equal(strlen(before.name), LIBVIRT_LAYER);
	/* one whose domain is not there, and one with a disk that is none */
	assert_int_equal(libvirt_checkpoint(s.b, "0123456789abcdef", &take, NULL, &still, &err), -ENOENT);
	box_file(&s, id, LIBVIRT_ROOT ".qcow2", path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "none", 4, 0), 4);
	assert_true(libvirt_checkpoint(s.b, id, &take, NULL, &still, &err) < 0);
	assert_int_equal(libvirt_layer_under(instance(&s), id, LIBVIRT_WORKSPACE, &after, &err), 0);
	assert_string_equal(after.name, before.name);
	assert_int_equal(pwrite(fd, "QFI\xfb", 4, 0), 4);
	(void)close(fd);
	assert_int_equal(libvirt_checkpoint(s.b, id, &take, NULL, &still, &err), 0);
	assert_int_equal(count_layers(&s), 4);
	assert_int_equal(cube_backend_destroy(s.b, id, &err), 0);
	assert_int_equal(count_layers(&s), 4); /* it is the checkpoint's */
	assert_int_equal(libvirt_checkpoint_remove(s.b, take.cp, &err), 0);
	assert_int_equal(count_layers(&s), 0);
	cube_free(id);
	stage_close(&s);
}

static void foreign(void **state)
{
	struct stage s;
	struct cube_info info;
	struct cube_err err;

	(void)state;
	stage_test_driver(&s);
	assert_true(stage_listed(&s, FOREIGN));
	assert_int_equal(cube_backend_inspect(s.b, FOREIGN, &info, &err), 0);
	assert_string_equal(info.uid, "");
	assert_int_equal(cube_backend_inspect(s.b, "0123456789abcdef", &info, &err), -ENOENT);
	assert_int_equal(cube_backend_inspect(s.b, "nobody", &info, &err), -ENOENT);
	stage_close(&s);
}

static void no_template(void **state)
{
	struct stage s;
	struct cube_err err;
	char uid[17], *id = NULL;
	struct cube_spec spec = stage_spec(uid);

	(void)state;
	stage_test_driver(&s);
	spec.template = "nothing";
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), -ENOENT);
	assert_non_null(strstr(err.text, "nothing"));
	assert_false(stage_listed(&s, uid));
	stage_close(&s);
}

/* ---- what is told ---- */

struct told {
	struct stage *s;
	struct cube_cancel *cancel;
	pthread_mutex_t lock;
	pthread_cond_t more;
	unsigned begun, seen; /* a bit for each state */
	char id[CUBE_ID_MAX + 1];
	int rc;
};

static void told_begun(void *ctx)
{
	struct told *t = ctx;

	pthread_mutex_lock(&t->lock);
	t->begun++;
	pthread_cond_broadcast(&t->more);
	pthread_mutex_unlock(&t->lock);
}

static void told_changed(void *ctx, const char *id, enum cube_state state)
{
	struct told *t = ctx;

	pthread_mutex_lock(&t->lock);
	if (strcmp(id, t->id) == 0)
		t->seen |= 1u << state;
	pthread_cond_broadcast(&t->more);
	pthread_mutex_unlock(&t->lock);
}

static void told_oom(void *ctx, const char *id)
{
	(void)ctx;
	(void)id;
}

static void *told_run(void *ctx)
{
	struct told *t = ctx;
	struct cube_news news = {.begun = told_begun, .changed = told_changed, .oom = told_oom, .ctx = t};
	struct cube_err err;

	t->rc = cube_backend_watch(t->s->b, &news, t->cancel, &err);
	return NULL;
}

static void followed(void **state)
{
	struct stage s;
	struct told t = {.s = &s, .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
	const unsigned all = 1u << CUBE_IS_RUNNING | 1u << CUBE_IS_PAUSED | 1u << CUBE_IS_GONE;
	struct cube_err err;
	pthread_t thread;
	char *id;

	(void)state;
	stage_test_driver(&s);
	id = stage_create(&s, NULL);
	(void)snprintf(t.id, sizeof(t.id), "%s", id);
	t.cancel = cube_cancel_new();
	assert_int_equal(pthread_create(&thread, NULL, told_run, &t), 0);
	pthread_mutex_lock(&t.lock);
	while (t.begun == 0)
		pthread_cond_wait(&t.more, &t.lock);
	pthread_mutex_unlock(&t.lock);
	assert_int_equal(cube_backend_pause(s.b, id, NULL, &err), 0);
	assert_int_equal(cube_backend_resume(s.b, id, NULL, &err), 0);
	assert_int_equal(cube_backend_destroy(s.b, id, &err), 0);
	pthread_mutex_lock(&t.lock);
	while ((t.seen & all) != all)
		pthread_cond_wait(&t.more, &t.lock);
	pthread_mutex_unlock(&t.lock);
	cube_cancel_fire(t.cancel);
	(void)pthread_join(thread, NULL);
	assert_int_equal(t.rc, -EINTR);
	cube_cancel_unref(t.cancel);
	cube_free(id);
	stage_close(&s);
}

/* ---- nobody there ---- */

static void away(void **state)
{
	struct stage s;
	struct cube_status status;
	struct cube_err err;
	char uid[17], *id = NULL;
	struct cube_spec spec = stage_spec(uid);

	(void)state;
	assert_int_equal(stage_open(&s, cube_backend_find("libvirt"),
				    "url = qemu:///system?socket=/nowhere/libvirt-sock\naccel = tcg", &err),
			 0);
	assert_int_equal(cube_backend_status(s.b, NULL, &status, &err), 0);
	assert_false(status.reachable);
	assert_int_equal(cube_backend_create(s.b, &spec, NULL, &id, &err), -EHOSTUNREACH);
	assert_non_null(strstr(err.text, "/nowhere/libvirt-sock"));
	stage_close(&s);
}

/* One that takes connections and says nothing. */
static int silent(char path[108])
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/cubefs-silent.%d", (int)getpid());
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	(void)snprintf(path, 108, "%s", addr.sun_path);
	return fd;
}

static void *fire(void *ctx)
{
	(void)usleep(100000);
	cube_cancel_fire(ctx);
	return NULL;
}

static void hangs(void **state)
{
	struct stage s;
	struct cube_info info;
	struct cube_cancel *cancel = cube_cancel_new();
	struct cube_err err;
	char path[108], conf[256], uid[17], *id = NULL;
	struct cube_spec spec = stage_spec(uid);
	pthread_t thread;
	int fd = silent(path);

	(void)state;
	(void)snprintf(conf, sizeof(conf), "url = qemu:///system?socket=%s\naccel = tcg\ntimeout = 1", path);
	assert_int_equal(stage_open(&s, cube_backend_find("libvirt"), conf, &err), 0);
	assert_int_equal(cube_backend_inspect(s.b, "0123456789abcdef", &info, &err), -ETIMEDOUT);
	assert_int_equal(pthread_create(&thread, NULL, fire, cancel), 0);
	instance(&s)->timeout_s = 1000;
	assert_int_equal(cube_backend_create(s.b, &spec, cancel, &id, &err), -EINTR);
	(void)pthread_join(thread, NULL);
	(void)close(fd); /* those who wait are told */
	(void)unlink(path);
	cube_cancel_unref(cancel);
	stage_close(&s);
}

#endif

int main(void)
{
#ifdef CUBEFS_LIBVIRT
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),     cmocka_unit_test(noted),    cmocka_unit_test(not_noted),
		cmocka_unit_test(entities),    cmocka_unit_test(life),     cmocka_unit_test(foreign),
		cmocka_unit_test(no_template), cmocka_unit_test(followed), cmocka_unit_test(away),
		cmocka_unit_test(hangs),       cmocka_unit_test(needed),   cmocka_unit_test(not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	return 0; /* this build has no such backend */
#endif
}
