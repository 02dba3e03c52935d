// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

/// A record of an events topic. The input: perhaps its timestamp (`@-1`), a line of two digits (the
/// binding, the routing), the key, lines `name: value` of headers up to an empty one, the value.
enum EventsTarget {
    /// One of each way of reading a record.
    private static let bindings: [TopicBinding] = {
        var filtered = TopicBinding(
            decode: .json, app: "com.example.Home", kinds: ["door"],
            classes: TokenClassSet(.control), ttl: .seconds(60))
        filtered.delay = .seconds(1)
        let templates = ["order-{/order/id}", "{key}.{header:region}.{/a~1b/0}", "{header:x}{/0}"]
            .map { try! SubjectTemplate($0) }
        var rows = TopicBinding(decode: .debezium, subject: try! SubjectTemplate("row-{/id}"))
        rows.subjects =
            [try! SubjectTemplate("was-{before:/id}"), templates[2]]
            + ["{key:/id}", "{key:}", "{/payload/id}"].map { try! SubjectTemplate($0) }
        rows.missing = .skip
        rows.conditions = [
            RecordCondition(field: FieldPath("/status")!, tests: [.changed(true)])
        ]
        var documents = TopicBinding(decode: .json, subject: templates[0])
        documents.kindsFrom = FieldPath("/kinds")
        documents.push.collapseID = templates[0]
        documents.push.payload = try! PushTemplate(
            .map([
                ("aps", .map([("alert", .text("{/order/id}: {/text}"))])),
                ("n", .map([("$field", .text("/n")), ("default", .nothing)])),
            ]))
        return [
            .standard, TopicBinding(decode: .key), TopicBinding(decode: .cloudevents), filtered,
            TopicBinding(decode: .json, subject: templates[0]),
            TopicBinding(decode: .json, subject: templates[1]),
            TopicBinding(decode: .cloudevents, subject: templates[2]), rows, documents,
        ] + keys
    }()
    /// One of each format of keys that needs no registry.
    private static let keys = [KeyFormat.json, .int64, .int32].map { format in
        var binding = TopicBinding(decode: .key, subject: try! SubjectTemplate("{key}.{key:}"))
        binding.keySchema = format
        return binding
    }
    /// That of the topic which shards are written to.
    private static let shardBinding = 0

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let timestamp = input.timestamp()
        let choice = input.line()
        let routing = choice?.dropFirst().first == 0x30 ? RecordWorld.small : RecordWorld.large
        let key = input.field()
        let headers = headers(&input)
        let value = input.value
        var settings = EventSettings()
        settings.allowKindWide = true
        settings.allowInstallations = true
        settings.recordBytesMax = 64 << 10
        var decoder = try EventDecoder(bindings: bindings, routing: routing, settings: settings)
        try lend(key, value) { key, value in
            let record = EventRecord(
                binding: Int(choice?.first ?? 0x30) % bindings.count, key: key, value: value,
                timestamp: timestamp)
            let decoded: Event?
            do throws(UnreadableRecord) {
                decoded = try decoder.decode(record, now: RecordWorld.now) { name in
                    headers.last { $0.name == name }?.value.lent
                }
            } catch { return try promiseReason(error) }
            guard let event = decoded else {
                let reason = decoder.reasonLeftOut(record, now: RecordWorld.now) { name in
                    headers.last { $0.name == name }?.value.lent
                }
                return try promise(!reason.text.isEmpty, "left out for no reason")
            }
            try promiseBounds(of: event, routing)
            try promiseReturn(of: event, at: timestamp, routing, settings)
        }
        withExtendedLifetime(headers) {}
    }

    private static func headers(_ input: inout FuzzInput) -> [(name: String, value: ExactBytes)] {
        var headers: [(name: String, value: ExactBytes)] = []
        while let line = input.line(), !line.isEmpty {
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            let value = ExactBytes(line.dropFirst(name.count + 2))
            headers.append((String(decoding: name, as: UTF8.self), value))
        }
        return headers
    }

    private static func promiseBounds(of event: Event, _ routing: RoutingTable) throws {
        let latest = RecordWorld.now + .seconds(RecordLimits.ttlSecondsMax)
        try promise(event.subject.count <= RecordLimits.subjectBytesMax, "a long subject")
        try promise(!event.subject.isEmpty || !event.kinds.isEmpty, "an event for nothing")
        try promise(
            event.scope == .subject || RecordKey.isPart(event.subject),
            "an installation that no registration has")
        try promise(event.kinds.count <= RecordLimits.kindsMax, "\(event.kinds.count) kinds")
        try promise(
            event.kinds.allSatisfy { (1...RecordLimits.kindBytesMax).contains($0.utf8.count) },
            "a kind of no bytes or too many")
        try promise(!event.classes.isEmpty && event.classes.isSubset(of: .all), "strange classes")
        try promise(event.expiresAt <= latest, "a life over 30 days")
        try promise([nil, 1, 5, 10].contains(event.priority), "a priority that APNs refuses")
        try promise(Int(event.app.rawValue) < routing.apps.count, "an app of nobody")
        if let id = event.collapseID { try promiseHeaderValue(id) }
        if let payload = event.payload {
            let bytesMax = payload.type.payloadBytesMax
            try promise(payload.body.count <= bytesMax, "a payload that APNs refuses")
            try promise(
                payload.type != .background || event.priority != 10, "an urgent background push")
        }
        guard let shard = event.shard else { return }
        try promise(
            shard.tokens.index < shard.tokens.count && shard.tokens.count <= EventShard.countMax,
            "a shard outside of its event")
        try promise(shard.partition >= 0 && shard.offset >= 0, "a shard of nowhere")
    }

    /// An event that is written again as a shard of itself says the same.
    private static func promiseReturn(
        of event: Event, at timestamp: WallTime, _ routing: RoutingTable,
        _ settings: EventSettings
    ) throws {
        var draft = EventDraft(event, app: routing.name(of: event.app))
        draft.shard =
            event.shard
            ?? EventShard(
                tokens: TokenShard(index: 1, count: 2), topic: "t", partition: 0, offset: 7,
                notBefore: nil, writtenAt: RecordWorld.now)
        let key = Array(event.subject)
        let value = EventEncoder.value(draft)
        var decoder = try EventDecoder(bindings: bindings, routing: routing, settings: settings)
        try lend(ExactBytes(key), ExactBytes(value)) { key, value in
            let record = EventRecord(
                binding: shardBinding, key: key, value: value, timestamp: timestamp)
            let decoded: Event?
            do throws(UnreadableRecord) {
                decoded = try decoder.decode(record, now: RecordWorld.now) { _ in nil }
            } catch { throw BrokenPromise(description: "its shard: \(error.message)") }
            guard let read = decoded else {
                throw BrokenPromise(description: "its shard is left out")
            }
            try promise(
                read.scope == event.scope && read.subject.elementsEqual(event.subject),
                "a shard of another subject")
            try promise(
                read.app == event.app && read.environment == event.environment
                    && read.kinds == event.kinds && read.classes == event.classes
                    && read.time == event.time && read.expiresAt == event.expiresAt
                    && read.priority == event.priority && read.collapseID == event.collapseID
                    && read.expiration == event.expiration && read.payload == event.payload
                    && read.shard == draft.shard,
                "a shard says otherwise than its event")
        }
    }
}

/// HTTP/2 forbids a header value more than that, and APNs a longer one.
func promiseHeaderValue(_ text: String) throws {
    let bytes = Array(text.utf8)
    try promise(
        (1...RecordLimits.collapseIDBytesMax).contains(bytes.count)
            && bytes.allSatisfy { (0x20...0x7E).contains($0) } && bytes.first != 0x20
            && bytes.last != 0x20,
        "no value for a header")
}
