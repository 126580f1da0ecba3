/* SPDX-License-Identifier: Apache-2.0 */
/* What a create line wants to find inside: a user, names of hosts, devices; and `require`, which only asks. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "backends/base/alloc.h"
#include "backends/base/num.h"
#include "ctl/bytes.h"
#include "ctl/ctl_priv.h"

#define USER_MAX_UID      60000u /* above are ids that systems keep for themselves */
#define HOST_NAME_MAX_LEN 253

/* ---- user=NAME[:UID] ---- */

static bool user_name_ok(const char *name, size_t len)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz_", more[] = "0123456789-";

	if (len == 0 || len > 32 || memchr(first, name[0], sizeof(first) - 1) == NULL)
		return false;
	for (size_t i = 1; i < len; i++)
		if (memchr(first, name[i], sizeof(first) - 1) == NULL &&
		    memchr(more, name[i], sizeof(more) - 1) == NULL)
			return false;
	return true;
}

int cube_inside_user(struct cube_cube *c, const char *value, struct cube_err *err)
{
	struct cube_inside *in = &cube_own(c)->inside;
	size_t len = strcspn(value, ":");
	uint64_t uid = 0;

	if (!user_name_ok(value, len))
		return cube_fail(err, -EINVAL,
				 "user=%s: NAME or NAME:UID, a name being 1 to 32 of a-z 0-9 _ -, no digit "
				 "or - in front",
				 value);
	if (value[len] == ':' && (cube_num_u64(value + len + 1, USER_MAX_UID, &uid) < 0 || uid == 0))
		return cube_fail(err, -EINVAL, "user=%s: a UID is a number from 1 to %u", value,
				 USER_MAX_UID);
	if (strncmp(value, "root", len) == 0 && len == 4 && uid != 0)
		return cube_fail(err, -EINVAL, "user=%s: root has the number 0", value);
	in->user = cube_strndup(value, len);
	in->uid = (uint32_t)uid;
	return in->user != NULL ? 0 : cube_fail(err, -ENOMEM, "user: out of memory");
}

const char *cube_inside_default_user(const struct cube_cube *c)
{
	const struct cube_own *own = cube_own((struct cube_cube *)(uintptr_t)c);

	return own->inside.user != NULL ? own->inside.user : "";
}

/* Its home and name, in front of what the line says of the environment. */
int cube_inside_env(struct cube_cube *c)
{
	struct cube_own *own = cube_own(c);
	const char *user = own->inside.user;
	struct cube_buf env = CUBE_BUF(CUBE_ENV_MAX);

	if (user == NULL)
		return 0;
	(void)cube_buf_printf(&env, "HOME=%s%s", strcmp(user, "root") == 0 ? "/" : "/home/", user);
	(void)cube_buf_addc(&env, '\0');
	(void)cube_buf_printf(&env, "USER=%s", user);
	(void)cube_buf_addc(&env, '\0');
	(void)cube_buf_printf(&env, "LOGNAME=%s", user);
	(void)cube_buf_addc(&env, '\0');
	if (cube_buf_add(&env, own->env_keys.data, own->env_keys.len) < 0) {
		int r = env.error;

		cube_buf_done(&env);
		return r;
	}
	cube_buf_done(&own->env_keys);
	own->env_keys = env;
	return 0;
}

/* ---- host.NAME=ADDRESS ---- */

static bool host_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= HOST_NAME_MAX_LEN && name[0] != '-' && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == len;
}

static bool host_address_ok(const char *text)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

int cube_inside_host(struct cube_cube *c, const char *name, const char *value, struct cube_err *err)
{
	struct cube_buf *hosts = &cube_own(c)->inside.hosts;

	if (!host_name_ok(name))
		return cube_fail(err, -EINVAL, "host.%s: no name of a host", name);
	if (!host_address_ok(value))
		return cube_fail(err, -EINVAL, "host.%s=%s: an IPv4 or IPv6 address", name, value);
	(void)cube_buf_printf(hosts, "%s=%s", name, value);
	if (cube_buf_addc(hosts, '\0') < 0)
		return cube_fail(err, hosts->error, "host.%s: %s", name, cube_errno_text(hosts->error));
	return 0;
}

/* ---- gpu, require ---- */

int cube_inside_gpu(struct cube_cube *c, const char *value, struct cube_err *err)
{
	int on;

	if (cube_num_bool(value, &on) < 0)
		return cube_fail(err, -EINVAL, "gpu=%s: yes or no", value);
	cube_own(c)->inside.gpu = on != 0;
	return 0;
}

/* Words for what is no capability by that name. */
static const struct {
	const char *token;
	enum cube_cap cap;
} require_tokens[] = {
	{"root", CUBE_CAP_EXEC}, /* every backend's commands are root's unless a user is said */
	{"net", CUBE_CAP_NET_OPEN},
};

static int require_find(const char *token, size_t len, enum cube_cap *ret)
{
	for (size_t i = 0; i < CUBE_COUNT(require_tokens); i++) {
		if (strlen(require_tokens[i].token) == len &&
		    memcmp(require_tokens[i].token, token, len) == 0) {
			*ret = require_tokens[i].cap;
			return 0;
		}
	}
	for (unsigned n = 0; n < CUBE_CAP_COUNT; n++) {
		if (strlen(cube_cap_name(n)) == len && memcmp(cube_cap_name(n), token, len) == 0) {
			*ret = (enum cube_cap)(1u << n);
			return 0;
		}
	}
	return -EINVAL;
}

int cube_inside_require(struct cube_cube *c, const char *value, struct cube_err *err)
{
	for (const char *at = value;;) {
		size_t len = strcspn(at, ",");
		enum cube_cap cap;

		if (require_find(at, len, &cap) < 0)
			return cube_fail(
				err, -EINVAL,
				"require=%s: '%.*s' is nothing that can be required: kvm, gpu, root, "
				"privileged, net, or a capability as backends/NAME/status has it",
				value, (int)(len < 64 ? len : 64), at);
		int r = cube_backend_need(c->service->backend, cap, err);
		if (r < 0) {
			(void)cube_fail_in(err, "require=%.*s", (int)(len < 64 ? len : 64), at);
			return r;
		}
		if (at[len] == '\0')
			return 0;
		at += len + 1;
	}
}

/* ---- for the backend, on disk ---- */

static size_t inside_hosts(const struct cube_inside *in)
{
	size_t n = 0;

	for (size_t at = 0; at < in->hosts.len; at += strlen(in->hosts.data + at) + 1)
		n++;
	return n;
}

int cube_inside_spec(struct cube_cube *c, struct cube_spec_parts *p)
{
	const struct cube_inside *in = &cube_own(c)->inside;
	size_t n = inside_hosts(in);
	char *text = NULL;

	p->spec.user = in->user;
	p->spec.user_uid = in->uid;
	p->spec.gpu = in->gpu;
	if (n == 0)
		return 0;
	p->hosts = cube_calloc(n, sizeof(*p->hosts));
	text = p->hosts_text = cube_memdup(in->hosts.data, in->hosts.len);
	if (p->hosts == NULL || text == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		char *eq = strchr(text, '=');

		*eq = '\0';
		p->hosts[i] = (struct cube_pair){.key = text, .value = eq + 1};
		text = eq + 1 + strlen(eq + 1) + 1;
	}
	p->spec.hosts = p->hosts;
	p->spec.n_hosts = n;
	return 0;
}

json_t *cube_inside_save(const struct cube_own *own)
{
	const struct cube_inside *in = &own->inside;

	return json_pack("{s:o,s:i,s:b,s:o}", "user",
			 in->user != NULL ? cube_bytes_json(in->user, strlen(in->user)) : json_null(), "uid",
			 (int)in->uid, "gpu", (int)in->gpu, "hosts",
			 cube_bytes_list(cube_buf_str(&in->hosts), in->hosts.len));
}

int cube_inside_load(struct cube_own *own, const json_t *o)
{
	struct cube_inside *in = &own->inside;

	if (o == NULL)
		return 0;
	in->user = cube_bytes_dup(o, "user");
	in->uid = (uint32_t)cube_json_int(o, "uid", 0);
	in->gpu = cube_json_bool(o, "gpu", false);
	return cube_bytes_read_list(json_object_get(o, "hosts"), &in->hosts);
}

void cube_inside_init(struct cube_inside *in)
{
	cube_buf_init(&in->hosts, CUBE_ENV_MAX);
}

void cube_inside_done(struct cube_inside *in)
{
	cube_free(in->user);
	cube_buf_done(&in->hosts);
}
