// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Bodies that contain the number of their push, for servers that read no headers.
enum PushBody {
    private static let start = Array(#"{"aps":{"content-changed":true},"push":"#.utf8)

    /// Writes the body of a push and returns its length.
    /// - Parameter bytes: how long it becomes; 0 for as short as it can be.
    static func write(_ push: Int, bytes: Int, to room: UnsafeMutablePointer<UInt8>) -> Int {
        var body = start + Array(String(push).utf8)
        let padding = Array(#","x":""#.utf8)
        if bytes > body.count + padding.count + 2 {
            let rest = bytes - body.count - padding.count - 2
            body += padding + [UInt8](repeating: UInt8(ascii: "y"), count: rest)
            body += [UInt8(ascii: "\"")]
        }
        body.append(UInt8(ascii: "}"))
        room.update(from: body, count: body.count)
        return body.count
    }

    /// The push that a body names; nil for a body of another form.
    static func number(in body: [UInt8]) -> Int? {
        guard body.starts(with: start) else { return nil }
        let digits = body[start.count...].prefix { (0x30...0x39).contains($0) }
        return digits.isEmpty ? nil : digits.reduce(0) { 10 * $0 + Int($1 - 0x30) }
    }
}
