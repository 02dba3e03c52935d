// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Simdjson

extension EventShard {
    /// The parts of one event, at most.
    package static let countMax = 4096

    init(json value: JSONValue) throws(UnreadableRecord) {
        guard let object = value.object else { throw .field("shard", "an object") }
        let fields = MemberReader(object: object)
        let count = try fields.required("of").integer("of", in: 1...Int64(Self.countMax))
        let index = try fields.required("index").integer("index", in: 0...count - 1)
        let source = try DeadLetter.Source(json: value)
        self.init(
            tokens: TokenShard(index: UInt16(index), count: UInt16(count)), topic: source.topic,
            partition: source.partition, offset: source.offset,
            notBefore: try fields.instant("notBefore"))
    }
}

/// A record of a shard: an event of ours that says all that the whole event said. Its key is the
/// subject, which need not be text.
package enum ShardEncoder {
    package static func value(_ event: Event, app: String, shard: EventShard) -> [UInt8] {
        JSONWriter.object { json in
            json.member("v", RecordLimits.version)
            json.member("time", event.time)
            json.member("app", app)
            json.member("environment", event.environment?.name)
            json.member("kinds", array: event.kinds)
            json.member("classes", array: classes(event.classes))
            json.member("expiresAt", event.expiresAt)
            json.member("priority", event.priority)
            json.member("collapseID", event.collapseID)
            json.member("apnsExpiration", event.expiration.map { String(describing: $0) })
            json.member("payload", raw: event.payload?.body)
            json.name("shard")
            json.object { json in
                json.member("index", shard.tokens.index)
                json.member("of", shard.tokens.count)
                json.member("topic", shard.topic)
                json.member("partition", shard.partition)
                json.member("offset", shard.offset)
                json.member("notBefore", shard.notBefore)
            }
        }
    }

    private static func classes(_ set: TokenClassSet) -> [String] {
        set == .all ? [] : TokenClass.allCases.filter(set.contains).map(\.name)
    }
}
