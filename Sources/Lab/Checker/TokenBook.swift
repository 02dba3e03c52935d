// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Numbers every token that was ever registered. The same bytes in another environment or under
/// another APNs topic are another token.
struct TokenBook {
    private var numbers: [Fingerprint: UInt32] = [:]
    private var bytes: [UInt8] = []
    private var starts: [Int] = [0]

    var count: Int { numbers.count }

    func number(_ address: Fingerprint) -> UInt32? { numbers[address] }

    /// The number of a token, which is new if it was not seen before; nil if it is invalid.
    ///
    /// - Parameter token: hexadecimal.
    mutating func add(environment: String, topic: String, token: String) -> UInt32? {
        let address = Fingerprint(environment: environment, topic: topic, token: token)
        if let known = numbers[address] { return known }
        guard let decoded = Self.decode(token) else { return nil }
        let number = UInt32(count)
        numbers[address] = number
        bytes += decoded
        starts.append(bytes.count)
        return number
    }

    func tokenID(_ number: UInt32) -> TokenID {
        TokenID(Array(bytes[starts[Int(number)]..<starts[Int(number) + 1]]))
    }

    private static func decode(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard !digits.isEmpty, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).reduce(into: [UInt8]?([])) {
            guard let high = digits[$1], let low = digits[$1 + 1] else { return $0 = nil }
            $0?.append(UInt8(high << 4 | low))
        }
    }
}
