# SPDX-License-Identifier: Apache-2.0
"""Children of a daemon that is PID 1: every one is waited for, others' too."""
import asyncio
import os
import signal


class Reaper:
    def __init__(self):
        self._known = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)

    def wait(self, pid, then):
        """then(status) when the child has ended; asked for before the loop runs again."""
        self._known[pid] = then

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            then = self._known.pop(pid, None)
            if then:
                then(status)


def everyone(number):
    """A signal to every process but PID 1, which asks for it."""
    try:
        os.kill(-1, number)
    except ProcessLookupError:  # there is nobody else
        pass
