/* SPDX-License-Identifier: Apache-2.0 */
/* Is the mount served? */
#include "fs/canary.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/base/clock.h"

#define CANARY_SECOND  UINT64_C(1000000000)
#define CANARY_EVERY   (3 * CANARY_SECOND)
#define CANARY_LATE    CANARY_SECOND /* a look that comes so late: we could not run */
#define CANARY_END_MS  1000
#define CANARY_STEP_MS 5

void cube_canary_init(struct cube_canary *c, const char *path)
{
	void *shared =
		mmap(NULL, sizeof(*c->asking), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*c = (struct cube_canary){.path = path, .looked = cube_clock_mono()};
	c->next = c->looked + CANARY_EVERY;
	if (shared == MAP_FAILED)
		c->path = NULL;
	else
		c->asking = shared;
}

/* The way to the mount point is not the mount: on it the question has not been put yet. */
static void canary_ask(const struct cube_canary *c, pid_t parent)
{
	struct statx stx;
	int fd;

	(void)prctl(PR_SET_NAME, "cubefs-canary");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	fd = open(c->path, O_PATH | O_CLOEXEC);
	atomic_store(c->asking, 1);
	if (fd >= 0)
		(void)statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MODE, &stx);
	_exit(0);
}

unsigned cube_canary_count(struct cube_canary *c, uint64_t now, bool waiting)
{
	uint64_t gap = now - c->looked;
	unsigned seconds;

	c->looked = now;
	if (!waiting || gap > CANARY_LATE) {
		c->waited = 0;
		c->told = 0;
		return 0;
	}
	c->waited += gap;
	seconds = (unsigned)(c->waited / CANARY_SECOND);
	if (seconds <= c->told)
		return 0;
	c->told = seconds;
	return seconds;
}

unsigned cube_canary_look(struct cube_canary *c)
{
	uint64_t now = cube_clock_mono();
	pid_t parent = getpid();

	if (c->path == NULL)
		return 0;
	if (c->pid == 0 && now >= c->next) {
		atomic_store(c->asking, 0);
		c->next = now + CANARY_EVERY;
		c->pid = fork();
		if (c->pid == 0)
			canary_ask(c, parent);
		if (c->pid < 0)
			c->pid = 0;
	}
	return cube_canary_count(c, now, c->pid > 0 && atomic_load(c->asking) != 0);
}

void cube_canary_ended(struct cube_canary *c, pid_t pid)
{
	if (pid == c->pid)
		c->pid = 0;
}

/* A question that was read by the worker cannot be called off; it has the mount in use until it is answered. */
void cube_canary_done(struct cube_canary *c)
{
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
	for (unsigned ms = 0; c->pid > 0 && ms < CANARY_END_MS; ms += CANARY_STEP_MS) {
		if (waitpid(c->pid, NULL, WNOHANG) != 0)
			break;
		(void)poll(NULL, 0, CANARY_STEP_MS);
	}
	if (c->asking != NULL)
		(void)munmap(c->asking, sizeof(*c->asking));
	c->path = NULL;
	c->asking = NULL;
	c->pid = 0;
}
