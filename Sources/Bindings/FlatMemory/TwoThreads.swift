// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc

/// Computes two things at the same time. Neither may touch what the other changes.
package enum TwoThreads {
    private final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }

    /// Returns when both have ended. Where there is no further thread they run one after the other.
    package static func run(_ first: () -> Void, _ second: () -> Void) {
        withoutActuallyEscaping(second) { second in
            // SAFETY: the thread is joined before this returns, so nothing outlives the caller, and the
            // caller sees all that it has written.
            let body = Unmanaged.passRetained(Body(second))
            var thread = pthread_t()
            let code = pthread_create(
                &thread, nil,
                { argument in
                    Unmanaged<Body>.fromOpaque(argument!).takeRetainedValue().run()
                    return nil
                }, body.toOpaque())
            guard code == 0 else {
                body.release()
                first()
                return second()
            }
            first()
            pthread_join(thread, nil)
        }
    }
}
