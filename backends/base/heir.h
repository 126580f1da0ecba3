/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets that the worker before this one had. Who is about to listen at an address takes the one that listens
 * there already: nobody who connects meanwhile is refused, and it does not matter how long that worker takes to end. Any
 * thread. */
#ifndef CUBEFS_BACKENDS_BASE_HEIR_H
#define CUBEFS_BACKENDS_BASE_HEIR_H

#include <sys/socket.h>

void cube_heir_add(int fd); /* takes it over; what does not listen is closed */
/* The one at @a, the caller's from now on; -1: none. */
int cube_heir_take(const struct sockaddr *a);
void cube_heir_drop(void); /* nobody will ask for the others */

#endif
