/* SPDX-License-Identifier: Apache-2.0 */
/* Is KVM to be believed? There are machines on which /dev/kvm opens, makes machines and never runs them.
 *
 * So one is run: QEMU with a boot sector that ends it by a device for that, in less than a second where KVM works. It has a
 * few seconds. Only the host that this is can be tried; another one's word is taken. */
#include "backends/libvirt/libvirt_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/base/spawn.h"

#define KVM_MS     8000
#define KVM_SECTOR 512
#define KVM_ENDED  33 /* what the boot sector writes, twice, and one more */
#define KVM_FILE   "kvm-trial"
#define KVM_SAYS   ((size_t)2048)

/* mov dx, 0xf4; mov al, 0x10; out dx, al; hlt; jmp to hlt */
static const unsigned char kvm_code[] = {0xba, 0xf4, 0x00, 0xb0, 0x10, 0xee, 0xf4, 0xeb, 0xfd};

static int kvm_sector(const struct cube_libvirt *v, char path[PATH_MAX])
{
	unsigned char sector[KVM_SECTOR] = {0};
	cube_auto_fd dir = open(v->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	memcpy(sector, kvm_code, sizeof(kvm_code));
	sector[KVM_SECTOR - 2] = 0x55;
	sector[KVM_SECTOR - 1] = 0xaa;
	(void)snprintf(path, PATH_MAX, "%s/" KVM_FILE, v->state);
	return dir < 0 ? -errno : cube_file_replace(dir, KVM_FILE, sector, sizeof(sector), 0600);
}

/* 1 it works, -1 it does not: why; 0 cancelled. */
static int kvm_run(const char *sector, struct cube_cancel *cancel, char *why, size_t size)
{
	char drive[PATH_MAX + 64];
	struct utsname uts;
	char program[64];
	const char *argv[] = {program,
			      "-accel",
			      "kvm",
			      "-machine",
			      "pc",
			      "-m",
			      "16",
			      "-nodefaults",
			      "-no-user-config",
			      "-display",
			      "none",
			      "-device",
			      "isa-debug-exit,iobase=0xf4,iosize=4",
			      "-drive",
			      drive,
			      NULL};
	struct cube_buf text = CUBE_BUF(KVM_SAYS);
	int status = 0, rc;

	if (uname(&uts) < 0 || strcmp(uts.machine, "x86_64") != 0) {
		(void)snprintf(why, size, "it is tried on x86_64 alone (accel = kvm takes it)");
		return -1;
	}
	(void)snprintf(program, sizeof(program), "qemu-system-%.32s", uts.machine);
	(void)snprintf(drive, sizeof(drive), "file=%s,format=raw,if=floppy,readonly=on", sector);
	rc = cube_spawn_run(
		&(struct cube_spawn){
			.argv = argv, .cwd = -1, .in = -1, .out = -1, .text = &text, .timeout_ms = KVM_MS},
		cancel, &status, NULL);
	if (rc == -ETIMEDOUT)
		(void)snprintf(why, size, "/dev/kvm opens, but a trial machine did not run within %d s",
			       KVM_MS / 1000);
	else if (rc < 0)
		(void)snprintf(why, size, "%s: %s", program, cube_errno_text(rc));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != KVM_ENDED)
		cube_spawn_describe(status, &text, why, size);
	cube_buf_done(&text);
	if (rc == -EINTR)
		return 0;
	return rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == KVM_ENDED ? 1 : -1;
}

static int kvm_try(struct cube_libvirt *v, struct cube_cancel *cancel)
{
	char sector[PATH_MAX];

	if (access("/dev/kvm", R_OK | W_OK) < 0) {
		(void)snprintf(v->kvm_why, sizeof(v->kvm_why), "/dev/kvm: %s", cube_errno_text(errno));
		return -1;
	}
	if (kvm_sector(v, sector) < 0) {
		(void)snprintf(v->kvm_why, sizeof(v->kvm_why),
			       "no trial: the state directory cannot be written");
		return -1;
	}
	return kvm_run(sector, cancel, v->kvm_why, sizeof(v->kvm_why));
}

bool libvirt_kvm(struct cube_libvirt *v, struct cube_cancel *cancel)
{
	bool works;

	if (v->accel != LIBVIRT_ACCEL_AUTO)
		return v->accel == LIBVIRT_ACCEL_KVM;
	if (v->host.test)
		return false;
	pthread_mutex_lock(&v->kvm_lock);
	if (v->kvm == 0 && !v->host.local)
		v->kvm = v->host.kvm ? 1 : -1;
	if (v->kvm == 0)
		v->kvm = kvm_try(v, cancel);
	works = v->kvm > 0;
	pthread_mutex_unlock(&v->kvm_lock);
	return works;
}

void libvirt_kvm_say(struct cube_libvirt *v, char *out, size_t size)
{
	bool works = libvirt_kvm(v, NULL);

	if (works || v->accel == LIBVIRT_ACCEL_TCG)
		(void)snprintf(out, size, works ? "KVM" : "TCG, as the section says");
	else
		(void)snprintf(out, size, "TCG, since KVM does not work: %s",
			       v->kvm_why[0] != '\0' ? v->kvm_why : "its host does not offer it");
}
