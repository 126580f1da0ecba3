#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How costs grow with the number of sandboxes: a table and a plot.

    tests/bench/scale.py [--backend mem|local] [--counts 10,100,...] [--running N] [--svg FILE] [CUBEFS]

Mounts a cubefs of its own (CUBEFS: the program, build/release/fs/cubefs unless named), makes as many sandboxes
as each count says, of which at most N (1000) run and the others are stopped, measures, and takes all of it away.
Each figure is a median of several; one machine's, under its load.
"""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = [  # key, what, unit
    ("ls", "`ls` of the mount", "ms"),
    ("ls_l", "`ls -l` of the mount", "ms"),
    ("list", "`cat list`", "ms"),
    ("status", "`cat X/status`", "ms"),
    ("create", "`create X`, to its answer", "ms"),
    ("destroy", "`destroy X`, to its answer", "ms"),
    ("exec", "`true` by `exec`, written to read", "ms"),
    ("made", "all of them made, each", "ms"),
    ("start", "mounted again, to a first `ls`", "ms"),
    ("rss", "memory of the daemon", "MiB"),
    ("rss_each", "of that, each sandbox more", "KiB"),
]


class Mount:
    """A daemon with a state directory of its own."""

    def __init__(self, program, backend, work):
        self.program, self.backend, self.work = program, backend, work
        self.mount = os.path.join(work, "mnt")
        self.state = os.path.join(work, "state")
        self.conf = os.path.join(work, "conf")
        os.mkdir(self.state)
        with open(self.conf, "w") as f:
            f.write("[backend %s]\nkind = %s\ndefault = yes\n" % (backend, backend))
        self.process = None

    def up(self):
        self.process = subprocess.Popen(
            [self.program, "-f", "--config", self.conf, "--state", self.state, self.mount],
            stdin=subprocess.DEVNULL, stdout=open(os.path.join(self.work, "log"), "ab"), stderr=subprocess.STDOUT)
        while not os.path.exists(os.path.join(self.mount, "README")):
            if self.process.poll() is not None:
                sys.exit("cubefs ended: " + open(os.path.join(self.work, "log")).read()[-500:])
            time.sleep(0.001)

    def down(self):
        if self.process is None:
            return
        subprocess.run([self.program, "umount", self.mount], check=False)
        self.process.wait()
        self.process = None

    def path(self, *parts):
        return os.path.join(self.mount, *parts)

    def verb(self, line, *where):
        fd = os.open(self.path(*where, "ctl"), os.O_WRONLY)
        try:
            os.write(fd, (line + "\n").encode())
        finally:
            os.close(fd)

    def read(self, *where):
        with open(self.path(*where), "rb") as f:
            return f.read()

    def rss(self):
        """KiB of the daemon's processes."""
        total, todo = 0, [self.process.pid]
        while todo:
            pid = todo.pop()
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += next(int(l.split()[1]) for l in f if l.startswith("Pss:"))
            children = subprocess.run(["pgrep", "-P", str(pid), "^cubefs"], capture_output=True, text=True)
            todo += [int(word) for word in children.stdout.split()]
        return total


def clock(work, times=7):
    """Milliseconds: the median of several."""
    taken = []
    for i in range(times):
        begin = time.perf_counter()
        work(i)
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken)


def in_parallel(n, work, threads=8):
    """work(0) ... work(n - 1); the first failure is raised."""
    failed, numbers, lock = [], iter(range(n)), threading.Lock()

    def run():
        while not failed:
            with lock:
                i = next(numbers, None)
            if i is None:
                return
            try:
                work(i)
            except OSError as e:
                failed.append(e)
    all_threads = [threading.Thread(target=run) for _ in range(threads)]
    for t in all_threads:
        t.start()
    for t in all_threads:
        t.join()
    if failed:
        raise failed[0]


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def run_true(m, name):
    fd = os.open(m.path(name, "exec"), os.O_RDWR)
    try:
        os.write(fd, b"true\n")
        os.read(fd, 1)
    finally:
        os.close(fd)


def measure(m, have, count, running):
    """Goes from @have to @count sandboxes, and measures there."""
    row, empty = {}, m.rss()

    def make(i):
        name = "s%05d" % (have + i)
        m.verb("create " + name)
        if have + i >= running:
            m.verb("stop 0", name)

    begin = time.perf_counter()
    in_parallel(count - have, make)
    row["made"] = (time.perf_counter() - begin) * 1000 / (count - have)
    row["rss"] = m.rss() / 1024
    row["rss_each"] = (m.rss() - empty) / (count - have)
    if len(os.listdir(m.mount)) < count:
        sys.exit("there are only %d entries" % len(os.listdir(m.mount)))
    row["ls"] = clock(lambda i: command("ls", "-f", m.mount))
    row["ls_l"] = clock(lambda i: command("ls", "-l", m.mount))
    row["list"] = clock(lambda i: m.read("list"))
    row["status"] = clock(lambda i: m.read("s00000", "status"), 50)
    row["exec"] = clock(lambda i: run_true(m, "s%05d" % (i % min(10, count))), 50)
    row["create"] = clock(lambda i: m.verb("create x%d" % i), 15)
    row["destroy"] = clock(lambda i: m.verb("destroy x%d" % i), 15)
    return row


def again(m):
    m.down()
    begin = time.perf_counter()
    m.up()
    os.listdir(m.mount)
    return (time.perf_counter() - begin) * 1000


def take_away(m):
    """All sandboxes, then the daemon, whatever happened before."""
    try:
        names = [line.split()[0].decode() for line in m.read("list").splitlines()]
        in_parallel(len(names), lambda i: m.verb("destroy " + names[i]), 4)
    except OSError as e:
        print("not all could be destroyed: %s; they are in %s" % (e, m.state), file=sys.stderr)
    m.down()


def number(value):
    return "%.0f" % value if value >= 100 else "%.1f" % value if value >= 10 else "%.2f" % value


def table(rows):
    counts = sorted(rows)
    print("| | " + " | ".join("%s" % format(c, ",") for c in counts) + " | |")
    print("| --- | " + " | ".join("---:" for _ in counts) + " | --- |")
    for key, what, unit in ROWS:
        if all(key in rows[c] for c in counts):
            print("| %s | %s | %s |" % (what, " | ".join(number(rows[c][key]) for c in counts), unit))


def main():
    p = argparse.ArgumentParser(description="how costs grow with the number of sandboxes")
    p.add_argument("--backend", default="mem")
    p.add_argument("--counts", default="10,100,1000,10000")
    p.add_argument("--running", type=int, default=1000)
    p.add_argument("--svg")
    p.add_argument("cubefs", nargs="?", default=os.path.join(HERE, "../../build/release/fs/cubefs"))
    a = p.parse_args()
    work = tempfile.mkdtemp(prefix="cubefs-scale-")
    m = Mount(os.path.abspath(a.cubefs), a.backend, work)
    rows, have = {}, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    try:
        m.up()
        for count in [int(word) for word in a.counts.split(",")]:
            rows[count] = measure(m, have, count, a.running)
            have = count
            if a.backend != "mem":  # whose sandboxes end with the daemon
                rows[count]["start"] = again(m)
            print("measured %d" % count, file=sys.stderr)
    finally:
        take_away(m)
        shutil.rmtree(work, ignore_errors=True)
    print("load %s, %d processors, backend %s, at most %d running\n" % (
        " ".join("%.1f" % l for l in os.getloadavg()), os.cpu_count(), a.backend, a.running))
    table(rows)
    if a.svg:
        sys.path.insert(0, HERE)
        import scale_plot
        with open(a.svg, "w") as f:
            f.write(scale_plot.draw(rows, [r for r in ROWS if r[2] == "ms"]))


if __name__ == "__main__":
    main()
