// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener

/// The description of the HTTP interface, which is served and of which docs/openapi.json is a copy.
package enum OpenAPIDocument {
    package static let bytes = Array(EmbeddedText.openapi_json.utf8)

    static var answer: HTTPAnswer {
        HTTPAnswer(contentType: "application/vnd.oai.openapi+json;version=3.1", body: bytes)
    }
}
