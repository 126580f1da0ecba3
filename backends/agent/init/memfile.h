/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory that nothing can execute. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_MEMFILE_H
#define CUBEFS_BACKENDS_AGENT_INIT_MEMFILE_H

/* Close-on-exec; -1 with errno. */
int init_memfile(const char *name);

#endif
