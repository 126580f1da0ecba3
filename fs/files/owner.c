/* SPDX-License-Identifier: Apache-2.0 */
/* Whose files: ids as shown and as the kernel has them, and the rights under which new files are made.
 *
 * What the kernel calls base + n is n inside, and in here; other ids are 65534. Where an ordinary user
 * mounted, that user's number and 0 stand for each other: an exchange, so that nothing is lost and both
 * directions are the same.
 *
 * A new file belongs to the sandbox's root (another user's, who was let in, to him) from the first instant: its file system ids are this thread's
 * while it is made, with those capabilities that setfsuid(2) takes away and that make files anywhere in the
 * tree possible. (To make it as host root and to chown it then would show it inside as nobody's for a moment,
 * and leave it so after a kill.) It is done round each call that makes something, not once a thread: the
 * threads also do other work, whose files are the daemon's own. It costs 10 to 15 us, beside the 100 us of a
 * creation on a disk.
 *
 * Side effect of setfsuid: the process is not dumpable any more (no core files, unless fs.suid_dumpable says
 * so), and a parent-death signal of this thread is forgotten. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/files/files_priv.h"

#define OWNER_NOBODY 65534u

static uint32_t owner_show(const struct cube_files *f, uint32_t base, uint32_t kernel, uint32_t mounter)
{
	uint32_t id = kernel;

	if (f->id_count > 0)
		id = kernel >= base && kernel - base < f->id_count ? kernel - base : OWNER_NOBODY;
	if (f->swap_owner && (id == 0 || id == mounter))
		id = id == 0 ? mounter : 0;
	return id;
}

static bool owner_kernel(const struct cube_files *f, uint32_t base, uint32_t shown, uint32_t mounter,
			 uint32_t *ret)
{
	uint32_t id = shown;

	if (f->swap_owner && (id == 0 || id == mounter))
		id = id == 0 ? mounter : 0;
	if (f->id_count > 0 && id >= f->id_count)
		return false;
	*ret = f->id_count > 0 ? base + id : id;
	return true;
}

uid_t cube_fowner_show_uid(const struct cube_files *f, uid_t kernel)
{
	return owner_show(f, f->uid_base, kernel, f->space->options.uid);
}

gid_t cube_fowner_show_gid(const struct cube_files *f, gid_t kernel)
{
	return owner_show(f, f->gid_base, kernel, f->space->options.gid);
}

bool cube_fowner_uid(const struct cube_files *f, uid_t shown, uid_t *ret)
{
	return owner_kernel(f, f->uid_base, shown, f->space->options.uid, ret);
}

bool cube_fowner_gid(const struct cube_files *f, gid_t shown, gid_t *ret)
{
	return owner_kernel(f, f->gid_base, shown, f->space->options.gid, ret);
}

/* The effective ones; what is permitted stays as it is, so that setfsuid(0) brings all of them back. */
static int owner_raise(void)
{
	static const unsigned keep =
		1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_FSETID;
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	data[0].effective |= keep & data[0].permitted;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static bool owner_can_be(const struct cube_files *f, const struct cube_files_cred *c, uid_t *ret_uid,
			 gid_t *ret_gid)
{
	if (!cube_fowner_uid(f, c->uid, ret_uid) && !cube_fowner_uid(f, OWNER_NOBODY, ret_uid))
		return false;
	return cube_fowner_gid(f, c->gid, ret_gid) || cube_fowner_gid(f, OWNER_NOBODY, ret_gid);
}

/* To whom it is to belong: what the mounting user makes to the sandbox's root, what others make (-o allow_other)
 * to them, where there is such an id inside. */
static void owner_of_new(const struct cube_files *f, const struct cube_files_cred *c, uid_t *ret_uid,
			 gid_t *ret_gid)
{
	if (c->uid != f->space->options.uid && owner_can_be(f, c, ret_uid, ret_gid))
		return;
	*ret_uid = f->id_count > 0 ? f->uid_base : geteuid();
	*ret_gid = f->id_count > 0 ? f->gid_base : getegid();
}

/* The system calls, since glibc's wrappers are deprecated for anything but this and say so to some compilers.
 */
int cube_fowner_enter(const struct cube_files *f, const struct cube_files_cred *c)
{
	uid_t uid;
	gid_t gid;
	int r;

	owner_of_new(f, c, &uid, &gid);
	if (uid == geteuid() && gid == getegid())
		return 0;
	(void)syscall(SYS_setfsgid, gid);
	(void)syscall(SYS_setfsuid, uid);
	/* setfsuid has no error; to ask for an impossible id gives the present one */
	r = (uid_t)syscall(SYS_setfsuid, -1) == uid && (gid_t)syscall(SYS_setfsgid, -1) == gid ? owner_raise()
											       : -EPERM;
	if (r < 0)
		cube_fowner_leave(1);
	return r < 0 ? r : 1;
}

void cube_fowner_leave(int entered)
{
	int saved = errno;

	if (entered > 0) {
		(void)syscall(SYS_setfsuid, geteuid());
		(void)syscall(SYS_setfsgid, getegid());
	}
	errno = saved;
}
