/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/agent/init/port.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "backends/agent/init/ev.h"

#define PORT_LINE   256
#define PORT_RETRY  (250 * INIT_MS) /* nobody is connected at the other end */
#define PORT_FROZEN (10000 * INIT_MS)
#define PORT_SEED   64
#define PORT_S      UINT64_C(1000000000)

static struct {
	struct init_ev ev;
	struct init_timer retry, thaw;
	char line[PORT_LINE];
	size_t len;
	bool skip; /* the rest of a line that is too long */
	int disks[INIT_PORT_DISKS];
	unsigned n_disks;
	bool frozen;
} port = {.ev = {.fd = -1}};

/* ---- what is asked ---- */

static int port_thaw(const char *word)
{
	(void)word;
	init_timer_stop(&port.thaw);
	for (unsigned i = port.n_disks; i > 0 && port.frozen; i--)
		(void)ioctl(port.disks[i - 1], FITHAW, 0);
	port.frozen = false;
	return 0;
}

static void port_thaw_late(struct init_timer *t)
{
	(void)t;
	(void)port_thaw("");
}

/* All of them or none. */
static int port_freeze(const char *word)
{
	unsigned n = 0;
	int r = 0;

	(void)word;
	(void)port_thaw("");
	/* One that cannot is of memory: there is nothing to write. */
	while (n < port.n_disks && ((r = ioctl(port.disks[n], FIFREEZE, 0)) == 0 || errno == EOPNOTSUPP))
		n++;
	if (r < 0 && n < port.n_disks) {
		r = -errno;
		while (n > 0)
			(void)ioctl(port.disks[--n], FITHAW, 0);
		return r;
	}
	port.frozen = true;
	init_timer_set(&port.thaw, init_now() + PORT_FROZEN, port_thaw_late);
	return 0;
}

static int port_name(const char *word)
{
	int fd;
	ssize_t n;

	if (*word == '\0' || strlen(word) > HOST_NAME_MAX)
		return -EINVAL;
	if (sethostname(word, strlen(word)) < 0)
		return -errno;
	fd = open("/etc/hostname", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	n = dprintf(fd, "%s\n", word);
	(void)close(fd);
	return n < 0 ? -EIO : 0;
}

static int port_time(const char *word)
{
	char *end;
	uint64_t ns = strtoull(word, &end, 10);
	struct timespec ts = {.tv_sec = (time_t)(ns / PORT_S), .tv_nsec = (long)(ns % PORT_S)};

	if (end == word || *end != '\0')
		return -EINVAL;
	return clock_settime(CLOCK_REALTIME, &ts) < 0 ? -errno : 0;
}

static int port_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c != '\0' ? strchr(digits, c) : NULL;

	return at != NULL ? (int)(at - digits) : -1;
}

/* As RNDADDENTROPY has it (struct rand_pool_info): how many bits it is worth, bytes, and these. */
static int port_seed(const char *word)
{
	int seed[2 + PORT_SEED / sizeof(int)] = {0};
	unsigned char *bytes = (unsigned char *)&seed[2];
	size_t len = strlen(word);
	int fd, r;

	if (len % 2 != 0 || len == 0 || len / 2 > PORT_SEED)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		int digit = port_digit(word[i]);

		if (digit < 0)
			return -EINVAL;
		bytes[i / 2] = (unsigned char)(bytes[i / 2] << 4 | digit);
	}
	seed[1] = (int)(len / 2);
	seed[0] = seed[1] * CHAR_BIT;
	fd = open("/dev/urandom", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = ioctl(fd, RNDADDENTROPY, seed) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0 ? -errno : 0;
	(void)close(fd);
	return r;
}

static const struct {
	const char *word;
	int (*fn)(const char *rest);
} port_asked[] = {
	{"freeze", port_freeze}, {"thaw", port_thaw}, {"name", port_name},
	{"time", port_time},     {"seed", port_seed},
};

/* ---- lines ---- */

static void port_answer(int code)
{
	char text[32];
	int n = code == 0 ? snprintf(text, sizeof(text), "ok\n")
			  : snprintf(text, sizeof(text), "error %d\n", -code);

	/* Who asks without reading loses the answer. */
	if (write(port.ev.fd, text, (size_t)n) < 0)
		return;
}

static void port_line(char *line)
{
	size_t len = strcspn(line, " ");
	const char *rest = line[len] == ' ' ? line + len + 1 : "";
	int code = -ENOSYS;

	for (size_t i = 0; i < sizeof(port_asked) / sizeof(port_asked[0]); i++)
		if (strlen(port_asked[i].word) == len && strncmp(line, port_asked[i].word, len) == 0)
			code = port_asked[i].fn(rest);
	port_answer(code);
}

static void port_take(const char *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (data[i] != '\n') {
			port.skip = port.skip || port.len + 1 >= sizeof(port.line);
			if (!port.skip)
				port.line[port.len++] = data[i];
			continue;
		}
		port.line[port.len] = '\0';
		if (port.skip)
			port_answer(-EMSGSIZE);
		else
			port_line(port.line);
		port.len = 0;
		port.skip = false;
	}
}

static void port_event(struct init_ev *ev, uint32_t events);

static void port_again(struct init_timer *t)
{
	(void)t;
	(void)init_ev_add(&port.ev, port.ev.fd, EPOLLIN, port_event);
}

static void port_event(struct init_ev *ev, uint32_t events)
{
	char data[PORT_LINE];
	ssize_t n = read(ev->fd, data, sizeof(data));

	(void)events;
	if (n > 0) {
		port_take(data, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		init_ev_del(ev); /* it would be told again and again */
		port.len = 0;
		port.skip = false;
		init_timer_set(&port.retry, init_now() + PORT_RETRY, port_again);
	}
}

bool init_port_disk(int fd)
{
	if (port.n_disks == INIT_PORT_DISKS)
		return false;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	port.disks[port.n_disks++] = fd;
	return true;
}

int init_port_open(int fd)
{
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	port.ev.fd = fd;
	return init_ev_add(&port.ev, fd, EPOLLIN, port_event);
}
