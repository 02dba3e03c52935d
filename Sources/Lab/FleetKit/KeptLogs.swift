// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Foundation
internal import Glibc
internal import Synchronization

/// What the programs of a test have said, in the folder that `LAMPLIGHTER_TEST_LOGS` names:
/// `scripts/test.py` shows it with the failure of the test, when the test's own folder is gone.
package enum KeptLogs {
    private static let folder = ProcessInfo.processInfo.environment["LAMPLIGHTER_TEST_LOGS"]
    private static let number = Atomic<Int>(0)

    /// Gives a file a second name in the folder, which is removed with all that is in it.
    package static func keep(_ path: String, of program: String) {
        guard let kept = place(of: program) else { return }
        link(path, kept)
    }

    /// A file for what a program says that its test does not read; a file that forgets it where no logs are
    /// kept.
    package static func output(of program: String) -> FileHandle {
        guard let kept = place(of: program) else { return .nullDevice }
        let descriptor = open(kept, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return .nullDevice }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    private static func place(of program: String) -> String? {
        folder.map {
            // A demo keeps its programs' logs in the folder of the test that runs it, as the next does.
            "\($0)/\(getpid())-\(number.add(1, ordering: .relaxed).newValue)-\(program).log"
        }
    }
}
