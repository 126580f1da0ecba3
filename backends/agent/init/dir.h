/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a directory. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_DIR_H
#define CUBEFS_BACKENDS_AGENT_INIT_DIR_H

#include <dirent.h>

/* @fd as a stream; taken over, closed where that fails (NULL, errno). */
DIR *init_dir_open(int fd);
/* The next name, valid until the next call; NULL at the end. */
const char *init_dir_next(DIR *dir);

#endif
