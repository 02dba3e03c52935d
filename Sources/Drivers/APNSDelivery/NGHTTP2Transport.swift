// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO

/// The fast transport: nghttp2 and OpenSSL. Direct connections only; behind a proxy libcurl takes
/// its place.
package struct NGHTTP2Transport: PushTransport {
    package let duty: DeliveryDuty

    package init(_ duty: DeliveryDuty) { self.duty = duty }

    package func deliver(at desk: consuming DeliveryDesk) {
        // OpenSSL writes with write(2): a peer that is gone must be an error, not a signal.
        BrokenPipe.ignoreSignal()
        var loop = DeliveryLoop(desk: desk)
        loop.run()
    }
}
