// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import LinuxIO

/// The fast transport: nghttp2 and OpenSSL. Direct connections only; behind a proxy libcurl takes
/// its place.
package struct NGHTTP2Transport: PushTransport {
    package let duty: DeliveryDuty
    /// Asked for the endpoint's addresses before each connect.
    package var lookUp = Resolver.system

    package init(_ duty: DeliveryDuty) { self.duty = duty }

    package func deliver(at desk: consuming DeliveryDesk) {
        // OpenSSL writes with write(2): a peer that is gone must be an error, not a signal.
        BrokenPipe.ignoreSignal()
        var loop = DeliveryLoop(desk: desk, lookUp: lookUp)
        loop.run()
    }
}
