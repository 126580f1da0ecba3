/* SPDX-License-Identifier: Apache-2.0 */
/* The text of synthetic files: pure functions of what is known, under the domain lock, no backend asked. Each adds
 * to @out and returns 0 or the buffer's error. */
#ifndef CUBEFS_CTL_SHOW_H
#define CUBEFS_CTL_SHOW_H

#include "backends/base/buf.h"
#include "ctl/session.h"
#include "ctl/template.h"
#include "ctl/volume.h"

struct cube_stock;

int cube_show_readme(struct cube_domain *d,
		     struct cube_buf *out); /* the manual in the mount, at most 80 lines */
int cube_show_root_ctl(struct cube_domain *d, struct cube_buf *out);
int cube_show_list(struct cube_domain *d, struct cube_buf *out);
int cube_show_clone(struct cube_domain *d, struct cube_buf *out);
int cube_show_ctl(struct cube_cube *c, struct cube_buf *out);
int cube_show_status(struct cube_cube *c, struct cube_buf *out);
int cube_show_info(struct cube_cube *c, struct cube_buf *out); /* info.json */
int cube_show_env(struct cube_cube *c, struct cube_buf *out);
int cube_show_session_ctl(struct cube_session *s, struct cube_buf *out);
int cube_show_session_status(struct cube_session *s, struct cube_buf *out);
int cube_show_job_ctl(struct cube_job *j, struct cube_buf *out);
int cube_show_job_status(struct cube_job *j, struct cube_buf *out);
int cube_show_checkpoint_info(struct cube_checkpoint_entry *e, struct cube_buf *out);
int cube_show_checkpoint_ctl(struct cube_checkpoint_entry *e, struct cube_buf *out);
int cube_show_ports_open(struct cube_cube *c, struct cube_buf *out);
int cube_show_port_url(struct cube_port *p, struct cube_buf *out);
int cube_show_port_status(struct cube_port *p, struct cube_buf *out);
int cube_show_port_ctl(struct cube_port *p, struct cube_buf *out);
int cube_show_job_exit(struct cube_job *j, struct cube_buf *out); /* NULL job: "-" */
int cube_show_backend_status(struct cube_service *s, struct cube_buf *out);
int cube_show_backend_sandboxes(struct cube_service *s, struct cube_buf *out);
int cube_show_backend_ctl(struct cube_service *s, struct cube_buf *out);
int cube_show_stock_template(struct cube_stock *p, struct cube_buf *out);
int cube_show_stock_size(struct cube_stock *p, struct cube_buf *out);
int cube_show_stock_ready(struct cube_stock *p, struct cube_buf *out);
int cube_show_stock_status(struct cube_stock *p, struct cube_buf *out);
int cube_show_stock_ctl(struct cube_stock *p, struct cube_buf *out);
int cube_show_volume_info(struct cube_volume_entry *v, struct cube_buf *out);
int cube_show_template_info(struct cube_template_entry *t, struct cube_buf *out);
int cube_show_template_status(struct cube_template_entry *t, struct cube_buf *out);
int cube_show_template_ctl(struct cube_template_entry *t, struct cube_buf *out);

#endif
