/* SPDX-License-Identifier: Apache-2.0 */
/* The user's terminal. */
#include "ctl/cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

static struct termios terminal_before;
static bool terminal_is_raw;

void cube_terminal_restore(void)
{
	if (terminal_is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal_before);
	terminal_is_raw = false;
}

int cube_terminal_raw(struct cube_err *err)
{
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &terminal_before) < 0)
		return cube_fail_errno(err, "the terminal");
	raw = terminal_before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return cube_fail_errno(err, "the terminal");
	terminal_is_raw = true;
	(void)atexit(cube_terminal_restore);
	return 0;
}

bool cube_terminal_size(unsigned *ret_rows, unsigned *ret_cols)
{
	struct winsize w;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
		return false;
	*ret_rows = w.ws_row;
	*ret_cols = w.ws_col;
	return true;
}

int cube_terminal_signals(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int cube_terminal_signal(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}
