/* SPDX-License-Identifier: Apache-2.0 */
/* The words for capabilities. */
#include "backends/check.h"

#include <stddef.h>

/* Name in files and configuration, and the words that end "backend X cannot ...". */
static const struct {
	const char *name, *cannot;
} cap_texts[CUBE_CAP_COUNT] = {
	{"exec", "run commands"},
	{"files", "show the files of a sandbox on this machine"},
	{"pause", "pause a sandbox"},
	{"stop", "stop and start a sandbox"},
	{"tty", "give a job a terminal"},
	{"templates", "keep templates"},
	{"net_open", "open the network (net=open)"},
	{"cpus", "keep a limit on cpus"},
	{"memory", "keep a limit on memory"},
	{"pids", "keep a limit on pids"},
	{"disk", "keep a limit on disk"},
	{"usage", "measure what a sandbox uses"},
	{"persist", "keep sandboxes when the daemon ends"},
	{"users", "run a job as another user"},
	{"rename", "give a running sandbox another host name"},
	{"ports", "connect to what listens in a sandbox"},
	{"volumes", "keep volumes"},
	{"bind", "show a directory of this machine in a sandbox"},
	{"build", "build templates from steps"},
	{"adopt", "take over a sandbox that is there (adopt=)"},
	{"access", "say how other tools reach a sandbox"},
	{"accounts", "make a user (user=)"},
	{"hosts", "give names to addresses (host.NAME=)"},
	{"privileged", "make privileged sandboxes"},
	{"gpu", "give a sandbox a gpu"},
	{"kvm", "give a sandbox /dev/kvm"},
	{"checkpoints", "take checkpoints"},
	{"reset", "give a sandbox its template's files again"},
	{"changes", "tell what changed in a sandbox"},
	{"keep", "make a template of a checkpoint"},
	{"checkpoint_memory", "keep memory in checkpoints (memory=yes)"},
};

const char *cube_cap_name(unsigned n)
{
	return n < CUBE_CAP_COUNT ? cap_texts[n].name : NULL;
}

const char *cube_cap_cannot(unsigned n)
{
	return n < CUBE_CAP_COUNT ? cap_texts[n].cannot : "do that";
}
