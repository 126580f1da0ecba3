/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ctl/ share and nobody else sees: the private halves of domain, sandbox, session and job, and the
 * calls between them. Each object has a header of its own; this one is for those who deal with many. */
#ifndef CUBEFS_CTL_CTL_PRIV_H
#define CUBEFS_CTL_CTL_PRIV_H

#include "ctl/conn_priv.h"
#include "ctl/create_priv.h"
#include "ctl/cube_priv.h"
#include "ctl/domain_priv.h"
#include "ctl/job_priv.h"
#include "ctl/op_priv.h"
#include "ctl/session_priv.h"
#include "ctl/state_priv.h"
#include "ctl/template_priv.h"

#endif
