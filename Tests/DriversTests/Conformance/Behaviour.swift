// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

/// Something that APNs or the network may do, and how each transport must react.
struct Behaviour: Sendable, CustomTestStringConvertible {
    /// The row's name on the page.
    let name: String
    let nghttp2: Promise
    let libcurl: Promise
    /// Runs the behaviour; the trial's report is then compared with the promise.
    let run: @Sendable (TransportKind) throws -> Trial

    init(
        _ name: String, nghttp2: Promise, libcurl: Promise,
        _ run: @escaping @Sendable (TransportKind) throws -> Trial
    ) {
        self.name = name
        self.nghttp2 = nghttp2
        self.libcurl = libcurl
        self.run = run
    }

    /// Both transports promise the same.
    init(
        _ name: String, both promise: Promise,
        _ run: @escaping @Sendable (TransportKind) throws -> Trial
    ) {
        self.init(name, nghttp2: promise, libcurl: promise, run)
    }

    func promise(of kind: TransportKind) -> Promise {
        switch kind {
        case .nghttp2: nghttp2
        case .libcurl: libcurl
        }
    }

    var testDescription: String { name }

    /// In the order of the page.
    static let chapters: [(title: String, behaviours: [Behaviour])] = [
        ("Streams", streams),
        ("GOAWAY", goAways),
        ("Connections", connections),
        ("Answers", answers),
        ("Hostile servers", hostility),
        ("TLS", security),
        ("Provider tokens", providerTokens),
        ("Device tokens and bodies", pushes),
        ("Windows and distance", flow),
    ]

    static let all = chapters.flatMap(\.behaviours)
}
