// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import LivePage
internal import Testing

/// The page as it is served. What it shows is tested in a browser, in Tests/Surfaces.
@Suite struct `The live page` {
    private static let folder = "Sources/App/LivePage/Assets"

    @Test func `each file of the page is served, and is what is in the repository`() throws {
        let files = Repository.files(in: [Self.folder]) { _ in true }
            .map { $0.dropFirst(Self.folder.count) }
        let types = ["html": "text/html", "css": "text/css", "js": "text/javascript"]
        #expect(LivePage.paths == Set(files.map { $0 == "/page.html" ? "/" : String($0) }))
        for file in files {
            let path = file == "/page.html" ? "/" : String(file)
            let answer = try #require(LivePage.answer(HTTPRequest(path: path)))
            let text = try Repository.text(Self.folder + file)
            #expect(String(decoding: answer.body, as: UTF8.self) == text)
            let type = try #require(file.split(separator: ".").last.flatMap { types[String($0)] })
            #expect(answer.contentType == "\(type); charset=utf-8")
            #expect(answer.status == 200)
        }
    }

    @Test func `a browser is told to load the page's own files and to ask its server, no other`()
        throws
    {
        let answer = try #require(LivePage.answer(HTTPRequest(path: "/")))
        let policy = try #require(answer.headers["Content-Security-Policy"])
        let rules = policy.split(separator: "; ")
        #expect(rules.contains("default-src 'none'"))
        #expect(rules.contains("frame-ancestors 'none'"))
        #expect(rules.contains("form-action 'none'"))
        for rule in rules {
            let sources = rule.split(separator: " ").dropFirst()
            let isImages = rule.hasPrefix("img-src")
            for source in sources {
                #expect(source == "'self'" || source == "'none'" || (isImages && source == "data:"))
            }
        }
    }

    @Test func `the page names nothing outside and writes no markup from data`() throws {
        for path in Repository.files(in: [Self.folder], where: { _ in true }) {
            let text = try Repository.text(path)
            for name in [
                "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                "new Function", " style=", " onclick=",
            ] {
                #expect(!text.contains(name), "\(path) has \(name)")
            }
            let addresses = text.matches(of: /(https?:)?\/\/[a-z0-9-]+\.[a-z0-9.-]+/)
                .filter { $0.0 != "http://www.w3.org" }
            #expect(addresses.isEmpty, "\(path): \(addresses.map(\.0))")
        }
    }

    @Test func `a path of something else is none of the page's, nor is another method`() {
        for path in ["/status", "/page", "/Assets/page.js", "/page.html", ""] {
            #expect(LivePage.answer(HTTPRequest(path: path)) == nil)
        }
        #expect(LivePage.answer(HTTPRequest(method: .put, path: "/page.js"))?.status == 405)
    }
}
