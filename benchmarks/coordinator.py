#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Lamplighter.
"""A group coordinator in front of the embedded Kafka, which has none that says anything of rebalances.

librdkafka's mock cluster lets a group wait for the session timeout less a second at each join, takes
no commits meanwhile, and knows no static members. This proxy passes everything on to it but the
group's own requests, which it answers as Apache Kafka 3.x does:

- a rebalance is over as soon as every member has joined again, or has been silent for its session;
- commits of the last generation are taken until the next one is shared out;
- a member that leaves starts a rebalance; one with `group.instance.id` does not leave, and comes
  back to its partitions under a new member ID.

Usage: coordinator.py BROKER-HOST:PORT ADDRESS-FILE. Offsets are in memory alone.
"""

import asyncio
import dataclasses
import itertools
import pathlib
import struct
import sys

# The highest versions that this speaks; none is of the flexible format.
VERSIONS = {8: 7, 9: 5, 10: 2, 11: 5, 12: 3, 13: 1, 14: 3}
METADATA, METADATA_VERSION, API_VERSIONS, FIND_COORDINATOR = 3, 4, 18, 10
ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCING, FENCED = 22, 25, 27, 82
# How long an empty group waits for further members. Kafka's default is 3 s.
FIRST_WAIT = 0.5


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, kind):
        value = struct.unpack_from(">" + kind, self.data, self.at)[0]
        self.at += struct.calcsize(">" + kind)
        return value

    def text(self):
        return self._bytes(self.number("h"))

    def bytes(self):
        return self._bytes(self.number("i"))

    def _bytes(self, count):
        if count < 0:
            return None
        self.at += count
        return bytes(self.data[self.at - count:self.at])

    def array(self, read):
        return [read() for _ in range(max(0, self.number("i")))]


def number(kind, value):
    return struct.pack(">" + kind, value)


def text(value):
    return number("h", -1) if value is None else number("h", len(value)) + value


def blob(value):
    return number("i", len(value)) + value


def array(values):
    return number("i", len(values)) + b"".join(values)


@dataclasses.dataclass
class Member:
    name: bytes
    instance: bytes | None
    session: float
    protocols: list
    seen: float
    joining: asyncio.Future | None = None
    syncing: asyncio.Future | None = None
    assignment: bytes = b""

    def fence(self):
        """Answers what the process before still waits for."""
        if self.joining:
            self.joining.set_result(FENCED)
        if self.syncing:
            self.syncing.set_result((FENCED, b""))
        self.joining = self.syncing = None


class Group:
    """One consumer group. Its states are those of Kafka: empty, preparing, completing, stable."""

    def __init__(self):
        self.members, self.offsets = {}, {}
        self.state, self.generation, self.leader = "empty", 0, b""
        self.names = itertools.count(1)
        self.complete_at = None

    def now(self):
        return asyncio.get_running_loop().time()

    async def watch(self):
        while True:
            await asyncio.sleep(0.02)
            for member in list(self.members.values()):
                waits = member.joining or member.syncing
                if not waits and self.now() - member.seen > member.session:
                    print("expired:", member.name.decode(), flush=True)
                    self.remove(member)
            if self.complete_at and self.now() >= self.complete_at:
                self.complete_at = None
                self.complete_if_joined()

    def remove(self, member):
        del self.members[member.name]
        self.prepare()

    def prepare(self):
        if self.state != "preparing":
            self.complete_at = self.now() + FIRST_WAIT if self.state == "empty" else None
            self.state = "preparing"
            for member in self.members.values():
                if member.syncing:
                    member.syncing.set_result((REBALANCING, b""))
                    member.syncing = None
        self.complete_if_joined()

    def complete_if_joined(self):
        if self.state != "preparing" or self.complete_at:
            return
        if not self.members:
            self.state = "empty"
            return
        if not all(member.joining for member in self.members.values()):
            return
        self.state, self.generation = "completing", self.generation + 1
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        for member in self.members.values():
            joining, member.joining = member.joining, None
            joining.set_result(0)

    async def join(self, name, instance, session, protocols):
        """The error, and the member."""
        known = self.members.get(name)
        if name and not known:
            return UNKNOWN_MEMBER, None
        if not known and instance is not None:
            known = next((m for m in self.members.values() if m.instance == instance), None)
            if known:
                # The same member in another process: it has a new ID, and the old one is fenced.
                known.fence()
                del self.members[known.name]
                if self.leader == known.name:
                    self.leader = self._new_name()
                    known.name = self.leader
                else:
                    known.name = self._new_name()
                self.members[known.name] = known
                known.seen, known.protocols = self.now(), protocols
                if self.state == "stable":
                    return 0, known
        if not known:
            known = Member(self._new_name(), instance, session, protocols, self.now())
            self.members[known.name] = known
        known.seen, known.protocols = self.now(), protocols
        known.joining = asyncio.get_running_loop().create_future()
        future = known.joining
        self.prepare()
        return await future, known

    def _new_name(self):
        return b"member-%d" % next(self.names)

    async def sync(self, member, assignments):
        member.seen = self.now()
        if self.state == "stable":
            return 0, member.assignment
        if self.state != "completing":
            return REBALANCING, b""
        member.syncing = asyncio.get_running_loop().create_future()
        future = member.syncing
        if member.name == self.leader:
            for name, assignment in assignments:
                if name in self.members:
                    self.members[name].assignment = assignment
            self.state = "stable"
            for other in self.members.values():
                syncing, other.syncing = other.syncing, None
                if syncing:
                    syncing.set_result((0, other.assignment))
        return await future

    def check(self, name, generation, instance=None):
        """The error of a request of this member, and the member."""
        member = self.members.get(name)
        if not member:
            fenced = instance is not None and any(
                other.instance == instance for other in self.members.values())
            return (FENCED if fenced else UNKNOWN_MEMBER), None
        member.seen = self.now()
        return (0 if generation == self.generation else ILLEGAL_GENERATION), member


class Coordinator:
    def __init__(self, broker):
        self.broker, self.groups, self.port = broker, {}, 0

    def group(self, name):
        if name not in self.groups:
            self.groups[name] = Group()
            asyncio.get_running_loop().create_task(self.groups[name].watch())
        return self.groups[name]

    async def answer(self, key, version, request):
        """The body of the answer to a request of a group."""
        reader = Reader(request)
        group = self.group(reader.text())
        return await {
            8: self.offset_commit, 9: self.offset_fetch, 11: self.join_group, 12: self.heartbeat,
            13: self.leave_group, 14: self.sync_group}[key](group, version, reader)

    async def join_group(self, group, version, reader):
        session = reader.number("i") / 1000
        if version >= 1:
            reader.number("i")
        name = reader.text()
        instance = reader.text() if version >= 5 else None
        reader.text()
        protocols = reader.array(lambda: (reader.text(), reader.bytes()))
        error, member = await group.join(name, instance, session, protocols)
        throttle = number("i", 0) if version >= 2 else b""
        if error:
            return throttle + number("h", error) + number("i", -1) + text(b"") * 3 + array([])
        # Every member offers the same protocols.
        members = [
            text(other.name) + (text(other.instance) if version >= 5 else b"")
            + blob(dict(other.protocols)[protocols[0][0]])
            for other in group.members.values()] if member.name == group.leader else []
        return (throttle + number("h", 0) + number("i", group.generation) + text(protocols[0][0])
                + text(group.leader) + text(member.name) + array(members))

    async def sync_group(self, group, version, reader):
        generation, name = reader.number("i"), reader.text()
        instance = reader.text() if version >= 3 else None
        assignments = reader.array(lambda: (reader.text(), reader.bytes()))
        error, member = group.check(name, generation, instance)
        assignment = b""
        if not error:
            error, assignment = await group.sync(member, assignments)
        return (number("i", 0) if version >= 1 else b"") + number("h", error) + blob(assignment)

    async def heartbeat(self, group, version, reader):
        generation, name = reader.number("i"), reader.text()
        error, _ = group.check(name, generation, reader.text() if version >= 3 else None)
        if not error and group.state == "preparing":
            error = REBALANCING
        return (number("i", 0) if version >= 1 else b"") + number("h", error)

    async def leave_group(self, group, version, reader):
        member = group.members.get(reader.text())
        if member:
            group.remove(member)
        error = 0 if member else UNKNOWN_MEMBER
        return (number("i", 0) if version >= 1 else b"") + number("h", error)

    async def offset_commit(self, group, version, reader):
        generation, name, instance = -1, b"", None
        if version >= 1:
            generation, name = reader.number("i"), reader.text()
        if version >= 7:
            instance = reader.text()
        if 2 <= version <= 4:
            reader.number("q")
        error = 0
        if generation >= 0:
            error, _ = group.check(name, generation, instance)
            if not error and group.state == "completing":
                error = REBALANCING

        def partition(topic):
            index, offset = reader.number("i"), reader.number("q")
            if version >= 6:
                reader.number("i")
            metadata = reader.text()
            if not error:
                group.offsets[topic, index] = (offset, metadata)
            return number("i", index) + number("h", error)

        def topic():
            name = reader.text()
            return text(name) + array(reader.array(lambda: partition(name)))
        topics = array(reader.array(topic))
        return (number("i", 0) if version >= 3 else b"") + topics

    async def offset_fetch(self, group, version, reader):
        def partition(topic):
            index = reader.number("i")
            offset, metadata = group.offsets.get((topic, index), (-1, b""))
            epoch = number("i", -1) if version >= 5 else b""
            return number("i", index) + number("q", offset) + epoch + text(metadata) + number("h", 0)

        def topic():
            name = reader.text()
            return text(name) + array(reader.array(lambda: partition(name)))
        topics = array(reader.array(topic))
        return ((number("i", 0) if version >= 3 else b"") + topics
                + (number("h", 0) if version >= 2 else b""))

    # The proxy

    async def serve(self, reader, writer):
        upstream = await asyncio.open_connection(*self.broker)
        # Answers go back in the order of the requests.
        answers = asyncio.Queue()
        tasks = [
            asyncio.ensure_future(self.read_requests(reader, upstream[1], answers)),
            asyncio.ensure_future(self.write_answers(upstream[0], writer, answers))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for end in (writer, upstream[1]):
                end.close()

    async def read_requests(self, reader, upstream, answers):
        while True:
            frame = await frame_of(reader)
            if frame is None:
                return
            key, version, correlation = struct.unpack_from(">hhi", frame)
            if key in VERSIONS and key != FIND_COORDINATOR:
                client = Reader(frame)
                client.at = 8
                client.text()
                answers.put_nowait((correlation, asyncio.ensure_future(
                    self.answer(key, version, frame[client.at:]))))
            else:
                upstream.write(number("i", len(frame)) + frame)
                answers.put_nowait((key, version))

    async def write_answers(self, upstream, writer, answers):
        while True:
            first, second = await answers.get()
            if isinstance(second, asyncio.Future):
                frame = number("i", first) + await second
            else:
                frame = await frame_of(upstream)
                if frame is None:
                    return
                frame = self.rewritten(first, second, frame)
            writer.write(number("i", len(frame)) + frame)
            await writer.drain()

    def rewritten(self, key, version, frame):
        """The broker's answer, with this proxy's address and versions in it."""
        frame = bytearray(frame)
        reader = Reader(frame)
        reader.number("i")
        if key == API_VERSIONS and version < 3:
            reader.number("h")
            for _ in range(reader.number("i")):
                api, _, highest = reader.number("h"), reader.number("h"), reader.number("h")
                most = {METADATA: METADATA_VERSION, **VERSIONS}.get(api, highest)
                struct.pack_into(">h", frame, reader.at - 2, min(most, highest))
        elif key == API_VERSIONS:
            # The flexible format: the client asks again with an older version.
            return frame[:4] + number("h", 35) + array(
                [number("h", API_VERSIONS) + number("h", 0) + number("h", 2)])
        elif key == METADATA:
            if version >= 3:
                reader.number("i")
            for _ in range(reader.number("i")):
                reader.number("i")
                reader.text()
                struct.pack_into(">i", frame, reader.at, self.port)
                reader.number("i")
                if version >= 1:
                    reader.text()
        elif key == FIND_COORDINATOR:
            if version >= 1:
                reader.number("i")
            reader.number("h")
            if version >= 1:
                reader.text()
            reader.number("i")
            reader.text()
            struct.pack_into(">i", frame, reader.at, self.port)
        return bytes(frame)


async def frame_of(reader):
    try:
        size = await reader.readexactly(4)
        return await reader.readexactly(struct.unpack(">i", size)[0])
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


async def main(broker, address_file):
    host, port = broker.rsplit(":", 1)
    coordinator = Coordinator((host, int(port)))
    server = await asyncio.start_server(coordinator.serve, "127.0.0.1", 0)
    coordinator.port = server.sockets[0].getsockname()[1]
    pathlib.Path(address_file).write_text(f"127.0.0.1:{coordinator.port}\n")
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
