/* SPDX-License-Identifier: Apache-2.0 */
/* What `cubefs doctor` says about 9P. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/alloc.h"
#include "backends/base/clock.h"
#include "backends/base/macros.h"
#include "fs/p9/listen.h"
#include "fs/p9/tls.h"

#define DOCTOR_SOON (14 * 24 * 3600) /* seconds: what ends by then is to be renewed */

struct doctor {
	void (*say)(void *ctx, bool ok, const char *what, const char *fix);
	void *ctx;
};

/* A file that whoever reads it may do with what it is for. */
static void doctor_secret(const struct doctor *d, const char *what, const char *file)
{
	cube_auto_str line = NULL;
	cube_auto_str fix = NULL;
	struct stat st;

	if (stat(file, &st) < 0 || (st.st_mode & 077) == 0)
		return;
	line = cube_asprintf("9P: %s %s: others of this machine may read it (mode %03o)", what, file,
			     (unsigned)st.st_mode & 0777);
	fix = cube_asprintf("chmod 600 %s, and make a new one: it may be known", file);
	d->say(d->ctx, false, line, fix);
}

static void doctor_token(const struct doctor *d, const char *file)
{
	struct cube_err err = {0};
	cube_auto_str line = NULL;

	if (file == NULL)
		return;
	if (cube_p9_token_check(file, &err) < 0) {
		d->say(d->ctx, false, err.text,
		       "openssl rand -hex 32 makes a word; the file is yours alone (mode 600)");
		return;
	}
	line = cube_asprintf("9P: the token in %s can be used", file);
	d->say(d->ctx, true, line, NULL);
	doctor_secret(d, "token", file);
}

static void doctor_dates(const struct doctor *d, const char *what, const char *file, time_t now)
{
	cube_auto_str line = NULL;
	struct cube_err err = {0};
	time_t from, until;
	struct tm tm;
	char day[32];

	if (cube_p9_tls_dates(what, file, &from, &until, &err) < 0) {
		d->say(d->ctx, false, err.text, "it has to be a file with certificates in PEM form");
		return;
	}
	(void)gmtime_r(from > now ? &from : &until, &tm);
	(void)strftime(day, sizeof(day), "%Y-%m-%d", &tm);
	if (from > now)
		line = cube_asprintf("9P: %s %s is not valid before %s", what, file, day);
	else
		line = cube_asprintf("9P: %s %s %s valid until %s", what, file, until > now ? "is" : "was",
				     day);
	d->say(d->ctx, from <= now && until > now + DOCTOR_SOON, line,
	       from > now ? "set this machine's clock, or take one that is valid"
			  : "renew it, and start the daemon anew: it is read then");
}

/* Whether the server could prove itself with what is given. */
static void doctor_tls(const struct doctor *d, const struct cube_p9_access *a)
{
	time_t now = (time_t)(cube_clock_wall() / 1000000000);
	struct p9_tls_server *s = NULL;
	struct cube_err err = {0};

	if (a->ca != NULL)
		doctor_dates(d, "ca", a->ca, now);
	if (a->certificate == NULL && a->key == NULL)
		return;
	if (a->certificate != NULL)
		doctor_dates(d, "certificate", a->certificate, now);
	if (cube_p9_tls_server_new(a, &s, &err) < 0)
		d->say(d->ctx, false, err.text, "certificate and key are PEM files that belong together");
	else
		d->say(d->ctx, true, "9P: certificate and key belong together", NULL);
	cube_p9_tls_server_free(s);
	if (a->key != NULL)
		doctor_secret(d, "key", a->key);
}

/* What a refusal's sentence does not say itself. */
static const char *doctor_fix(int code)
{
	static const struct {
		int code;
		const char *fix;
	} fixes[] = {
		{-EADDRINUSE,
		 "take another one, or end who listens there: a daemon that runs already, maybe"},
		{-EADDRNOTAVAIL, "take an address of this machine"},
		{-ENOENT, "make the directory"},
	};

	for (size_t i = 0; i < CUBE_COUNT(fixes); i++)
		if (fixes[i].code == code)
			return fixes[i].fix;
	return "see cubefs-9p(7)";
}

static void doctor_address(const struct doctor *d, const char *address, const struct cube_p9_access *access)
{
	cube_auto_str line = NULL;
	struct cube_err err = {0};

	if (cube_p9_listen_try(address, access, &err) < 0) {
		d->say(d->ctx, false, err.text, doctor_fix(err.code));
		return;
	}
	line = cube_asprintf("9P: %s can be served", address);
	d->say(d->ctx, true, line, NULL);
}

void cube_p9_doctor(const struct cube_conf *conf, const char *token_file, const char *const *addresses,
		    unsigned n, void (*say)(void *ctx, bool ok, const char *what, const char *fix), void *ctx)
{
	struct cube_p9_access access = {.token_file = token_file};
	struct doctor d = {.say = say, .ctx = ctx};
	struct cube_p9_limits limits;
	struct cube_err err = {0};

	if (cube_p9_conf(conf, &limits, &access, &err) < 0) {
		say(ctx, false, err.text, "correct section [9p] of the configuration, see cubefs.conf(5)");
		return;
	}
	doctor_token(&d, access.token_file);
	doctor_tls(&d, &access);
	for (unsigned i = 0; i < n; i++)
		doctor_address(&d, addresses[i], &access);
}
