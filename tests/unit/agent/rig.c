/* SPDX-License-Identifier: Apache-2.0 */
/* The test rig around cube-init-host. */
#include "tests/unit/agent/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/agent/link.h"
#include "backends/base/clock.h"
#include "backends/base/file.h"
#include "backends/base/macros.h"

#define DEADLINE_S 20

static struct rig_job *job_locked(struct rig *r, uint64_t id)
{
	for (unsigned i = r->n_jobs; i > 0; i--) {
		if (r->jobs[i - 1].id == id)
			return &r->jobs[i - 1];
	}
	assert_true(r->n_jobs < RIG_JOBS);
	r->jobs[r->n_jobs] = (struct rig_job){.id = id, .out_fd = -1, .order_fd = -1};
	return &r->jobs[r->n_jobs++];
}

static struct rig_session *session_locked(struct rig *r, uint64_t id)
{
	for (unsigned i = 0; i < r->n_sessions; i++) {
		if (r->sessions[i].id == id)
			return &r->sessions[i];
	}
	assert_true(r->n_sessions < RIG_SESSIONS);
	r->sessions[r->n_sessions] = (struct rig_session){.id = id};
	return &r->sessions[r->n_sessions++];
}

static struct rig *told(void *ctx, const char *what)
{
	struct rig *r = ctx;

	pthread_mutex_lock(&r->lock);
	r->order = what;
	return r;
}

static void told_done(struct rig *r)
{
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static void on_up(void *ctx, uint64_t boot)
{
	struct rig *r = told(ctx, "up");

	r->ups++;
	r->boot = boot;
	told_done(r);
}

static void on_synced(void *ctx)
{
	struct rig *r = told(ctx, "synced");

	r->syncs++;
	told_done(r);
}

static void on_started(void *ctx, uint64_t id, int pid)
{
	struct rig *r = told(ctx, "started");
	struct rig_job *job = job_locked(r, id);

	job->starts++;
	job->pid = pid;
	told_done(r);
}

static void on_output(void *ctx, uint64_t id, uint64_t total, uint64_t err_total)
{
	struct rig *r = told(ctx, "output");
	struct rig_job *job = job_locked(r, id);

	assert_true(total >= job->total && err_total >= job->err_total && err_total <= total);
	job->outputs++;
	job->total = total;
	job->err_total = err_total;
	told_done(r);
}

static void on_input(void *ctx, uint64_t id, uint64_t got)
{
	struct rig *r = told(ctx, "input");
	struct rig_job *job = job_locked(r, id);

	assert_true(got >= job->input);
	job->input = got;
	job->inputs++;
	told_done(r);
}

static void on_session(void *ctx, const struct cube_link_session *s)
{
	struct rig *r = told(ctx, "session");
	struct rig_session *seen = session_locked(r, s->session);

	seen->reports++;
	(void)snprintf(seen->cwd, sizeof(seen->cwd), "%s", s->cwd);
	seen->fresh = s->fresh;
	if (s->exports != NULL) {
		assert_int_equal(strlen(s->exports), s->exports_len);
		free(seen->exports);
		seen->exports = strdup(s->exports);
	}
	told_done(r);
}

static void on_ended(void *ctx, uint64_t id, const struct cube_end_record *end, const struct cube_err *err)
{
	struct rig *r = told(ctx, "ended");
	struct rig_job *job = job_locked(r, id);

	job->ends++;
	job->ended = true;
	job->end = *end;
	if (err != NULL)
		job->err = *err;
	told_done(r);
}

static void on_left(void *ctx, uint64_t n, bool still)
{
	struct rig *r = told(ctx, "left");

	r->lefts++;
	r->left = n;
	r->still = still;
	told_done(r);
}

static void on_down(void *ctx, const struct cube_err *err)
{
	struct rig *r = told(ctx, "down");

	r->downs++;
	r->down = *err;
	told_done(r);
}

static const struct cube_link_handler handler = {
	.up = on_up,
	.synced = on_synced,
	.started = on_started,
	.output = on_output,
	.input = on_input,
	.session = on_session,
	.ended = on_ended,
	.left = on_left,
	.down = on_down,
};

void rig_wait(struct rig *r, bool (*what)(struct rig *r, void *ctx), void *ctx)
{
	struct timespec until;
	int e = 0;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	pthread_mutex_lock(&r->lock);
	while (e == 0 && !what(r, ctx))
		e = pthread_cond_timedwait(&r->changed, &r->lock, &until);
	pthread_mutex_unlock(&r->lock);
	if (e != 0)
		fail_msg("what was waited for did not come; shell %s, last job %llu, last call %s",
			 r->shell != NULL ? r->shell : "-", (unsigned long long)r->next_job - 1, r->order);
}

static bool is_synced(struct rig *r, void *ctx)
{
	return r->syncs > *(unsigned *)ctx;
}

/* ---- the agent ---- */

/* Beside the test program's folders: BUILD/cube-init-host. */
static void agent_path(char *out, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *given = getenv("CUBE_INIT_HOST"); /* NOLINT(concurrency-mt-unsafe): before any thread */

	assert_true(n > 0);
	self[n] = '\0';
	for (int up = 0; up < 5; up++) {
		char *slash = strrchr(self, '/');

		assert_non_null(slash);
		*slash = '\0';
		(void)snprintf(out, size, "%s/cube-init-host", self);
		if (given != NULL)
			(void)snprintf(out, size, "%s", given);
		if (access(out, X_OK) == 0)
			return;
	}
	/* In the child, where a failure of cmocka's would go on with the other tests. */
	(void)fprintf(stderr, "cube-init-host is not built\n");
	_exit(127);
}

static void agent_exec(struct rig *r, int fd, int cgroup)
{
	char path[PATH_MAX], number[16], group[16], run[96];
	const char *argv[12];
	unsigned n = 0;

	agent_path(path, sizeof(path));
	(void)snprintf(number, sizeof(number), "%d", fd);
	(void)snprintf(group, sizeof(group), "%d", cgroup);
	(void)snprintf(run, sizeof(run), "%s/run", r->dir);
	argv[n++] = path;
	argv[n++] = r->stream ? "--stream-fd" : "--listen-fd";
	argv[n++] = number;
	argv[n++] = "--run-dir";
	argv[n++] = run;
	if (cgroup >= 0) {
		argv[n++] = "--cgroup-fd";
		argv[n++] = group;
	}
	if (r->shell != NULL) {
		argv[n++] = "--shell";
		argv[n++] = r->shell;
	}
	argv[n] = NULL;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)execv(path, (char **)(uintptr_t)argv);
	_exit(127);
}

static int listener_new(struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", r->dir);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static int cgroup_new(struct rig *r)
{
	static const char *const places[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	char leaf[160];

	if (!r->groups)
		return -1;
	for (unsigned i = 0; i < CUBE_COUNT(places); i++) {
		(void)snprintf(leaf, sizeof(leaf), "%s/cgroup.procs", places[i]);
		if (access(leaf, W_OK) < 0)
			continue;
		(void)snprintf(r->cgroup, sizeof(r->cgroup), "%s/cubefs-test-%d", places[i], (int)getpid());
		if (mkdir(r->cgroup, 0755) < 0 && errno != EEXIST)
			return -1;
		return open(r->cgroup, O_RDONLY | O_DIRECTORY);
	}
	return -1;
}

/* What a serial line of a machine looks like: it has no end while anybody holds it. */
static void raw_terminal(int pair[2])
{
	struct termios t;

	assert_int_equal(openpty(&pair[0], &pair[1], NULL, NULL, NULL), 0);
	assert_int_equal(tcgetattr(pair[1], &t), 0);
	cfmakeraw(&t);
	assert_int_equal(tcsetattr(pair[1], TCSANOW, &t), 0);
}

/* fork(2) into namespaces of its own. */
static pid_t fork_first(void)
{
	struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNS, .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid != 0)
		return pid;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(126);
	return 0;
}

static void agent_start(struct rig *r)
{
	int cgroup = cgroup_new(r);
	int pair[2] = {-1, -1};
	int fd;

	if (r->stream) {
		if (r->terminal)
			raw_terminal(pair);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		r->pair = pair[0];
		(void)fcntl(r->pair, F_SETFD, FD_CLOEXEC);
		fd = pair[1];
	} else {
		fd = listener_new(r);
	}
	r->agent = r->first ? fork_first() : fork();
	assert_true(r->agent >= 0);
	if (r->agent == 0)
		agent_exec(r, fd, cgroup);
	(void)close(fd);
	if (cgroup >= 0)
		(void)close(cgroup);
}

static void *loop_thread(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

void rig_connect(struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct cube_err err;
	unsigned before = r->syncs;
	int fd = r->stream ? dup(r->pair) : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/sock", r->dir);
	assert_true(fd >= 0);
	if (!r->stream)
		assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(cube_agent_link_new(r->loop, fd, !r->stream, &handler, r, &r->link, &err), 0);
	rig_wait(r, is_synced, &before);
}

void rig_disconnect(struct rig *r)
{
	cube_link_close(r->link);
	r->link = NULL;
}

static struct rig *rig_make(struct rig how)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	(void)signal(SIGPIPE, SIG_IGN);
	*r = how;
	r->pair = -1;
	r->next_job = 1;
	(void)snprintf(r->dir, sizeof(r->dir), "/tmp/cube-agent-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_int_equal(chmod(r->dir, 0755), 0);
	assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
	assert_int_equal(pthread_cond_init(&r->changed, NULL), 0);
	r->loop = cube_loop_new();
	assert_non_null(r->loop);
	agent_start(r);
	assert_int_equal(pthread_create(&r->thread, NULL, loop_thread, r->loop), 0);
	rig_connect(r);
	return r;
}

struct rig *rig_new(const char *shell, bool stream, bool groups)
{
	return rig_make((struct rig){.shell = shell, .stream = stream, .groups = groups});
}

struct rig *rig_new_terminal(void)
{
	return rig_make((struct rig){.stream = true, .terminal = true});
}

struct rig *rig_new_first(const char *shell, bool groups)
{
	return rig_make((struct rig){.shell = shell, .groups = groups, .first = true});
}

/* The groups of what has just been killed may be there for a moment. Their names are the agent's: a letter, a
 * number, and .left for what was set aside. */
static void cgroup_remove(const char *path)
{
	char name[160];

	for (int i = 0; i < 200 && rmdir(path) < 0; i++) {
		for (int n = 0; n < 300; n++) {
			for (unsigned k = 0; k < 3; k++) {
				(void)snprintf(name, sizeof(name), "%s/%s%d%s", path, k == 0 ? "j" : "s", n,
					       k == 2 ? ".left" : "");
				(void)rmdir(name);
			}
		}
		(void)usleep(10000);
	}
}

static void agent_stop(struct rig *r)
{
	int status = -1;

	if (r->agent == 0)
		return; /* the test has ended it */
	(void)kill(r->agent, SIGTERM);
	for (int i = 0; i < 1000 && waitpid(r->agent, &status, WNOHANG) == 0; i++) {
		if (i == 100) /* what a test left may not listen to the first */
			(void)kill(r->agent, SIGTERM);
		(void)usleep(10000);
	}
	if (status == -1) {
		(void)kill(r->agent, SIGKILL);
		(void)waitpid(r->agent, &status, 0);
		fail_msg("the agent did not end");
	}
	assert_true(WIFEXITED(status) &&
		    WEXITSTATUS(status) == 0); /* else a sanitizer had something to say */
	if (r->cgroup[0] != '\0')
		cgroup_remove(r->cgroup);
}

void rig_free(struct rig *r)
{
	cube_link_close(r->link);
	agent_stop(r);
	cube_loop_stop(r->loop);
	(void)pthread_join(r->thread, NULL);
	cube_loop_free(r->loop);
	for (unsigned i = 0; i < r->n_jobs; i++) {
		if (r->jobs[i].out_fd >= 0)
			(void)close(r->jobs[i].out_fd);
		if (r->jobs[i].order_fd >= 0)
			(void)close(r->jobs[i].order_fd);
	}
	for (unsigned i = 0; i < r->n_sessions; i++)
		free(r->sessions[i].exports);
	if (r->pair >= 0)
		(void)close(r->pair);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, r->dir), 0);
	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_cond_destroy(&r->changed);
	free(r);
}

static const char *const shells[] = {"/bin/bash", "/bin/dash", "/bin/busybox"};

void rig_each_shell(void (*fn)(struct rig *r))
{
	for (unsigned i = 0; i < CUBE_COUNT(shells); i++) {
		struct rig *r;

		if (access(shells[i], X_OK) < 0)
			continue;
		r = rig_new(shells[i], false, false);
		fn(r);
		rig_free(r);
	}
}

void rig_each(void (*fn)(struct rig *r))
{
	struct rig *r = rig_new(NULL, false, true);

	fn(r);
	rig_free(r);
	rig_each_shell(fn);
}

/* ---- jobs ---- */

static int spool_new(const struct rig *r, uint64_t id, const char *what)
{
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%llu.%s", r->dir, (unsigned long long)id, what);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	return fd;
}

static struct cube_link_start run_message(struct rig *r, const struct rig_run *run, struct rig_job *job)
{
	static const char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	bool live = run->session != 0 && rig_session(r, run->session) != NULL;
	struct cube_link_start s = {
		.job = job->id,
		.session = run->session,
		.argv = run->argv,
		.text = run->text,
		.text_len = run->text_len > 0 ? run->text_len : strlen(run->text),
		.env = run->env != NULL ? run->env : path,
		.env_len = run->env != NULL ? run->env_len
			   : live           ? 0
					    : sizeof(path),
		.cwd = run->cwd != NULL ? run->cwd
		       : live           ? NULL
					: r->dir,
		.user = run->user,
		.in = run->input ? CUBE_STDIN_PIPE : CUBE_STDIN_EMPTY,
		.tty = run->tty,
		.rows = run->rows,
		.cols = run->cols,
		.merge = !run->separate,
		.timeout_s = run->timeout_s,
		.out_fd = job->out_fd,
		.order_fd = job->order_fd,
		.limit = run->limit > 0 ? run->limit : RIG_LIMIT,
	};

	return s;
}

static int start_with(struct rig *r, const struct rig_run *run, uint64_t *ret_id)
{
	struct cube_link_start s;
	struct cube_err err = {0};
	struct rig_job *job;
	int result;

	pthread_mutex_lock(&r->lock);
	job = job_locked(r, r->next_job++);
	pthread_mutex_unlock(&r->lock);
	job->out_fd = run->out_fd > 0 ? dup(run->out_fd) : spool_new(r, job->id, "out");
	job->order_fd = run->separate ? spool_new(r, job->id, "order") : -1;
	s = run_message(r, run, job);
	result = cube_link_start(r->link, &s, &err);
	if (result < 0)
		assert_true(err.code == result && err.text[0] != '\0');
	*ret_id = job->id;
	return result;
}

uint64_t rig_start(struct rig *r, const struct rig_run *run)
{
	uint64_t id;

	assert_int_equal(start_with(r, run, &id), 0);
	return id;
}

int rig_refused(struct rig *r, const struct rig_run *run)
{
	uint64_t id;
	int result = start_with(r, run, &id);

	assert_true(result < 0);
	return result;
}

uint64_t rig_do(struct rig *r, const struct rig_run *run)
{
	uint64_t id = rig_start(r, run);

	rig_wait_end(r, id);
	return id;
}

uint64_t rig_say(struct rig *r, const char *text)
{
	return rig_do(r, &(struct rig_run){.text = text, .session = 1});
}

struct rig_job *rig_job(struct rig *r, uint64_t id)
{
	struct rig_job *job;

	pthread_mutex_lock(&r->lock);
	job = job_locked(r, id);
	pthread_mutex_unlock(&r->lock);
	return job;
}

struct rig_session *rig_session(struct rig *r, uint64_t id)
{
	struct rig_session *found = NULL;

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < r->n_sessions; i++) {
		if (r->sessions[i].id == id)
			found = &r->sessions[i];
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

struct want {
	uint64_t id, total;
};

static bool has_started(struct rig *r, void *ctx)
{
	const struct rig_job *job = job_locked(r, ((struct want *)ctx)->id);

	return job->pid != 0 || job->ended;
}

static bool has_ended(struct rig *r, void *ctx)
{
	return job_locked(r, ((struct want *)ctx)->id)->ended;
}

static bool has_total(struct rig *r, void *ctx)
{
	const struct want *w = ctx;

	return job_locked(r, w->id)->total >= w->total;
}

void rig_wait_started(struct rig *r, uint64_t id)
{
	rig_wait(r, has_started, &(struct want){.id = id});
}

void rig_wait_end(struct rig *r, uint64_t id)
{
	rig_wait(r, has_ended, &(struct want){.id = id});
}

void rig_wait_total(struct rig *r, uint64_t id, uint64_t total)
{
	rig_wait(r, has_total, &(struct want){.id = id, .total = total});
}

char *rig_output(struct rig *r, uint64_t id, size_t *ret_len)
{
	const struct rig_job *job = rig_job(r, id);
	size_t len = (size_t)job->total;
	char *text = malloc(len + 1);

	assert_non_null(text);
	assert_int_equal(pread(job->out_fd, text, len, 0), (ssize_t)len);
	text[len] = '\0';
	if (ret_len != NULL)
		*ret_len = len;
	return text;
}

void rig_expect(struct rig *r, uint64_t id, const char *output, enum cube_end how, int code)
{
	const struct rig_job *job = rig_job(r, id);
	char *text;

	rig_wait_end(r, id);
	text = rig_output(r, id, NULL);
	if (job->end.how != how || job->end.code != code || (output != NULL && strcmp(text, output) != 0))
		fail_msg("%s: job %llu ended %s %d, not %s %d; it printed \"%s\", not \"%s\"; %s",
			 r->shell != NULL ? r->shell : "-", (unsigned long long)id,
			 cube_end_name(job->end.how), job->end.code, cube_end_name(how), code, text,
			 output != NULL ? output : "(anything)", job->err.text);
	assert_int_equal(job->end.total, job->total);
	assert_int_equal(job->ends, 1);
	free(text);
}

bool rig_has(struct rig *r, uint64_t id, const char *part)
{
	char *text = rig_output(r, id, NULL);
	bool has = strstr(text, part) != NULL;

	free(text);
	return has;
}

void rig_wait_dead(int pid)
{
	for (int i = 0; i < DEADLINE_S * 100; i++) {
		char path[64], text[512] = "";
		const char *state;
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		(void)!read(fd, text, sizeof(text) - 1);
		(void)close(fd);
		state = strrchr(text, ')');
		if (state == NULL || state[2] == 'Z' || state[2] == 'X')
			return;
		(void)usleep(10000);
	}
	fail_msg("process %d is still there", pid);
}

int rig_wait_number(struct rig *r, const char *name)
{
	char path[160], text[32];

	(void)snprintf(path, sizeof(path), "%s/%s", r->dir, name);
	for (int i = 0; i < DEADLINE_S * 100; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

		if (fd >= 0)
			(void)close(fd);
		if (n > 0 && text[n - 1] == '\n')
			return (int)strtol(text, NULL, 10);
		(void)usleep(10000);
	}
	fail_msg("%s was not written", path);
	return -1;
}
