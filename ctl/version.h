/* SPDX-License-Identifier: Apache-2.0 */
/* The version, from CMake's project(). */
#ifndef CUBEFS_CTL_VERSION_H
#define CUBEFS_CTL_VERSION_H

#ifndef CUBEFS_VERSION
#define CUBEFS_VERSION "unknown"
#endif

#endif
