/* SPDX-License-Identifier: Apache-2.0 */
/* STATE/cubes/UID/jobs after a load: what belongs to nothing is removed. Names are KIND.NUMBER. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/num.h"
#include "ctl/ctl_priv.h"

static bool slot_used(struct cube_cube *c, uint64_t slot)
{
	cube_list_each (i, &c->jobs)
		if (cube_job_own(cube_list_entry(i, struct cube_job, link))->slot == slot)
			return true;
	return false;
}

static bool text_used(struct cube_cube *c, uint64_t number)
{
	struct cube_job *j = cube_job_by_number(c, number);

	return j != NULL && cube_job_own(j)->text_on_disk;
}

static bool input_used(struct cube_cube *c, uint64_t number)
{
	struct cube_job *j = cube_job_by_number(c, number);

	return j != NULL && j->state != CUBE_JOB_ENDED;
}

static bool session_used(struct cube_cube *c, uint64_t number)
{
	return cube_session_by_number(c, number) != NULL;
}

static const struct {
	const char *kind;
	bool (*used)(struct cube_cube *c, uint64_t number);
} dir_kinds[] = {
	{"out", slot_used}, {"order", slot_used},      {"cmd", text_used},
	{"in", input_used}, {"session", session_used},
};

static bool dir_used(struct cube_cube *c, const char *name)
{
	const char *dot = strchr(name, '.');
	uint64_t number;

	if (dot == NULL || cube_num_u64(dot + 1, UINT64_MAX, &number) < 0)
		return false; /* half written: *.new */
	for (size_t i = 0; i < CUBE_COUNT(dir_kinds); i++)
		if (strncmp(name, dir_kinds[i].kind, (size_t)(dot - name)) == 0 &&
		    dir_kinds[i].kind[dot - name] == '\0')
			return dir_kinds[i].used(c, number);
	return false;
}

void cube_jobs_dir_clean(struct cube_cube *c)
{
	int fd = openat(c->dir_fd, "jobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (dir == NULL) {
		cube_close_auto(&fd);
		return;
	}
	while ((e = readdir(dir)) != NULL) /* NOLINT(concurrency-mt-unsafe): a stream of our own */
		if (e->d_name[0] != '.' && !dir_used(c, e->d_name))
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	(void)closedir(dir);
}
