/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls of a sandbox.
 *
 * The list is that of container engines: what programs need, without what reaches kernel subsystems that
 * know no namespaces or have a long record of holes: keys, bpf, perf, io_uring, userfaultfd, mounts, modules,
 * clocks, reboot, handles of files, new user namespaces. clone3 is allowed although its flags cannot be
 * looked at: cube-init needs it to start a job inside the job's group. The number of user namespaces
 * inside is limited to none instead (launch.c). */
#include "backends/local/seccomp.h"

#include "backends/base/macros.h"

#include <sched.h>
#include <stdint.h>
#include <sys/socket.h>

/* All that create namespaces: what clone and unshare may not be asked for. */
#define SECCOMP_NEW_NAMESPACES                                                                               \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |        \
	 CLONE_NEWNET)

/* Names that an architecture does not have are passed over by crun. */
static const char *const seccomp_allowed[] = {
	/* clang-format off */
	/* files */
	"access", "cachestat", "chdir", "chmod", "chown", "chown32", "close", "close_range",
	"copy_file_range", "creat", "dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64",
	"fadvise64_64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32",
	"fchownat", "fcntl", "fcntl64", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr",
	"fsetxattr", "fstat", "fstat64", "fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate",
	"ftruncate64", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "getxattrat", "ioctl",
	"lchown", "lchown32", "lgetxattr", "link", "linkat", "listxattr", "listxattrat", "llistxattr",
	"lremovexattr", "lseek", "_llseek", "lsetxattr", "lstat", "lstat64", "mkdir", "mkdirat", "mknod",
	"mknodat", "name_to_handle_at", "newfstatat", "open", "openat", "openat2", "pread64", "preadv",
	"preadv2", "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
	"removexattr", "removexattrat", "rename", "renameat", "renameat2", "rmdir", "sendfile", "sendfile64",
	"setxattr", "setxattrat", "splice", "stat", "stat64", "statfs", "statfs64", "statx", "symlink",
	"symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate", "truncate64", "umask", "unlink",
	"unlinkat", "utime", "utimensat", "utimensat_time64", "utimes", "vmsplice", "write", "writev", "chroot",
	"inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "fanotify_mark",
	/* waiting */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2",
	"epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "io_cancel", "io_destroy", "io_getevents",
	"io_pgetevents", "io_pgetevents_time64", "io_setup", "io_submit", "poll", "ppoll", "ppoll_time64",
	"pselect6", "pselect6_time64", "select", "_newselect", "signalfd", "signalfd4", "timerfd_create",
	"timerfd_gettime", "timerfd_gettime64", "timerfd_settime", "timerfd_settime64",
	/* memory */
	"brk", "get_mempolicy", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
	"mincore", "mlock", "mlock2", "mlockall", "mmap", "mmap2", "mprotect", "mremap", "mseal", "msync",
	"munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect", "remap_file_pages",
	/* processes */
	"alarm", "arch_prctl", "capget", "capset", "clone3", "execve", "execveat", "exit", "exit_group",
	"fork", "futex", "futex_requeue", "futex_time64", "futex_wait", "futex_waitv", "futex_wake",
	"get_robust_list", "get_thread_area", "getcpu", "getegid", "getegid32", "geteuid", "geteuid32",
	"getgid", "getgid32", "getgroups", "getgroups32", "getitimer", "getpgid", "getpgrp", "getpid",
	"getppid", "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit",
	"getrusage", "getsid", "gettid", "getuid", "getuid32", "ioprio_get", "ioprio_set", "kill",
	"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "modify_ldt", "nanosleep",
	"pause", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "process_mrelease",
	"process_vm_readv", "process_vm_writev", "ptrace", "restart_syscall", "rseq", "rt_sigaction",
	"rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "sched_get_priority_max",
	"sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
	"sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64", "sched_setaffinity",
	"sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp", "set_robust_list",
	"set_thread_area", "set_tid_address", "setfsgid", "setfsgid32", "setfsuid", "setfsuid32", "setgid",
	"setgid32", "setgroups", "setgroups32", "setitimer", "setpgid", "setpriority", "setregid",
	"setregid32", "setresgid", "setresgid32", "setresuid", "setresuid32", "setreuid", "setreuid32",
	"setrlimit", "setsid", "setuid", "setuid32", "sigaltstack", "sigprocmask", "sigreturn", "tgkill",
	"tkill", "times", "ugetrlimit", "vfork", "wait4", "waitid", "waitpid",
	/* time, the machine */
	"adjtimex", "clock_adjtime", "clock_adjtime64", "clock_getres", "clock_getres_time64",
	"clock_gettime", "clock_gettime64", "clock_nanosleep", "clock_nanosleep_time64", "getrandom",
	"gettimeofday", "riscv_hwprobe", "sysinfo", "time", "timer_create", "timer_delete",
	"timer_getoverrun", "timer_gettime", "timer_gettime64", "timer_settime", "timer_settime64", "uname",
	/* talking */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "ipc", "listen",
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend",
	"mq_timedsend_time64", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "pipe", "pipe2", "recv",
	"recvfrom", "recvmmsg", "recvmmsg_time64", "recvmsg", "semctl", "semget", "semop", "semtimedop",
	"semtimedop_time64", "send", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shmat", "shmctl",
	"shmdt", "shmget", "shutdown", "socketcall", "socketpair",
	/* clang-format on */
};

/* Allowed where an argument fits: @op with @value, and with @with the masked comparison. */
static const struct {
	const char *name, *op;
	unsigned index;
	uint64_t value, with;
} seccomp_when[] = {
	{"clone", "SCMP_CMP_MASKED_EQ", 0, SECCOMP_NEW_NAMESPACES, 0},
	{"unshare", "SCMP_CMP_MASKED_EQ", 0, SECCOMP_NEW_NAMESPACES, 0},
	/* all families but AF_ALG (38) and AF_VSOCK (40), which reach the machine past its namespaces */
	{"socket", "SCMP_CMP_LT", 0, AF_ALG, 0},
	{"socket", "SCMP_CMP_EQ", 0, 39, 0},
	{"socket", "SCMP_CMP_GT", 0, AF_VSOCK, 0},
	/* Linux, no address randomisation, UNAME26, both, and "what is it?" */
	{"personality", "SCMP_CMP_EQ", 0, 0x0, 0},
	{"personality", "SCMP_CMP_EQ", 0, 0x8, 0},
	{"personality", "SCMP_CMP_EQ", 0, 0x20000, 0},
	{"personality", "SCMP_CMP_EQ", 0, 0x20008, 0},
	{"personality", "SCMP_CMP_EQ", 0, 0x40000, 0},
	{"personality", "SCMP_CMP_EQ", 0, 0xffffffff, 0},
};

static json_t *seccomp_always(void)
{
	json_t *names = json_array();

	for (size_t i = 0; i < CUBE_COUNT(seccomp_allowed); i++)
		if (json_array_append_new(names, json_string(seccomp_allowed[i])) < 0)
			break;
	return json_pack("{s:o,s:s}", "names", names, "action", "SCMP_ACT_ALLOW");
}

static json_t *seccomp_rule(size_t i)
{
	return json_pack("{s:[s],s:s,s:[{s:i,s:I,s:I,s:s}]}", "names", seccomp_when[i].name, "action",
			 "SCMP_ACT_ALLOW", "args", "index", (int)seccomp_when[i].index, "value",
			 (json_int_t)seccomp_when[i].value, "valueTwo", (json_int_t)seccomp_when[i].with,
			 "op", seccomp_when[i].op);
}

json_t *cube_local_seccomp(void)
{
	json_t *rules = json_array();

	if (json_array_append_new(rules, seccomp_always()) < 0) {
		json_decref(rules);
		return NULL;
	}
	for (size_t i = 0; i < CUBE_COUNT(seccomp_when); i++) {
		if (json_array_append_new(rules, seccomp_rule(i)) < 0) {
			json_decref(rules);
			return NULL;
		}
	}
	return json_pack("{s:s,s:i,s:o}", "defaultAction", "SCMP_ACT_ERRNO", "defaultErrnoRet", 1, "syscalls",
			 rules);
}
