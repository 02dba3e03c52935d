# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Containers of images that image_build.py has made, and one push through them.

A container is the image's root, mounted read only, with /proc and /dev. Its processes run as the
image's user, without capabilities, and can gain none. They share this machine's network."""

import os
import re
import shutil
import signal
import subprocess
import time

from command_line import ROOT, announce, fail
from debian_root import run

# Where a container sees the folder of the simulation; its own folder when it starts.
PLACE = "/srv"
# From SIGTERM to the end of the worker: delivery.shutdownTimeout and a little.
SECONDS_TO_STOP = 30


def as_user(image, *words, root=None, chdir="/"):
    """The command that runs another one as the image's user, with the image's environment."""
    user, group = image.user.split(":")
    environment = [f"{name}={value}" for name, value in image.environment.items()]
    return ["chroot", root or image.root, "env", "--ignore-environment", f"--chdir={chdir}",
            *environment, "setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups",
            "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *words]


def output_or_fail(command):
    """What a command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Container:
    """An image's root, read only."""

    def __init__(self, image, root, simulation):
        self.image = image
        self.root = root
        for name in (PLACE, "/proc", "/dev"):
            (image.root / name.lstrip("/")).mkdir(exist_ok=True)
        root.mkdir()
        run("mount", "--bind", image.root, root)
        run("mount", "-o", "remount,bind,ro", root)
        run("mount", "-t", "proc", "proc", root / "proc")
        run("mount", "--rbind", "/dev", root / "dev")
        run("mount", "--bind", simulation.folder, f"{root}{PLACE}")

    def command(self, *words):
        return as_user(self.image, *words, root=self.root, chdir=PLACE)

    def output(self, *words):
        return output_or_fail(self.command(*words))


class Simulation:
    """The folder in which scripts/run-local.sh sends its push, with the programs of two images."""

    def __init__(self, folder, worker, lab):
        self.folder = folder
        self.run = folder / "run"
        self.pids = []
        (folder / "scripts").mkdir(parents=True)
        shutil.copy2(ROOT / "scripts/run-local.sh", folder / "scripts")
        self.worker = worker
        self.lab = lab

    def push(self, worker, lab):
        """Sends one push from the lab's Kafka through the worker to the lab's APNs; all of them go
        on running."""
        programs = self.folder / "programs"
        programs.mkdir()
        self._wrap(programs / "lamplighter", worker, self.worker)
        self._wrap(programs / "lamplighter-lab", lab, self.lab)
        announce("scripts/run-local.sh", "--keep")
        done = subprocess.run(
            ["scripts/run-local.sh", "--keep"], cwd=self.folder, text=True, stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "LAMPLIGHTER_PROGRAMS": str(programs)}, check=False)
        print(done.stdout, end="")
        pids = re.search(r"end it with: kill ([\d ]+)", done.stdout)
        if done.returncode != 0 or not pids:
            fail("no push went from the embedded Kafka through the worker to the simulator")
        self.pids = [int(pid) for pid in pids[1].split()]

    def stop_worker(self):
        """Ends the worker as a container is ended. The simulators end with the namespace."""
        number = getattr(signal, self.worker.stop_signal)
        worker = self.pids[-1]
        began = time.monotonic()
        os.kill(worker, number)
        while True:
            # Their parent has ended, so this process, the first of its namespace, is their parent.
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended:
                break
            if time.monotonic() - began > SECONDS_TO_STOP:
                fail(f"the worker still runs {SECONDS_TO_STOP} s after {self.worker.stop_signal}")
            time.sleep(0.1)
        if os.waitstatus_to_exitcode(status) != 0:
            fail(f"the worker ended with {os.waitstatus_to_exitcode(status)}")
        print(f"stop: the worker ended with 0, {time.monotonic() - began:.1f} s after "
              f"{self.worker.stop_signal}")

    @staticmethod
    def _wrap(path, container, image):
        """Writes the script that runs an image's entry point in its container. What it becomes is the
        program, so that its process number is the program's."""
        words = " ".join(f"'{word}'" for word in container.command(*image.entrypoint))
        user = image.user
        path.write_text(f'#!/bin/sh\nchown {user} run run/*.p8 2>/dev/null\nexec {words} "$@"\n')
        path.chmod(0o755)
