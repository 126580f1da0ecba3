/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of processes is kept by CRIU, through crun. That neither is there is what one finds; where both are, process 1
 * of a sandbox holds what CRIU takes no copy of: the spool files and the link of a daemon outside. */
#include "backends/local/criu.h"

#include "backends/base/buf.h"
#include "backends/base/spawn.h"
#include "backends/local/find.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CRIU_TEXT 4096
#define CRIU_MS   10000

/* 0 and what it printed; else @why says how it ended. */
static int criu_run(const char *const *argv, struct cube_buf *text, char *why, size_t size)
{
	const struct cube_spawn s = {
		.argv = argv, .cwd = -1, .in = -1, .out = -1, .text = text, .timeout_ms = CRIU_MS};
	struct cube_err err = {0};
	int status = 0, rc = cube_spawn_run(&s, NULL, &status, &err);

	if (rc < 0)
		(void)snprintf(why, size, "%.*s", (int)size - 1, err.text);
	else if (status != 0)
		cube_spawn_describe(status, text, why, size);
	return rc < 0 || status != 0 ? -1 : 0;
}

void cube_local_criu_why(const char *crun, char *out, size_t size)
{
	char criu[PATH_MAX], why[120];
	const char *const check[] = {criu, "check", NULL}, *const version[] = {crun, "--version", NULL};
	struct cube_buf said = CUBE_BUF(CRIU_TEXT), features = CUBE_BUF(CRIU_TEXT);

	if (!cube_local_find_program("criu", criu, sizeof(criu)))
		(void)snprintf(out, size, "criu is not installed");
	else if (criu_run(check, &said, why, sizeof(why)) < 0)
		(void)snprintf(out, size, "criu check fails: %s", why);
	else if (criu_run(version, &features, why, sizeof(why)) < 0)
		(void)snprintf(out, size, "crun --version fails: %s", why);
	else if (strstr(cube_buf_str(&features), "+CRIU") == NULL)
		(void)snprintf(out, size, "this crun was built without CRIU (no +CRIU in crun --version)");
	else
		(void)snprintf(out, size,
			       "what runs inside has its output in files of the daemon, which CRIU does not "
			       "carry over");
	cube_buf_done(&said);
	cube_buf_done(&features);
}
