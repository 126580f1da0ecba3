/* SPDX-License-Identifier: Apache-2.0 */
/* What the ctl of an exposed port changes: its word, its name, who may come in. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/num.h"
#include "ctl/ctl_priv.h"
#include "ctl/ports/door.h"
#include "ctl/ports/head.h"
#include "ctl/ports/priv.h"

static uint64_t access_now(void)
{
	return cube_clock_wall() / UINT64_C(1000000000);
}

/* On disk as it is now, or as it was before. */
static int access_keep(struct cube_port *p, const struct cube_port *before, struct cube_err *err)
{
	int r = cube_state_save(p->cube, err);

	if (r < 0) {
		memcpy(p->word, before->word, sizeof(p->word));
		p->open = before->open;
		p->has_token = before->has_token;
		p->serial = before->serial;
		p->expires = before->expires;
	}
	return r;
}

int cube_port_sign(struct cube_port *p, uint32_t seconds, struct cube_err *err)
{
	const struct cube_port before = *p;

	if (seconds == 0)
		return cube_fail(err, -EINVAL, "sign: 0 seconds are none; `revoke` ends what was signed");
	p->has_token = true;
	p->serial++;
	p->expires = access_now() + seconds;
	return access_keep(p, &before, err);
}

int cube_port_revoke(struct cube_port *p, struct cube_err *err)
{
	const struct cube_port before = *p;

	p->has_token = false;
	p->serial++;
	p->expires = 0;
	int r = access_keep(p, &before, err);
	if (r == 0 && !p->open)
		cube_conns_cut(p);
	return r;
}

int cube_port_set_word(struct cube_port *p, const char *word, struct cube_err *err)
{
	const struct cube_port before = *p;

	if (!cube_name_ok(word))
		return cube_fail(err, -EINVAL, "name: '%s' is no word: 1 to %d of A-Z a-z 0-9 . _ -", word,
				 CUBE_NAME_MAX);
	(void)snprintf(p->word, sizeof(p->word), "%s", word);
	return access_keep(p, &before, err);
}

/* Who came in while it was public has shown no word. */
int cube_port_set_open(struct cube_port *p, bool open, struct cube_err *err)
{
	const struct cube_port before = *p;

	p->open = open;
	int r = access_keep(p, &before, err);
	if (r == 0 && before.open && !open)
		cube_conns_cut(p);
	return r;
}

int cube_port_where(const char *where, char host[CUBE_PORT_HOST], uint16_t *ret_at, struct cube_err *err)
{
	const char *colon = strrchr(where, ':');
	size_t len = colon != NULL ? (size_t)(colon - where) : 0;
	unsigned char raw[16];
	bool six = len > 2 && where[0] == '[' && where[len - 1] == ']';
	uint64_t at;

	if (len == 0 || len >= CUBE_PORT_HOST || cube_num_u64(colon + 1, UINT16_MAX, &at) < 0)
		return cube_fail(err, -EINVAL,
				 "listen: '%s' is no ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:0", where);
	(void)snprintf(host, CUBE_PORT_HOST, "%.*s", (int)(six ? len - 2 : len), where + six);
	if (inet_pton(six ? AF_INET6 : AF_INET, host, raw) != 1)
		return cube_fail(err, -EINVAL,
				 "listen: '%s' is no address; a name is none, and one of IPv6 is in brackets",
				 where);
	*ret_at = (uint16_t)at;
	return 0;
}

/* ---- the word ---- */

static struct cube_token access_token(const struct cube_port *p)
{
	return (struct cube_token){.key = p->key,
				   .cube = p->cube->uid,
				   .port = p->name,
				   .expires = p->expires,
				   .serial = p->serial};
}

bool cube_port_opens(const struct cube_port *p, const char *word)
{
	const struct cube_token t = access_token(p);

	return p->has_token && !p->removed && cube_token_is(&t, word, access_now());
}

const char *cube_port_word(const struct cube_port *p, char out[CUBE_TOKEN_TEXT])
{
	const struct cube_token t = access_token(p);

	out[0] = '\0';
	if (p->has_token && (p->expires == 0 || access_now() < p->expires) && cube_token_write(&t, out) < 0)
		out[0] = '\0';
	return out;
}

/* Where nobody can connect to, one can from here. */
static const char *access_host(const struct cube_port *p)
{
	if (strcmp(p->host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(p->host, "::") == 0 ? "::1" : p->host;
}

int cube_port_url(const struct cube_port *p, struct cube_buf *out)
{
	const char *host = access_host(p);
	bool six = strchr(host, ':') != NULL;
	char word[CUBE_TOKEN_TEXT];

	cube_buf_printf(out, "http://%s%s%s:%u/", six ? "[" : "", host, six ? "]" : "", p->at);
	if (!p->open && cube_port_word(p, word)[0] != '\0')
		cube_buf_printf(out, "?" CUBE_HEAD_QUERY "=%s", word);
	return out->error;
}
