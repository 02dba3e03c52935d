// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The addresses that the simulator has written to its address file.
package struct SimulatorAddresses: Equatable, Sendable {
    package var host = ""
    package var port: UInt16 = 0
    /// The port of the control socket on the loopback interface.
    package var controlPort: UInt16 = 0

    package init() {}

    package init(_ text: String) {
        guard text.hasSuffix("\n") else { return }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let colon = words[1].lastIndex(of: ":"),
                let port = UInt16(words[1][words[1].index(after: colon)...])
            else { continue }
            switch words[0] {
            case "production":
                host = String(words[1][..<colon])
                self.port = port
            case "control": controlPort = port
            default: break
            }
        }
    }

    package var isComplete: Bool { port != 0 && controlPort != 0 }
}
