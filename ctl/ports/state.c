/* SPDX-License-Identifier: Apache-2.0 */
/* Exposed ports in cube.json, which only the user who mounted can read. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/priv.h"

static json_t *state_key(const struct cube_port *p)
{
	char text[2 * CUBE_TOKEN_KEY + 1];

	for (size_t i = 0; i < CUBE_TOKEN_KEY; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", p->key[i]);
	return json_string(text);
}

static json_t *state_port(const struct cube_port *p)
{
	return json_pack("{s:o,s:o,s:o,s:b,s:s,s:i,s:b,s:b,s:I,s:I,s:I}", "name",
			 cube_bytes_json(p->name, strlen(p->name)), "key", state_key(p), "word",
			 cube_bytes_json(p->word, strlen(p->word)), "public", (int)p->open, "host", p->host,
			 "at", (int)p->at, "fixed", (int)p->fixed, "signed", (int)p->has_token, "serial",
			 (json_int_t)p->serial, "expires", (json_int_t)p->expires, "created",
			 (json_int_t)p->created_wall);
}

json_t *cube_ports_state(const struct cube_cube *c)
{
	json_t *list = json_array();

	cube_list_each (i, &c->ports.list)
		if (list != NULL)
			(void)json_array_append_new(list,
						    state_port(cube_list_entry(i, struct cube_port, link)));
	return list;
}

static int load_key(struct cube_port *p, const json_t *o)
{
	const char *text = cube_json_str(o, "key", "");

	if (strlen(text) != sizeof(p->key) * 2 || strspn(text, "0123456789abcdef") != sizeof(p->key) * 2)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(p->key); i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return -EINVAL;
		p->key[i] = (unsigned char)byte;
	}
	return 0;
}

static int load_port(struct cube_cube *c, const json_t *o)
{
	cube_auto_str name = cube_bytes_dup(o, "name");
	cube_auto_str word = cube_bytes_dup(o, "word");
	struct cube_err err = {0};
	struct cube_port *p = name != NULL && word != NULL ? cube_port_new(c, name, &err) : NULL;

	if (p == NULL)
		return -EINVAL;
	(void)snprintf(p->word, sizeof(p->word), "%s", word);
	(void)snprintf(p->host, sizeof(p->host), "%s", cube_json_str(o, "host", "127.0.0.1"));
	p->at = (uint16_t)cube_json_int(o, "at", 0);
	p->open = cube_json_bool(o, "public", false);
	p->fixed = cube_json_bool(o, "fixed", false);
	p->has_token = cube_json_bool(o, "signed", false);
	p->serial = (uint64_t)cube_json_int(o, "serial", 1);
	p->expires = (uint64_t)cube_json_int(o, "expires", 0);
	p->created_wall = (uint64_t)cube_json_int(o, "created", 0);
	return load_key(p, o);
}

int cube_ports_load(struct cube_cube *c, const json_t *list)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = load_port(c, json_array_get(list, i));
	return r;
}
