/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled filter of system calls (seccomp.h), so that it is compiled once and not for each sandbox: a fifth
 * of the time that crun needs. The first launch leaves it behind; the later ones hand it to crun, which takes it in
 * place of the list. A crun that is too old for that goes on compiling the list. */
#ifndef CUBEFS_BACKENDS_LOCAL_FILTER_H
#define CUBEFS_BACKENDS_LOCAL_FILTER_H

#include <stdatomic.h>

#define CUBE_FILTER_ANNOTATION "run.oci.seccomp_bpf_data"
#define CUBE_FILTER_CRUN_STATE "crun" /* crun's state directory on the stage of a launch */

/* All zero: not known yet. Any thread. */
struct cube_local_filter {
	_Atomic(char *) text; /* base64; once it is set it stays */
};

const char *cube_local_filter_text(struct cube_local_filter *f); /* NULL: not known */
/* Takes what crun compiled for the sandbox @id from its state in @stage, if it is not known yet. */
void cube_local_filter_keep(struct cube_local_filter *f, int stage, const char *id);
void cube_local_filter_done(struct cube_local_filter *f);

#endif
