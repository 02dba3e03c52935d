// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// The function that libFuzzer, which has `main`, calls with each generated input.
/// `LAMPLIGHTER_FUZZ_TARGET` names the target.
///
/// SAFETY: libFuzzer lends `count` bytes for the length of the call.
@c(LLVMFuzzerTestOneInput)
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try chosenTarget.run(UnsafeRawBufferPointer(start: bytes, count: count))
    } catch {
        fatalError("\(chosenTarget): \(error)")
    }
    return 0
}

private let chosenTarget: FuzzTarget = {
    let name = getenv("LAMPLIGHTER_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
        let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: " ")
        print("LAMPLIGHTER_FUZZ_TARGET must be one of: \(names)")
        exit(2)
    }
    return target
}()
