/* SPDX-License-Identifier: Apache-2.0 */
/* The buttons are input devices. A hypervisor that is asked to shut a machine down presses one (ACPI). */
#include "backends/agent/init/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/input.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "backends/agent/init/ev.h"

#define BUTTONS_MAX 4 /* a machine has one, and perhaps another on a keyboard */
#define BUTTON_READ 16

static struct init_ev buttons[BUTTONS_MAX];
static unsigned buttons_n;
static void (*button_pressed)(void);

static void button_event(struct init_ev *ev, uint32_t events)
{
	struct input_event all[BUTTON_READ];
	ssize_t n = read(ev->fd, all, sizeof(all));

	(void)events;
	if (n <= 0) {
		init_ev_del(ev);
		return;
	}
	for (size_t i = 0; i < (size_t)n / sizeof(all[0]); i++)
		if (all[i].type == EV_KEY && all[i].code == KEY_POWER && all[i].value == 1)
			button_pressed();
}

static bool button_is(int fd)
{
	unsigned char keys[KEY_MAX / 8 + 1] = {0};

	return ioctl(fd, EVIOCGBIT(EV_KEY, sizeof(keys)), keys) >= 0 &&
	       (keys[KEY_POWER / 8] >> (KEY_POWER % 8) & 1) != 0;
}

void init_machine_setup(void (*pressed)(void))
{
	DIR *dir = opendir("/dev/input");
	struct dirent *entry;

	button_pressed = pressed;
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	while (dir != NULL && buttons_n < BUTTONS_MAX && (entry = readdir(dir)) != NULL) {
		int fd = -1;

		if (strncmp(entry->d_name, "event", 5) == 0)
			fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (button_is(fd) && init_ev_add(&buttons[buttons_n], fd, EPOLLIN, button_event) == 0)
			buttons_n++;
		else
			(void)close(fd);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

void init_machine_off(void)
{
	sync();
	(void)reboot(RB_POWER_OFF);
}
