/* SPDX-License-Identifier: Apache-2.0 */
/* The FUSE front end as the kernel sees it: messages over a socket in place of /dev/fuse. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/base/file.h"
#include "backends/base/log.h"
#include "backends/base/macros.h"
#include "fs/fuse/fuse.h"
#include "fs/fuse/newer.h"
#include "fs/fuse/raw.h"

#define KERNEL_STREAM  16u /* FOPEN_STREAM */
#define KERNEL_NOFLUSH 32u

static struct {
	char dir[64];
	struct cube_loop *loop;
	struct cube_conf *conf;
	struct cube_domain *domain;
	struct cube_files_space *files;
	struct cube_fuse *fuse;
	struct cube_tree *tree;
	pthread_t loop_thread, fuse_thread;
	int kernel; /* our end */
	uint64_t unique;
	int ready;
} t;

struct message {
	struct fuse_out_header h;
	char body[16384];
};

static struct message in; /* the last reply */

static void *run_loop(void *arg)
{
	cube_loop_run(arg);
	return NULL;
}

static void *run_fuse(void *arg)
{
	(void)cube_fuse_run(arg, t.tree);
	return NULL;
}

static void on_ready(void *ctx)
{
	(void)ctx;
	t.ready++;
}

/* ---- the kernel's side ---- */

static uint64_t ask_as(uint32_t pid, uint32_t opcode, uint64_t node, const void *body, size_t len)
{
	char out[4096];
	struct fuse_in_header h = {.len = (uint32_t)(sizeof(h) + len),
				   .opcode = opcode,
				   .unique = t.unique += 2,
				   .nodeid = node,
				   .uid = getuid(),
				   .gid = getgid(),
				   .pid = pid};

	memcpy(out, &h, sizeof(h));
	if (len > 0)
		memcpy(out + sizeof(h), body, len);
	assert_int_equal(send(t.kernel, out, h.len, 0), h.len);
	return h.unique;
}

static void hear(void)
{
	ssize_t n = recv(t.kernel, &in, sizeof(in), 0);

	assert_true(n >= (ssize_t)sizeof(in.h));
	assert_int_equal(n, in.h.len);
}

/* A request and its answer: 0 or a negative errno. */
static int call(uint32_t opcode, uint64_t node, const void *body, size_t len)
{
	uint64_t unique = ask_as((uint32_t)getpid(), opcode, node, body, len);

	do
		hear();
	while (in.h.unique == 0); /* news */
	assert_int_equal(in.h.unique, unique);
	return in.h.error;
}

static int lookup(uint64_t parent, const char *name, struct fuse_entry_out *ret)
{
	int code = call(FUSE_LOOKUP, parent, name, strlen(name) + 1);

	if (code == 0)
		memcpy(ret, in.body, sizeof(*ret));
	return code;
}

static uint64_t node_of(uint64_t parent, const char *name)
{
	struct fuse_entry_out e = {0};

	assert_int_equal(lookup(parent, name, &e), 0);
	return e.nodeid;
}

static int open_node(uint64_t node, uint32_t flags, struct fuse_open_out *ret)
{
	struct fuse_open_in o = {.flags = flags};
	int code = call(FUSE_OPEN, node, &o, sizeof(o));

	if (code == 0)
		memcpy(ret, in.body, sizeof(*ret));
	return code;
}

static void close_node(uint64_t node, uint64_t fh)
{
	struct fuse_release_in r = {.fh = fh};

	assert_int_equal(call(FUSE_RELEASE, node, &r, sizeof(r)), 0);
}

static uint64_t ask_write(uint64_t node, uint64_t fh, const char *text)
{
	char body[512];
	struct fuse_write_in w = {.fh = fh, .size = (uint32_t)strlen(text)};

	memcpy(body, &w, sizeof(w));
	memcpy(body + sizeof(w), text, w.size);
	return ask_as((uint32_t)getpid(), FUSE_WRITE, node, body, sizeof(w) + w.size);
}

static int verb(const char *line)
{
	struct fuse_open_out o;
	uint64_t node = node_of(FUSE_ROOT_ID, "ctl");
	int code = open_node(node, O_WRONLY, &o);

	assert_int_equal(code, 0);
	(void)ask_write(node, o.fh, line);
	do
		hear();
	while (in.h.unique == 0);
	code = in.h.error;
	close_node(node, o.fh);
	return code;
}

/* ---- from beginning to end ---- */

static void open_all(int fd)
{
	struct cube_files_options fo = {.uid = getuid(), .gid = getgid()};
	struct cube_domain_options o = {
		.state_dir = t.dir, .conf = t.conf, .loop = t.loop, .uid = getuid(), .gid = getgid()};
	struct cube_fuse_options fuse = {.loop = t.loop, .fd = fd, .uid = getuid(), .ready = on_ready};
	struct cube_tree_options to = {0};
	struct cube_err err = {0};

	if (cube_domain_open(&o, &t.domain, &err) < 0)
		fail_msg("%s", err.text);
	fuse.files = to.files = t.files = cube_files_space_new(&fo);
	if (cube_fuse_new(&fuse, &t.fuse, &err) < 0)
		fail_msg("%s", err.text);
	to.domain = t.domain;
	to.watcher = cube_fuse_watcher(t.fuse);
	t.tree = cube_tree_new(&to);
	assert_non_null(t.tree);
	assert_int_equal(cube_domain_start(t.domain, &err), 0);
}

static int up(void **state)
{
	static const char conf[] = "[backend mem]\nkind = mem\n";
	struct timeval patience = {.tv_sec = 10};
	struct fuse_init_in init = {.major = FUSE_KERNEL_VERSION,
				    .minor = 31,
				    .max_readahead = 65536,
				    .flags = UINT32_MAX & ~(1u << 30)};
	struct cube_err err = {0};
	int pair[2];

	(void)state;
	cube_log_setup(STDERR_FILENO, CUBE_LOG_ERROR);
	(void)snprintf(t.dir, sizeof(t.dir), "/tmp/cubefs-fuse-XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	assert_int_equal(cube_conf_parse(conf, strlen(conf), "test", &t.conf, &err), 0);
	t.loop = cube_loop_new();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	t.kernel = pair[0];
	(void)setsockopt(t.kernel, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	open_all(pair[1]);
	(void)close(pair[1]);
	assert_int_equal(pthread_create(&t.loop_thread, NULL, run_loop, t.loop), 0);
	assert_int_equal(pthread_create(&t.fuse_thread, NULL, run_fuse, t.fuse), 0);
	assert_int_equal(call(FUSE_INIT, 0, &init, sizeof(init)), 0);
	assert_int_equal(t.ready, 1);
	assert_int_equal(verb("create dev\n"), 0);
	return 0;
}

static int down(void **state)
{
	(void)state;
	cube_tree_shutdown(t.tree);
	cube_domain_shutdown(t.domain, 5000);
	(void)shutdown(t.kernel, SHUT_RDWR);
	(void)pthread_join(t.fuse_thread, NULL);
	cube_loop_stop(t.loop);
	(void)pthread_join(t.loop_thread, NULL);
	cube_tree_free(t.tree);
	cube_domain_close(t.domain);
	cube_fuse_free(t.fuse);
	cube_files_space_free(t.files);
	cube_loop_free(t.loop);
	cube_conf_free(t.conf);
	(void)close(t.kernel);
	assert_int_equal(cube_file_remove_tree(AT_FDCWD, t.dir), 0);
	return 0;
}

/* ---- what the kernel is told to believe ---- */

static void check_timeouts(void **state)
{
	struct fuse_entry_out e, again;
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev");

	(void)state;
	assert_int_equal(lookup(dev, "status", &e), 0);
	assert_true(e.entry_valid > 1);
	assert_int_equal(e.attr_valid, 0);
	assert_int_equal(e.attr_valid_nsec, 0);
	assert_true(e.attr.size > 0);
	assert_int_equal(lookup(dev, "ctl", &e), 0);
	assert_int_equal(e.entry_valid, 0);
	assert_int_equal(lookup(dev, "ctl", &again), 0);
	assert_int_equal(e.attr.ino, again.attr.ino);
	assert_int_equal(lookup(dev, ".git", &e), -ENOENT);
}

static uint64_t lookup_as(uint32_t pid, uint64_t parent, const char *name)
{
	struct fuse_entry_out e;
	uint64_t unique = ask_as(pid, FUSE_LOOKUP, parent, name, strlen(name) + 1);

	do
		hear();
	while (in.h.unique == 0);
	assert_int_equal(in.h.unique, unique);
	assert_int_equal(in.h.error, 0);
	memcpy(&e, in.body, sizeof(e));
	return e.nodeid;
}

/* Of a file that acts nobody shares an inode with another, or with his own earlier open; whoever has none open is
 * given the same again. */
static void check_fresh(void **state)
{
	uint32_t self = (uint32_t)getpid();
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev"), first = lookup_as(self, dev, "ctl"), other;
	struct fuse_open_out o, p;

	(void)state;
	assert_int_equal(lookup_as(self, dev, "ctl"), first);
	assert_int_equal(open_node(first, O_WRONLY, &o), 0);
	other = lookup_as(self, dev, "ctl");
	assert_int_not_equal(other, first);
	assert_int_equal(open_node(other, O_WRONLY, &p), 0);
	close_node(first, o.fh);
	close_node(other, p.fh);
	assert_int_equal(lookup_as(self, dev, "ctl"), other);
	assert_int_not_equal(lookup_as(1, dev, "ctl"), other);
	assert_int_not_equal(lookup_as(self, dev, "ctl"), other); /* another one was given meanwhile */
	first = lookup_as(0, dev, "ctl"); /* of another pid namespace: it may be anybody */
	assert_int_not_equal(lookup_as(0, dev, "ctl"), first);
}

static void check_open_flags(void **state)
{
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev"), node;
	struct fuse_open_out o;

	(void)state;
	node = node_of(dev, "exec");
	assert_int_equal(open_node(node, O_RDWR, &o), 0);
	assert_int_equal(o.open_flags, FOPEN_DIRECT_IO | KERNEL_STREAM);
	close_node(node, o.fh);
	node = node_of(dev, "logs");
	assert_int_equal(open_node(node, O_RDONLY, &o), 0);
	assert_int_equal(o.open_flags, FOPEN_DIRECT_IO | KERNEL_NOFLUSH);
	close_node(node, o.fh);
	node = node_of(dev, "env");
	assert_int_equal(open_node(node, O_WRONLY, &o), 0);
	assert_int_equal(o.open_flags, FOPEN_DIRECT_IO);
	close_node(node, o.fh);
	node = node_of(FUSE_ROOT_ID, "README");
	assert_int_equal(open_node(node, O_RDONLY, &o), 0);
	assert_int_equal(o.open_flags, FOPEN_KEEP_CACHE | KERNEL_NOFLUSH);
	close_node(node, o.fh);
	assert_int_equal(open_node(node, O_WRONLY, &o), -EACCES);
}

/* ---- never ENOSYS: the kernel would remember it ---- */

struct refused {
	uint32_t opcode;
	int code;
	size_t len; /* of zeros as arguments, names apart */
	const char *name;
};

static void check_never_enosys(void **state)
{
	static const struct refused table[] = {
		{FUSE_GETXATTR, -EOPNOTSUPP, sizeof(struct fuse_getxattr_in), "user.x"},
		{FUSE_SETXATTR, -EOPNOTSUPP, FUSE_COMPAT_SETXATTR_IN_SIZE, "user.x"},
		{FUSE_REMOVEXATTR, -EOPNOTSUPP, 0, "user.x"},
		{FUSE_LISTXATTR, 0, sizeof(struct fuse_getxattr_in), NULL},
		{FUSE_ACCESS, 0, sizeof(struct fuse_access_in), NULL},
		{FUSE_STATFS, 0, 0, NULL},
		{FUSE_OPENDIR, 0, sizeof(struct fuse_open_in), NULL},
		{FUSE_MKNOD, -ENOENT, sizeof(struct fuse_mknod_in), "x"},
		{FUSE_CREATE, -ENOENT, sizeof(struct fuse_create_in), "x"},
		{CUBE_FUSE_TMPFILE, -EOPNOTSUPP, sizeof(struct fuse_create_in), "/"},
		{FUSE_MKDIR, -ENOENT, sizeof(struct fuse_mkdir_in), "x"},
		{FUSE_SYMLINK, -EPERM, 0, "x"},
		{FUSE_LINK, -EPERM, sizeof(struct fuse_link_in), "x"},
		{FUSE_UNLINK, -ENOENT, 0, "x"},
		{FUSE_RMDIR, -ENOENT, 0, "x"},
	};
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev");

	(void)state;
	for (size_t i = 0; i < CUBE_COUNT(table); i++) {
		char body[256] = {0};
		size_t len = table[i].len;
		int code;

		if (table[i].name != NULL) {
			memcpy(body + len, table[i].name, strlen(table[i].name));
			len += strlen(table[i].name) + 1;
		}
		if (table[i].opcode == FUSE_SYMLINK)
			len += 2; /* and an empty target */
		code = call(table[i].opcode, dev, body, len);
		if (code != table[i].code)
			fail_msg("operation %u gave %d, not %d", table[i].opcode, code, table[i].code);
		if (table[i].opcode == FUSE_OPENDIR) {
			struct fuse_release_in r = {0};

			memcpy(&r.fh, in.body, sizeof(r.fh));
			assert_int_equal(call(FUSE_RELEASEDIR, dev, &r, sizeof(r)), 0);
		}
	}
}

/* A list that is empty is nothing, where its size is a number. */
static void check_no_xattrs(void **state)
{
	struct fuse_getxattr_in ask = {.size = 0};
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev");

	(void)state;
	assert_int_equal(call(FUSE_LISTXATTR, dev, &ask, sizeof(ask)), 0);
	assert_int_equal(in.h.len, sizeof(in.h) + sizeof(struct fuse_getxattr_out));
	ask.size = 4096;
	assert_int_equal(call(FUSE_LISTXATTR, dev, &ask, sizeof(ask)), 0);
	assert_int_equal(in.h.len, sizeof(in.h));
}

static void check_never_enosys_open(void **state)
{
	static const struct refused table[] = {
		{FUSE_FSYNC, 0, sizeof(struct fuse_fsync_in), NULL},
		{FUSE_FLUSH, 0, sizeof(struct fuse_flush_in), NULL},
		{FUSE_FALLOCATE, -EOPNOTSUPP, sizeof(struct fuse_fallocate_in), NULL},
		{FUSE_IOCTL, -ENOTTY, sizeof(struct fuse_ioctl_in), NULL},
		{FUSE_POLL, 0, sizeof(struct fuse_poll_in), NULL},
		{FUSE_GETLK, -EOPNOTSUPP, sizeof(struct fuse_lk_in), NULL},
		{FUSE_SETLK, -EOPNOTSUPP, sizeof(struct fuse_lk_in), NULL},
		{FUSE_LSEEK, -EINVAL, sizeof(struct fuse_lseek_in), NULL},
	};
	uint64_t node = node_of(node_of(FUSE_ROOT_ID, "dev"), "status");
	struct fuse_open_out o;

	(void)state;
	assert_int_equal(open_node(node, O_RDONLY, &o), 0);
	for (size_t i = 0; i < CUBE_COUNT(table); i++) {
		char body[256] = {0};
		int code;

		memcpy(body, &o.fh, sizeof(o.fh)); /* the first field of all of them */
		code = call(table[i].opcode, node, body, table[i].len);
		if (code != table[i].code)
			fail_msg("operation %u gave %d, not %d", table[i].opcode, code, table[i].code);
	}
	close_node(node, o.fh);
}

/* ---- interrupts ---- */

/* A line for `logs`; the read that waits for it is answered, as is the write. */
static void log_something(uint64_t reader)
{
	uint64_t ctl = node_of(node_of(FUSE_ROOT_ID, "dev"), "ctl"), writer;
	bool read_done = false, write_done = false;
	struct fuse_open_out c;

	assert_int_equal(open_node(ctl, O_WRONLY, &c), 0);
	writer = ask_write(ctl, c.fh, "pause\n");
	while (!read_done || !write_done) {
		hear();
		assert_int_not_equal(in.h.error, -EINTR);
		read_done |= in.h.unique == reader;
		write_done |= in.h.unique == writer;
	}
	close_node(ctl, c.fh);
}

static void check_interrupt(void **state)
{
	uint64_t node = node_of(node_of(FUSE_ROOT_ID, "dev"), "logs"), unique, harmless;
	struct fuse_interrupt_in i;
	struct fuse_open_out o;
	struct fuse_read_in r = {.size = 100};
	struct timeval soon = {.tv_usec = 300000}, patience = {.tv_sec = 10};

	(void)state;
	assert_int_equal(open_node(node, O_RDWR, &o), 0);
	r.fh = o.fh;
	r.flags = O_RDWR;
	/* We have no signal: it waits on. Who cannot be seen is believed. */
	harmless = ask_as((uint32_t)getpid(), FUSE_READ, node, &r, sizeof(r));
	unique = ask_as(0, FUSE_READ, node, &r, sizeof(r));
	i.unique = harmless;
	(void)ask_as(0, FUSE_INTERRUPT, 0, &i, sizeof(i));
	i.unique = unique;
	(void)ask_as(0, FUSE_INTERRUPT, 0, &i, sizeof(i));
	hear();
	assert_int_equal(in.h.unique, unique);
	assert_int_equal(in.h.error, -EINTR);
	(void)setsockopt(t.kernel, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	assert_true(recv(t.kernel, &in, sizeof(in), 0) < 0);
	(void)setsockopt(t.kernel, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	log_something(harmless);
	close_node(node, o.fh);
}

/* ---- news ---- */

/* The kernel hears that a name went before the writer of the verb hears that it is done. */
static void check_news_first(void **state)
{
	struct fuse_notify_inval_entry_out *news = (void *)in.body;
	uint64_t node = node_of(FUSE_ROOT_ID, "ctl"), unique;
	struct fuse_open_out o;

	(void)state;
	assert_int_equal(open_node(node, O_WRONLY, &o), 0);
	unique = ask_write(node, o.fh, "rename dev new\n");
	hear();
	assert_int_equal(in.h.unique, 0);
	assert_int_equal(in.h.error, FUSE_NOTIFY_INVAL_ENTRY);
	assert_int_equal(news->parent, FUSE_ROOT_ID);
	assert_string_equal(in.body + sizeof(*news), "dev");
	hear();
	assert_int_equal(in.h.unique, unique);
	assert_int_equal(in.h.error, 0);
	close_node(node, o.fh);
	assert_int_equal(verb("rename new dev\n"), 0);
}

/* A rmdir by the kernel needs no telling: only its answer comes. */
static void check_no_news_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(verb("create short\n"), 0);
	(void)ask_as((uint32_t)getpid(), FUSE_RMDIR, FUSE_ROOT_ID, "short", 6);
	hear();
	assert_int_equal(in.h.unique, t.unique);
	assert_int_equal(in.h.error, 0);
}

/* Of what is made up too, and at the place where each field is asked for by one who does not know ours. */
static void check_statx(void **state)
{
	struct {
		uint32_t getattr_flags, reserved;
		uint64_t fh;
		uint32_t sx_flags, sx_mask;
	} ask = {.sx_mask = 0xfff};
	uint64_t dev = node_of(FUSE_ROOT_ID, "dev");
	struct fuse_attr_out attr;
	uint32_t words[72];
	uint16_t mode;
	uint64_t ino;

	(void)state;
	assert_int_equal(call(FUSE_GETATTR, dev, &ask, sizeof(struct fuse_getattr_in)), 0);
	memcpy(&attr, in.body, sizeof(attr));
	assert_int_equal(call(CUBE_FUSE_STATX, dev, &ask, sizeof(ask)), 0);
	assert_int_equal(in.h.len, sizeof(in.h) + sizeof(words));
	memcpy(words, in.body, sizeof(words));
	assert_int_equal(words[8], 0x7ff); /* all but the time it was made */
	memcpy(&mode, &words[15], sizeof(mode));
	assert_int_equal(mode, attr.attr.mode);
	memcpy(&ino, &words[16], sizeof(ino));
	assert_true(ino == attr.attr.ino);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_fresh),      cmocka_unit_test(check_timeouts),
		cmocka_unit_test(check_open_flags), cmocka_unit_test(check_never_enosys),
		cmocka_unit_test(check_no_xattrs),  cmocka_unit_test(check_never_enosys_open),
		cmocka_unit_test(check_statx),      cmocka_unit_test(check_interrupt),
		cmocka_unit_test(check_news_first), cmocka_unit_test(check_no_news_of_its_own),
	};

	return cmocka_run_group_tests(tests, up, down);
}
