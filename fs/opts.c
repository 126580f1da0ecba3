/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the daemon, as tables. */
#include "fs/opts.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "backends/base/macros.h"

struct opts_flag {
	const char *word;
	size_t at; /* of the bool in struct cube_opts */
};

static const struct opts_flag opts_flags[] = {
	{"-f", offsetof(struct cube_opts, foreground)},
	{"--foreground", offsetof(struct cube_opts, foreground)},
	{"-h", offsetof(struct cube_opts, help)},
	{"--help", offsetof(struct cube_opts, help)},
	{"-V", offsetof(struct cube_opts, version)},
	{"--version", offsetof(struct cube_opts, version)},
};

static const struct opts_flag opts_mount[] = {
	{"allow_other", offsetof(struct cube_opts, allow_other)},
	{"symlinks=raw", offsetof(struct cube_opts, symlinks_raw)},
	{"owners=raw", offsetof(struct cube_opts, owners_raw)},
	{"nonempty", offsetof(struct cube_opts, nonempty)},
	{"debug", offsetof(struct cube_opts, debug)},
};

static const struct opts_flag opts_values[] = {
	{"--config", offsetof(struct cube_opts, config)},
	{"--state", offsetof(struct cube_opts, state)},
	{"--9p-token-file", offsetof(struct cube_opts, p9_token_file)},
};

static bool opts_set(struct cube_opts *o, const struct opts_flag *flags, size_t n, const char *word,
		     size_t len)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(flags[i].word) == len && memcmp(flags[i].word, word, len) == 0) {
			*(bool *)((char *)o + flags[i].at) = true;
			return true;
		}
	}
	return false;
}

static int opts_mount_list(struct cube_opts *o, const char *list, struct cube_err *err)
{
	while (*list != '\0') {
		size_t len = strcspn(list, ",");

		if (len > 0 && !opts_set(o, opts_mount, CUBE_COUNT(opts_mount), list, len))
			return cube_fail(err, -EINVAL, "-o %.*s: no such option (cubefs --help lists them)",
					 (int)len, list);
		list += len + (list[len] == ',');
	}
	return 0;
}

bool cube_opts_stdio(const struct cube_opts *o)
{
	for (unsigned i = 0; i < o->n_p9; i++)
		if (strcmp(o->p9[i], "stdio") == 0)
			return true;
	return false;
}

static int opts_9p(struct cube_opts *o, const char *address, struct cube_err *err)
{
	if (o->n_p9 == CUBE_OPTS_9P)
		return cube_fail(err, -EINVAL, "--9p %s: %d of them are enough", address, CUBE_OPTS_9P);
	o->p9[o->n_p9++] = address;
	return 1;
}

/* Is @word that option? *ret is its value then, "" if there is none, and *i is at its last word. */
static bool opts_behind(const char *word, int argc, char **argv, int *i, const char **ret)
{
	size_t len = strlen(word);

	if (strncmp(argv[*i], word, len) != 0 || (argv[*i][len] != '\0' && argv[*i][len] != '='))
		return false;
	if (argv[*i][len] == '=')
		*ret = argv[*i] + len + 1;
	else
		*ret = *i + 1 < argc ? argv[++*i] : "";
	return true;
}

/* "--state DIR" or "--state=DIR". 1: it was one, *i is at its last word. */
static int opts_value(struct cube_opts *o, int argc, char **argv, int *i, struct cube_err *err)
{
	const char *value = "";

	for (size_t k = 0; k < CUBE_COUNT(opts_values); k++) {
		const char *word = opts_values[k].word;

		if (!opts_behind(word, argc, argv, i, &value))
			continue;
		if (value[0] == '\0')
			return cube_fail(err, -EINVAL, "%s wants a path behind it", word);
		*(const char **)(void *)((char *)o + opts_values[k].at) = value;
		return 1;
	}
	if (!opts_behind("--9p", argc, argv, i, &value))
		return 0;
	if (value[0] == '\0')
		return cube_fail(err, -EINVAL, "--9p wants an address behind it, as in --9p unix:/run/cubes");
	return opts_9p(o, value, err);
}

static int opts_word(struct cube_opts *o, const char *word, bool options, struct cube_err *err)
{
	if (options && word[0] == '-' && word[1] != '\0')
		return cube_fail(err, -EINVAL, "%s: no such option (cubefs --help lists them)", word);
	if (o->mount_point != NULL)
		return cube_fail(err, -EINVAL, "%s: one mount point is enough, %s was named before", word,
				 o->mount_point);
	o->mount_point = word;
	return 0;
}

static int opts_one(struct cube_opts *o, int argc, char **argv, int *i, struct cube_err *err)
{
	const char *word = argv[*i];
	int r;

	if (opts_set(o, opts_flags, CUBE_COUNT(opts_flags), word, strlen(word)))
		return 0;
	if (strncmp(word, "-o", 2) == 0) {
		if (word[2] != '\0')
			return opts_mount_list(o, word + 2, err);
		if (*i + 1 >= argc)
			return cube_fail(err, -EINVAL, "-o wants options behind it");
		return opts_mount_list(o, argv[++*i], err);
	}
	r = opts_value(o, argc, argv, i, err);
	if (r != 0)
		return r < 0 ? r : 0;
	return opts_word(o, word, true, err);
}

int cube_opts_parse(int argc, char **argv, struct cube_opts *ret, struct cube_err *err)
{
	struct cube_opts o = {0};
	bool options = true;
	int r = 0;

	for (int i = 1; r == 0 && i < argc; i++) {
		if (options && strcmp(argv[i], "--") == 0)
			options = false;
		else
			r = options ? opts_one(&o, argc, argv, &i, err) : opts_word(&o, argv[i], false, err);
	}
	if (r == 0 && o.mount_point == NULL && o.n_p9 == 0 && !o.help && !o.version)
		r = cube_fail(err, -EINVAL,
			      "which mount point? For example: cubefs ~/cubes (cubefs --help says more)");
	if (r == 0)
		*ret = o;
	return r;
}

void cube_opts_usage(FILE *out)
{
	(void)fputs("usage: cubefs [-f] [-o OPTION,...] [--config FILE] [--state DIR] [--9p ADDRESS] "
		    "[MOUNTPOINT]\n"
		    "       cubefs umount MOUNTPOINT    ends the daemon; the sandboxes stay as they are\n"
		    "       cubefs upgrade MOUNTPOINT   this program takes over; the mount stays, and all "
		    "that is "
		    "open\n"
		    "       cubefs sh [NAME|PATH]       an interactive shell in a sandbox\n"
		    "       cubefs top [-b] [MOUNTPOINT] what the sandboxes do, live\n"
		    "       cubefs doctor               checks this machine and every configured backend\n"
		    "\n"
		    "Mounts the tree of agent sandboxes at MOUNTPOINT, which is made if it is missing, and "
		    "goes to the\n"
		    "background when it can be used. Then: cat MOUNTPOINT/README\n"
		    "\n"
		    "  -f, --foreground  stay in the foreground\n"
		    "  --config FILE     instead of $XDG_CONFIG_HOME/cubefs/cubefs.conf or "
		    "/etc/cubefs/cubefs.conf\n"
		    "  --state DIR       where sandboxes live, instead of $CUBEFS_STATE_DIR, "
		    "$XDG_STATE_HOME/cubefs\n"
		    "                    or (root) /var/lib/cubefs; one daemon a directory\n"
		    "  --9p ADDRESS      serve the tree over 9P too, or alone: unix:PATH, tcp:HOST:PORT, "
		    "tls:HOST:PORT,\n"
		    "                    stdio; as often as wanted. man cubefs-9p\n"
		    "  --9p-token-file FILE  clients of tcp: and tls: begin their aname with the word in it\n"
		    "  -o allow_other    other users may come in, as far as mode bits let them\n"
		    "  -o symlinks=raw   show links of sandboxes as they are (for backups)\n"
		    "  -o owners=raw     do not exchange the mounting user and the sandbox's root\n"
		    "  -o nonempty       mount over a directory that is not empty\n"
		    "  -o debug          write every request to the log, STATE/cubefs.log\n"
		    "  -h, --help        this text\n"
		    "  -V, --version     the version\n",
		    out);
}
