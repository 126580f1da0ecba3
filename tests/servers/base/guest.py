# SPDX-License-Identifier: Apache-2.0
"""What daemons of boxes have in common besides base/reaper.py: the box's memory, and its standing still."""
import signal

from base import reaper, wire


def memory():
    """Bytes by the names of /proc/meminfo, and `Used`."""
    with open("/proc/meminfo", encoding="ascii") as file:
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file}
    return found | {"Used": found["MemTotal"] - found["MemAvailable"]}


async def freeze(_request):
    reaper.everyone(signal.SIGSTOP)
    return wire.Answer(204)


async def unfreeze(_request):
    reaper.everyone(signal.SIGCONT)
    return wire.Answer(204)
