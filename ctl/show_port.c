/* SPDX-License-Identifier: Apache-2.0 */
/* The files of exposed ports, and what listens inside. */
#include <string.h>

#include "ctl/cube.h"
#include "ctl/ports/port.h"
#include "ctl/show_priv.h"

/* Port, address, program; what is not known is -. */
int cube_show_ports_open(struct cube_cube *c, struct cube_buf *out)
{
	for (size_t i = 0; i < c->ports.n_open; i++) {
		const struct cube_listener *l = &c->ports.open[i];
		const char *words[] = {l->address, l->program};

		(void)cube_port_spell(&l->target, out);
		for (size_t k = 0; k < CUBE_COUNT(words); k++) {
			cube_buf_addc(out, ' ');
			cube_buf_add_escaped(out, words[k][0] != '\0' ? words[k] : "-",
					     words[k][0] != '\0' ? strlen(words[k]) : 1, true);
		}
		cube_buf_addc(out, '\n');
	}
	return out->error;
}

int cube_show_port_url(struct cube_port *p, struct cube_buf *out)
{
	(void)cube_port_url(p, out);
	return cube_buf_addc(out, '\n');
}

int cube_show_port_status(struct cube_port *p, struct cube_buf *out)
{
	char word[CUBE_TOKEN_TEXT];

	cube_show_str(out, "host", p->host);
	cube_show_num(out, "port", p->door != NULL ? p->at : UINT64_MAX);
	cube_show_str(out, "scheme", "http");
	cube_show_str(out, "name", p->word);
	cube_show_str(out, "listening", cube_port_listening(p) ? "yes" : "no");
	cube_show_str(out, "public", p->open ? "yes" : "no");
	cube_show_str(out, "token", cube_port_word(p, word));
	cube_show_time(out, "expires", p->has_token ? p->expires * UINT64_C(1000000000) : 0);
	cube_show_num(out, "connections", p->n_conns);
	cube_show_time(out, "created", p->created_wall);
	return out->error;
}

int cube_show_port_ctl(struct cube_port *p, struct cube_buf *out)
{
	cube_show_str(out, "host", p->host);
	cube_show_num(out, "port", p->door != NULL ? p->at : UINT64_MAX);
	cube_show_str(out, "public", p->open ? "yes" : "no");
	return cube_show_usage(CUBE_SCOPE_PORT, p, out);
}
