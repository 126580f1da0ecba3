/* SPDX-License-Identifier: Apache-2.0 */
/* The agent as process 1 of a virtual machine (--machine): its power button, and its power. */
#ifndef CUBEFS_BACKENDS_AGENT_INIT_MACHINE_H
#define CUBEFS_BACKENDS_AGENT_INIT_MACHINE_H

/* Every power button that there is now calls @pressed, from the loop, once for each time that it is pressed. No button is
 * no failure: then the machine can only be cut off from outside. */
void init_machine_setup(void (*pressed)(void));
/* What was written is on the disks, and the power is off: does not return where the kernel allows it. */
void init_machine_off(void);

#endif
