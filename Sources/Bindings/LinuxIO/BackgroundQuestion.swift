// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// A question that may take seconds, asked on a thread of its own, one at a time, by somebody who must
/// not wait.
package final class BackgroundQuestion<Answer: Sendable>: Sendable {
    private struct State {
        var isUnderWay = false
        var isCancelled = false
        var answer: Answer?
    }

    private let thread: String
    private let state = Mutex(State())

    /// - Parameter thread: the name of the thread that asks: at most 15 bytes.
    package init(thread: String) { self.thread = thread }

    /// Asks. Does nothing while the question before is under way, or after `cancel`.
    ///
    /// - Parameter answered: called by the thread once the answer can be taken.
    package func begin(
        _ question: @escaping @Sendable () -> Answer,
        answered: @escaping @Sendable () -> Void = {}
    ) throws(SystemError) {
        let mayBegin = state.withLock { state in
            guard !state.isUnderWay, !state.isCancelled else { return false }
            state.isUnderWay = true
            return true
        }
        guard mayBegin else { return }
        do throws(SystemError) {
            try NamedThread.detach(name: thread) { [self] in
                let answer = question()
                state.withLock { state in
                    precondition(
                        state.isUnderWay, "an answer comes while its question is under way")
                    state.isUnderWay = false
                    state.answer = answer
                }
                answered()
            }
        } catch {
            state.withLock { $0.isUnderWay = false }
            throw error
        }
    }

    package var isUnderWay: Bool { state.withLock { $0.isUnderWay } }

    /// The answer, once; nil if there is none since the last call.
    package func takeAnswer() -> Answer? {
        state.withLock { state in
            defer { state.answer = nil }
            return state.answer
        }
    }

    /// Prevents further questions; one under way ends by itself.
    package func cancel() { state.withLock { $0.isCancelled = true } }
}
