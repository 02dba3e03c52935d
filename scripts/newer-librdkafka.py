#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""Fetches a newer librdkafka than Debian's, for tests and demos alone, and says how to run with it.

The library is that of the package that Tests/Brokers/requirements-librdkafka.txt names. TLS and compression are
linked into it and show no names to the rest of a program, so they do not meet Debian's."""

import ctypes
import platform

from command_line import ROOT, fail, start
from environments import PROGRAMS_MACHINE, unpack_librdkafka


def main():
    start()
    if platform.machine() != PROGRAMS_MACHINE:
        fail(f"the package is for {PROGRAMS_MACHINE} alone")
    folder = unpack_librdkafka()
    library = ctypes.CDLL(str(folder / "librdkafka.so.1"))
    library.rd_kafka_version_str.restype = ctypes.c_char_p
    print(f"librdkafka {library.rd_kafka_version_str().decode()}; run with it, for instance:\n"
          f"LAMPLIGHTER_RDKAFKA={folder.relative_to(ROOT)} make test")


main()
