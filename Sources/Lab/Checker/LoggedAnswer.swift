// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A line of the simulator's log: one answer to one push, with the members that are evidence.
struct LoggedAnswer {
    /// When the answer was decided, in nanoseconds since 1970.
    var t: Int64
    /// The fingerprint of environment, APNs topic and token: the same token bytes under another
    /// topic or environment are another token.
    var address: Fingerprint
    var apnsID: UInt64
    var status: UInt16
    var reason: UInt64

    init(_ line: Span<UInt8>) throws(LineProblem) {
        var cursor = LineCursor()
        if cursor.skip(#"{"t":"#, in: line), let t = cursor.integer(in: line),
            cursor.skip(#","conn":"#, in: line), cursor.integer(in: line) != nil,
            cursor.skip(#","env":""#, in: line), let environment = cursor.string(in: line),
            cursor.skip(#","topic":""#, in: line), let topic = cursor.string(in: line),
            cursor.skip(#","token":""#, in: line), let token = cursor.string(in: line),
            cursor.skip(#","apnsID":""#, in: line), let apnsID = cursor.string(in: line),
            cursor.skip(#","status":"#, in: line), let status = cursor.integer(in: line),
            cursor.skip(#","reason":""#, in: line), let reason = cursor.string(in: line),
            cursor.skip("}", in: line), cursor.isAtEnd(of: line),
            let status = UInt16(exactly: status)
        {
            self.t = t
            address = Fingerprint(
                environment: line.extracting(environment), topic: line.extracting(topic),
                token: line.extracting(token))
            self.apnsID = Self.short(line.extracting(apnsID))
            self.status = status
            self.reason = Self.short(line.extracting(reason))
            return
        }
        let object = try JSONMembers(line)
        t = try object.required("t")
        address = Fingerprint(
            environment: try object.required("env"), topic: try object.required("topic"),
            token: try object.required("token"))
        apnsID = Self.short(try object.required("apnsID"))
        guard let status = UInt16(exactly: try object.required("status") as Int64) else {
            throw .missing("status")
        }
        self.status = status
        reason = Self.short(object.text("reason") ?? "")
    }

    /// A hash that identifies a short text.
    static func short(_ text: String) -> UInt64 { short(Array(text.utf8).span) }

    private static func short(_ text: Span<UInt8>) -> UInt64 {
        var fingerprint = Fingerprint()
        fingerprint.add(text)
        return fingerprint.short
    }
}

extension Fingerprint {
    /// - Parameter token: hexadecimal, in lower case.
    init(environment: Span<UInt8>, topic: Span<UInt8>, token: Span<UInt8>) {
        self.init()
        add(environment)
        add(topic)
        add(token)
    }

    init(environment: String, topic: String, token: String) {
        self.init()
        add(environment)
        add(topic)
        add(token.lowercased())
    }
}
