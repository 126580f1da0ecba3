/* SPDX-License-Identifier: Apache-2.0 */
/* A scratch directory for a test. */
#include "tests/unit/base/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/base/file.h"

int place_setup(void **state)
{
	static struct place p;
	int fd;

	(void)snprintf(p.path, sizeof(p.path), "/tmp/cubefs-base-XXXXXX");
	if (mkdtemp(p.path) == NULL)
		return -1;
	fd = open(p.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	p.fd = fcntl(fd, F_DUPFD_CLOEXEC, 100); /* low numbers are for the tests to play with */
	(void)close(fd);
	*state = &p;
	return p.fd < 0 ? -1 : 0;
}

int place_teardown(void **state)
{
	struct place *p = *state;

	(void)close(p->fd);
	return cube_file_remove_tree(AT_FDCWD, p->path);
}
