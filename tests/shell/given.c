/* SPDX-License-Identifier: Apache-2.0 */
/* cubefs whose workers die as they begin once there is a file `give-up` in its state. The first of them leaves a process
 * that has the kernel's end of the mount, with its number in that file: as a thread does that is killed while it waits for
 * a lock in the kernel. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define cube_daemon_run given_serve
#include "fs/daemon.c" /* NOLINT(bugprone-suspicious-include): all of it, and what is below */
#undef cube_daemon_run

int cube_daemon_run(const struct cube_daemon_options *o, struct cube_err *err);

static void given_hold(int file)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (write(file, text, strlen(text)) < 0)
		_exit(1);
	for (;;)
		(void)pause();
}

int cube_daemon_run(const struct cube_daemon_options *o, struct cube_err *err)
{
	char path[4096];
	struct stat st;
	int file;

	(void)snprintf(path, sizeof(path), "%s/give-up", o->state_dir);
	file = open(path, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return given_serve(o, err);
	if (fstat(file, &st) == 0 && st.st_size == 0 && fork() == 0)
		given_hold(file);
	for (unsigned i = 0; i < 1000 && fstat(file, &st) == 0 && st.st_size == 0; i++)
		(void)usleep(1000);
	abort();
}
