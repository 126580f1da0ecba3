/* SPDX-License-Identifier: Apache-2.0 */
/* Between fork and exec: the new process makes itself what the job asks for.
 *
 * It does all that could wait for something hostile (user files, directories, terminals), so that the agent
 * does not; whatever fails is written to a pipe as one record, and the process ends with that code. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_CHILD_H
#define CUBEFS_BACKENDS_AGENT_INIT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

struct init_child {
	int io[3];         /* become 0, 1, 2; -1: /dev/null */
	int tty;           /* a terminal's master: its other side becomes 0, 1, 2; -1: none */
	int text;          /* becomes 3 and stays: what the shell reads; -1: none */
	int err;           /* the pipe for a failure */
	int session;       /* the directory of a session, whose files it gives to the user; -1: none */
	const char *shell; /* run with @script as its argument; NULL: argv */
	const char *script;
	const char *argv; /* NUL-separated words */
	size_t argv_len;
	const char *env; /* NUL-separated */
	size_t env_len;
	bool pwd; /* add PWD when env has none */
	const char *cwd;
	bool cwd_must;    /* else / when it is not there */
	const char *user; /* "": as the agent */
};

struct init_child_failure {
	int32_t code; /* exit code: 126, 127 */
	int32_t err;  /* negative errno */
	char text[256];
};

/* What the agent changed for itself and a child gets back: its limit of descriptors, its protection from the
 * memory killer. Once, at start-up; raises the limit. */
void init_child_setup(void);

_Noreturn void init_child_run(const struct init_child *c);

/* Closes every descriptor but @keep (-1: none). */
void init_child_close_all_but(int keep);

/* Where programs are looked for when the environment has no PATH. */
#define INIT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#endif
