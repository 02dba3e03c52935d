// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A line of the events log: an event that Kafka has acknowledged, for the checker.
package enum EventLine {
    /// The line, with its line end. The checker has a fast path for this order of the members.
    /// - Parameters:
    ///   - t: nanoseconds since 1970, taken before the event was handed to Kafka, so that no worker
    ///     can have read it earlier.
    ///   - more: further members, each after a comma.
    package static func text(
        t: Int64, topic: String, partition: Int32, offset: Int64, app: String, subject: String,
        more: String = ""
    ) -> String {
        #"{"t":\#(t),"topic":"\#(topic)","partition":\#(partition),"offset":\#(offset),"#
            + #""app":"\#(app)","subject":"\#(subject)"\#(more)}"# + "\n"
    }
}
