// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Testing

@Suite struct `A proxy's URL` {
    @Test(arguments: [
        ("http://proxy:3128", "proxy:3128"),
        ("http://user:swordfish@proxy.example.com:80", "proxy.example.com:80"),
        ("http://u%40ser:s%3A%2F%23%25h@127.0.0.1:3128", "127.0.0.1:3128"),
        ("http://user@[::1]:3128", "[::1]:3128"),
    ])
    func `a proxy's URL is shown without its credentials`(url: String, address: String) {
        #expect(HTTPProxy(url)?.address == address)
    }

    @Test(arguments: [
        "", "proxy:3128", "http://proxy", "https://proxy:3128", "socks5://proxy:1080",
        "http://proxy:0", "http://proxy:65536", "http://user%0a:x@proxy:3128",
        "http://user:%00@proxy:3128", "http://us#er:x@proxy:3128", "http://[::::]:3128",
    ])
    func `a proxy's URL is refused where libcurl would read nothing or something else`(url: String)
    {
        #expect(HTTPProxy(url) == nil)
    }
}
