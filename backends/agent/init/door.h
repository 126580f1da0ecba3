/* SPDX-License-Identifier: Apache-2.0 */
/* The way to a listener where nothing can be inherited: in containers that an engine starts. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_DOOR_H
#define CUBEFS_BACKENDS_AGENT_INIT_DOOR_H

/* Knocks at the unix socket @path until somebody is there and hands over a listening socket: its descriptor. Blocks; a
 * TERM, INT or PWR meanwhile ends the process, since nothing runs yet. -ENAMETOOLONG, -EMFILE. */
int init_door_enter(const char *path);

#endif
