/* SPDX-License-Identifier: Apache-2.0 */
/* What says a sandbox's name inside: the kernel, and files. All return 0 or -errno; any thread. */
#ifndef CUBEFS_BACKENDS_NS_HOSTNAME_H
#define CUBEFS_BACKENDS_NS_HOSTNAME_H

#define CUBE_NS_FILE_MAX   (256u << 10) /* bytes of a file that is still taken for ours */
#define CUBE_NS_MACHINE_ID "%.16s%.16s" /* of a sandbox's id, twice: what /etc/machine-id says */

/* The host name of the process whose directory in /proc is @proc (ns.h) becomes @name. */
int cube_ns_hostname(int proc, const char *name);
/* The file has this line and no more. */
int cube_ns_line(int fd, const char *line);
/* In a file like /etc/hosts each line that has the word @old for its second has @name there. */
int cube_ns_hosts_rename(int fd, const char *old, const char *name);

#endif
