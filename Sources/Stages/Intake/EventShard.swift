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
