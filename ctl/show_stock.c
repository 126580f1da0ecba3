/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a pool. */
#include "ctl/show_priv.h"

#include "ctl/stock.h"

int cube_show_stock_template(struct cube_stock *p, struct cube_buf *out)
{
	if (p->template[0] == '\0')
		return 0;
	cube_buf_adds(out, p->template);
	return cube_buf_addc(out, '\n');
}

int cube_show_stock_size(struct cube_stock *p, struct cube_buf *out)
{
	return p->min == p->max ? cube_buf_printf(out, "%u\n", p->min)
				: cube_buf_printf(out, "%u %u\n", p->min, p->max);
}

int cube_show_stock_ready(struct cube_stock *p, struct cube_buf *out)
{
	return cube_buf_printf(out, "%u\n", cube_stock_ready(p));
}

int cube_show_stock_status(struct cube_stock *p, struct cube_buf *out)
{
	cube_show_str(out, "state", cube_stock_state(p));
	cube_show_str(out, "reason", p->failure.text);
	cube_show_num(out, "failures", p->failures);
	cube_show_time(out, "retry", p->failures > 0 ? p->again_wall : 0);
	cube_show_num(out, "min", p->min);
	cube_show_num(out, "max", p->max);
	cube_show_num(out, "ready", cube_stock_ready(p));
	cube_show_num(out, "making", cube_stock_making(p));
	cube_show_num(out, "ending", cube_stock_ending(p));
	cube_show_num(out, "made", p->made);
	cube_show_num(out, "taken", p->taken);
	cube_show_num(out, "cold", p->cold);
	return out->error;
}

int cube_show_stock_ctl(struct cube_stock *p, struct cube_buf *out)
{
	cube_show_str(out, "state", cube_stock_state(p));
	return cube_show_usage(CUBE_SCOPE_POOL, p, out);
}
