// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import LamplighterClientCore

// Writes snapshots to the outbox in the folder of the first argument until it is killed: those of one
// handler of the second argument's name, and now and then a complete set. Prints the sequence of each
// once it is written, in the order of writing.
let arguments = CommandLine.arguments
let outbox = Outbox(folder: URL(fileURLWithPath: arguments[1], isDirectory: true))
var address = try Address(
    environment: .development, app: "com.example.Garage", installation: "6F1C",
    tokenClass: .controls,
    handler: arguments[2])
for number in 0... {
    let shown = Shown(kind: "com.example.door", subjects: ["door-\(number)"])
    let target = Target(token: Data(repeating: UInt8(number & 255), count: 32), shows: [shown])
    let snapshot: Snapshot?
    if number % 7 == 6 {
        var complete = address
        complete.handler = nil
        snapshot = try outbox.put(complete, .controls([arguments[2]: [target]]))
    } else {
        snapshot = try outbox.put(address, .targets([target]))
    }
    FileHandle.standardOutput.write(Data("\(snapshot!.sequence)\n".utf8))
}
