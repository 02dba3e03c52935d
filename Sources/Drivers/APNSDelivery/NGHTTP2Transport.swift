// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import LinuxIO

/// The fast transport, on nghttp2 and OpenSSL. It connects directly; `CurlTransport` is the one for
/// proxies.
package struct NGHTTP2Transport: PushTransport {
    package let duty: DeliveryDuty
    /// Looks up the endpoint's addresses before each connect.
    package var lookUp = Resolver.system

    package init(_ duty: DeliveryDuty) { self.duty = duty }

    package func deliver(at core: consuming DeliveryCore) {
        // OpenSSL writes with write(2): a vanished peer must raise an error, not a signal.
        BrokenPipe.ignoreSignal()
        var loop = NGHTTP2DeliveryLoop(core: core, lookUp: lookUp)
        loop.run()
    }
}
