/* SPDX-License-Identifier: Apache-2.0 */
/* The rig of the tree's tests. */
#include "tests/unit/tree/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "ctl/cube.h"
#include "fs/tree/tree_priv.h"

#define RIG_WAIT_S  10
#define RIG_HANDLES 64 /* that can be taken over */

struct rig rig;

static struct {
	char dir[64];
	struct cube_conf *conf;
	struct cube_files_space *files;
	int keep_fd;
	_Atomic uint64_t number; /* of the latest request */
	struct cube_handle *adopted[RIG_HANDLES];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t some;
} rig_own = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

static void *rig_loop(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

static int rig_begin(void)
{
	static const char conf[] = "[backend mem]\nkind = mem\n";
	struct cube_files_options fo = {.uid = getuid(), .gid = getgid()};
	struct cube_domain_options o = {.uid = getuid(), .gid = getgid()};
	struct cube_tree_options to = {0};
	struct cube_err err = {0};

	cube_log_setup(STDERR_FILENO, CUBE_LOG_ERROR);
	(void)snprintf(rig_own.dir, sizeof(rig_own.dir), "/tmp/cubefs-tree-XXXXXX");
	assert_non_null(mkdtemp(rig_own.dir));
	assert_int_equal(cube_conf_parse(conf, strlen(conf), "test", &rig_own.conf, &err), 0);
	rig.loop = cube_loop_new();
	o.state_dir = rig_own.dir;
	o.conf = rig_own.conf;
	o.loop = rig.loop;
	if (cube_domain_open(&o, &rig.domain, &err) < 0)
		fail_msg("%s", err.text);
	rig_own.files = cube_files_space_new(&fo);
	to.domain = rig.domain;
	to.files = rig_own.files;
	to.keep = rig.keep;
	rig.tree = cube_tree_new(&to);
	assert_non_null(rig.tree);
	if (cube_domain_start(rig.domain, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(pthread_create(&rig_own.thread, NULL, rig_loop, rig.loop), 0);
	return 0;
}

int rig_up(void **state)
{
	(void)state;
	return rig_begin();
}

int rig_up_kept(void **state)
{
	struct cube_err err = {0};

	(void)state;
	assert_int_equal(cube_keep_make(&rig_own.keep_fd, &err), 0);
	assert_int_equal(cube_keep_open(rig_own.keep_fd, &rig.keep, &err), 0);
	return rig_begin();
}

/* ---- the next worker ---- */

static void rig_copy_keep(struct cube_keep **ret, int *ret_fd)
{
	struct cube_err err = {0};
	off_t at = 0, end;
	char page[4096];

	assert_int_equal(cube_keep_make(ret_fd, &err), 0);
	while ((at = lseek(rig_own.keep_fd, at, SEEK_DATA)) >= 0) {
		end = lseek(rig_own.keep_fd, at, SEEK_HOLE);
		for (; at < end; at += (off_t)sizeof(page)) {
			assert_int_equal(pread(rig_own.keep_fd, page, sizeof(page), at), sizeof(page));
			assert_int_equal(pwrite(*ret_fd, page, sizeof(page), at), sizeof(page));
		}
	}
	assert_int_equal(cube_keep_open(*ret_fd, ret, &err), 0);
}

static void rig_adopt(void *ctx, uint32_t record, struct cube_handle *h)
{
	(void)ctx;
	assert_true(record < RIG_HANDLES);
	rig_own.adopted[record] = h;
}

static uint32_t rig_record(const struct cube_handle *h)
{
	uint32_t i = 0;

	while (cube_keep_at(&rig.keep->handles, i) != h->kept)
		i++;
	return i;
}

struct cube_handle *rig_next_worker(const struct cube_handle *open)
{
	uint32_t record = rig_record(open);
	struct cube_tree_options to = {.domain = rig.domain, .files = rig_own.files};
	struct cube_keep *old = rig.keep;
	int fd;

	rig_copy_keep(&to.keep, &fd); /* before the old tree's end changes anything */
	cube_tree_shutdown(rig.tree);
	cube_tree_free(rig.tree);
	cube_keep_close(old);
	(void)close(rig_own.keep_fd);
	rig.keep = to.keep;
	rig_own.keep_fd = fd;
	memset(rig_own.adopted, 0, sizeof(rig_own.adopted));
	rig.tree = cube_tree_new(&to);
	assert_non_null(rig.tree);
	assert_int_equal(cube_tree_restore(rig.tree, rig_adopt, NULL), 0);
	return rig_own.adopted[record];
}

int rig_down(void **state)
{
	(void)state;
	cube_tree_shutdown(rig.tree);
	cube_domain_shutdown(rig.domain, 5000);
	cube_loop_stop(rig.loop);
	(void)pthread_join(rig_own.thread, NULL);
	cube_tree_free(rig.tree);
	cube_domain_close(rig.domain);
	cube_files_space_free(rig_own.files);
	cube_loop_free(rig.loop);
	cube_conf_free(rig_own.conf);
	if (rig.keep != NULL) {
		cube_keep_close(cube_steal(rig.keep));
		(void)close(rig_own.keep_fd);
	}
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, rig_own.dir), 0);
	return 0;
}

/* ---- requests ---- */

static void rig_answer(struct rig_call *c, int result)
{
	(void)pthread_mutex_lock(&rig_own.lock);
	c->result = result;
	c->over = true;
	(void)pthread_cond_broadcast(&rig_own.some);
	(void)pthread_mutex_unlock(&rig_own.lock);
}

static void rig_done(struct cube_req *r, int result)
{
	struct rig_call *c = cube_container_of(r, struct rig_call, r);

	if (result >= 0 && r->out != NULL) {
		c->out_len = r->out_len < sizeof(c->out) - 1 ? r->out_len : sizeof(c->out) - 1;
		memcpy(c->out, r->out, c->out_len);
		c->out[c->out_len] = '\0';
	}
	cube_req_fini(r);
	rig_answer(c, result);
}

static void rig_real(struct cube_req *r)
{
	struct rig_call *c = cube_container_of(r, struct rig_call, r);

	c->real = true;
	cube_req_fini(r);
	rig_answer(c, 0);
}

static int rig_add(struct cube_req *r, const char *name, const struct cube_tree_entry *e, uint64_t next)
{
	struct rig_call *c = cube_container_of(r, struct rig_call, r);
	size_t len = strlen(c->list);

	(void)e;
	if (c->r.size != 0 && len + strlen(name) > c->r.size)
		return 1;
	(void)snprintf(c->list + len, sizeof(c->list) - len, "%s ", name);
	c->r.offset = next;
	return 0;
}

void rig_fill(struct rig_call *c, enum cube_req_op op, uint64_t node)
{
	memset(c, 0, sizeof(*c));
	c->r.op = op;
	rig_own.number += 2; /* not in one line: clang takes no atomic sum for a plain value */
	c->r.unique = rig_own.number;
	c->r.node = node;
	c->r.caller = (struct cube_caller){
		.pid = getpid(), .uid = getuid(), .gid = getgid(), .local = true, .owner = true};
	c->r.done = rig_done;
	c->r.real = rig_real;
	c->r.add = rig_add;
}

void rig_start(struct rig_call *c)
{
	cube_tree_submit(rig.tree, &c->r);
}

bool rig_over(struct rig_call *c)
{
	bool over;

	(void)pthread_mutex_lock(&rig_own.lock);
	over = c->over;
	(void)pthread_mutex_unlock(&rig_own.lock);
	return over;
}

int rig_end(struct rig_call *c)
{
	struct timespec until;
	int code = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RIG_WAIT_S;
	(void)pthread_mutex_lock(&rig_own.lock);
	while (!c->over && code == 0)
		code = pthread_cond_timedwait(&rig_own.some, &rig_own.lock, &until);
	(void)pthread_mutex_unlock(&rig_own.lock);
	if (code != 0)
		fail_msg("request %d (%s) was not answered", c->r.op, c->r.name != NULL ? c->r.name : "-");
	return c->result;
}

int rig_run(struct rig_call *c)
{
	rig_start(c);
	return rig_end(c);
}

/* ---- in one go ---- */

static int rig_step(uint64_t *node, const char *name)
{
	struct rig_call c;
	int code;

	rig_fill(&c, CUBE_REQ_LOOKUP, *node);
	(void)snprintf(c.name, sizeof(c.name), "%s", name);
	c.r.name = c.name;
	code = rig_run(&c);
	if (code == 0)
		*node = c.r.entry.id;
	return code;
}

static int rig_walk(const char *path, uint64_t *node)
{
	char copy[512], *save = NULL;
	int code = 0;

	*node = CUBE_TREE_ROOT;
	(void)snprintf(copy, sizeof(copy), "%s", path);
	for (char *part = strtok_r(copy, "/", &save); part != NULL && code == 0;
	     part = strtok_r(NULL, "/", &save))
		code = rig_step(node, part);
	return code;
}

uint64_t rig_node(const char *path)
{
	uint64_t node;

	return rig_walk(path, &node) == 0 ? node : 0;
}

int rig_lookup(const char *path)
{
	uint64_t node;

	return rig_walk(path, &node);
}

int rig_on(enum cube_req_op op, const char *dir, const char *name)
{
	struct rig_call c;

	rig_fill(&c, op, rig_node(dir));
	c.r.name = name;
	return rig_run(&c);
}

int rig_open_by(pid_t pid, const char *path, int flags, struct cube_handle **ret)
{
	struct rig_call c;
	uint64_t node;
	int code = rig_walk(path, &node);

	if (code < 0)
		return code;
	rig_fill(&c, CUBE_REQ_OPEN, node);
	c.r.flags = (unsigned)flags;
	c.r.caller.pid = pid;
	if (rig.keep != NULL)
		c.r.kept = cube_keep_at(&rig.keep->handles, cube_keep_take(&rig.keep->handles));
	code = rig_run(&c);
	if (code == 0)
		*ret = c.r.opened;
	return code;
}

int rig_open(const char *path, int flags, struct cube_handle **ret)
{
	return rig_open_by(getpid(), path, flags, ret);
}

int rig_write(struct cube_handle *h, const char *text)
{
	struct rig_call c;

	rig_fill(&c, CUBE_REQ_WRITE, 0);
	c.r.handle = h;
	c.r.data = text;
	c.r.size = strlen(text);
	return rig_run(&c);
}

int rig_flush_by(pid_t pid, struct cube_handle *h)
{
	struct rig_call c;

	rig_fill(&c, CUBE_REQ_FLUSH, 0);
	c.r.handle = h;
	c.r.caller.pid = pid;
	return rig_run(&c);
}

int rig_flush(struct cube_handle *h)
{
	return rig_flush_by(getpid(), h);
}

void rig_release(struct cube_handle *h)
{
	struct rig_call c;

	rig_fill(&c, CUBE_REQ_RELEASE, 0);
	c.r.handle = h;
	assert_int_equal(rig_run(&c), 0);
}

const char *rig_read(struct rig_call *c, struct cube_handle *h, uint64_t offset)
{
	rig_fill(c, CUBE_REQ_READ, 0);
	c->r.handle = h;
	c->r.offset = offset;
	c->r.size = sizeof(c->out) - 1;
	assert_true(rig_run(c) >= 0);
	return c->out;
}

const char *rig_cat(const char *path)
{
	static struct rig_call c;
	struct cube_handle *h;

	assert_int_equal(rig_open(path, O_RDONLY, &h), 0);
	rig_read(&c, h, 0);
	rig_release(h);
	return c.out;
}

int rig_echo(const char *text, const char *path)
{
	struct cube_handle *h;
	char line[1024];
	int code = rig_open(path, O_WRONLY | O_TRUNC, &h), flushed;

	if (code < 0)
		return code;
	assert_int_equal(rig_flush(h), 0); /* the copy that a shell closes first */
	(void)snprintf(line, sizeof(line), "%s\n", text);
	code = rig_write(h, line);
	flushed = rig_flush(h);
	rig_release(h);
	return code < 0 ? code : flushed;
}

const char *rig_ls(const char *path)
{
	static struct rig_call c;

	rig_fill(&c, CUBE_REQ_READDIR, rig_node(path));
	assert_int_equal(rig_run(&c), 0);
	return c.list;
}

void rig_cube(const char *name)
{
	char line[300];

	(void)snprintf(line, sizeof(line), "create %s", name);
	assert_int_equal(rig_echo(line, "ctl"), 0);
}

void rig_gone(const char *name)
{
	char line[300];

	(void)snprintf(line, sizeof(line), "destroy %s", name);
	assert_int_equal(rig_echo(line, "ctl"), 0);
}

void rig_go(const char *cube, const char *file)
{
	char dir[300], text[300];

	(void)snprintf(dir, sizeof(dir), "%s/jobs", cube);
	assert_int_equal(rig_on(CUBE_REQ_MKDIR, dir, file), 0);
	(void)snprintf(dir, sizeof(dir), "%s/jobs/%s/cmd", cube, file);
	(void)snprintf(text, sizeof(text), "write /workspace/%s", file);
	assert_int_equal(rig_echo(text, dir), 0);
}

/* ---- callers ---- */

#define RIG_LEAVE SIGRTMAX /* tells a person to exit by itself */

pid_t rig_person(void)
{
	sigset_t leave, before;
	int sig, ready[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	(void)sigemptyset(&leave);
	(void)sigaddset(&leave, RIG_LEAVE);
	(void)sigprocmask(SIG_BLOCK, &leave, &before); /* it may be told before it gets to run */
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], &byte, 1) == 1)
			(void)sigwait(&leave, &sig);
		_exit(0);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	assert_true(pid > 0);
	(void)close(ready[1]);
	/* While a process is made, all its signals may be blocked. */
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

void rig_person_end(pid_t pid, int sig)
{
	siginfo_t info;

	assert_int_equal(kill(pid, sig == 0 ? RIG_LEAVE : sig), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

void rig_person_bury(pid_t pid)
{
	(void)waitpid(pid, NULL, 0);
}
