// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Worker
@testable internal import lamplighter

@Suite struct `The URL of a worker` {
    @Test(arguments: [
        ("http://worker-1:9465", "http://worker-1:9465"), ("worker-1:9465", "http://worker-1:9465"),
        ("https://worker-1/", "https://worker-1"), ("[::1]:9465", "http://[::1]:9465"),
        ("http://[::1]", "http://[::1]"), ("127.0.0.1:65535", "http://127.0.0.1:65535"),
    ])
    func `a URL may be written without its scheme`(written: String, text: String) throws {
        #expect(try WorkerURL(written).text == text)
    }

    @Test(arguments: [
        ("39017", "'39017' is a port without a host: write 127.0.0.1:39017"),
        ("localhost:99999", "'localhost:99999': a port is a number from 1 to 65535"),
        ("http://localhost:0/", "'http://localhost:0/': a port is a number from 1 to 65535"),
        ("localhost:web", "'localhost:web': a port is a number from 1 to 65535"),
        ("[::1]:70000", "'[::1]:70000': a port is a number from 1 to 65535"),
        ("ftp://worker", "'ftp://worker' is not the URL of a worker, such as http://worker-1:9465"),
        ("", "'' is not the URL of a worker, such as http://worker-1:9465"),
        ("http://w?a", "'http://w?a' is not the URL of a worker, such as http://worker-1:9465"),
    ])
    func `what is no URL is told with what to write`(written: String, message: String) {
        #expect(throws: WorkerURL.Wrong(message: message)) { try WorkerURL(written) }
    }

    @Test func `a connection that is closed at once points at the places of an address`() throws {
        let text = try WorkerURL("worker-1:9465").lost("Empty reply from server")
        #expect(
            text.hasPrefix(
                "http://worker-1:9465 accepted the connection and closed it at once, or before its "
                    + "answer was whole (Empty reply from server): a worker does so while 16 "
                    + "connections from this address are open; end other clients"))
    }

    @Test func `TLS to a port that has none names the plain URL`() throws {
        let text = try WorkerURL("https://worker-1:9465").withoutTLS("wrong version number")
        #expect(
            text == "https://worker-1:9465 answers without TLS (wrong version number): a worker's "
                + "admin.port speaks plain HTTP; write http://worker-1:9465, or the URL of a "
                + "proxy in front of it that has TLS")
    }
}
