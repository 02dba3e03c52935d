// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import FoundationEssentials
import LinuxIO
import PushModel
import SchemaCodecs
import SchemaRegistry

struct DecodeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decode",
        abstract: "Shows records that were written with a schema as the JSON that a worker reads.",
        discussion: """
            Reads keys or values from standard input, each in base64 on a line, such as kcat makes \
            with a format of %s, and base64 of it. Prints a line for each: its JSON, or `error`, \
            what kind of error it is, and the reason.
            """)

    @Option(
        help: ArgumentHelp("A base URL of the schema registry; may be repeated.", valueName: "url"))
    var registry: [String]

    @Option(help: ArgumentHelp("avro, protobuf or json.", valueName: "language"))
    var language: String

    @Option(
        help: ArgumentHelp("What is wanted; may be repeated. All without it.", valueName: "pointer")
    )
    var pointer: [String] = []

    @Option(help: ArgumentHelp("Whom to authenticate as.", valueName: "name"))
    var user: String?

    @Option(help: ArgumentHelp("The file with the password.", valueName: "file"))
    var passwordFile: String?

    @Option(help: ArgumentHelp("The PEM file of trusted roots.", valueName: "file"))
    var caFile: String?

    @Option(help: "Seconds to wait for a registry that gives no answer.")
    var patience = 10.0

    func run() throws {
        guard let language = SchemaLanguage(rawValue: language.uppercased()) else {
            throw ValidationError("--language is avro, protobuf or json")
        }
        guard let projection = Projection(pointers: pointer.isEmpty ? [""] : pointer) else {
            throw ValidationError("--pointer is a JSON pointer, such as /order/id")
        }
        var settings = RegistrySettings(urls: registry)
        settings.user = user
        settings.password = try passwordFile.map {
            let text = try String(contentsOf: URL(fileURLWithPath: $0), encoding: .utf8)
            return Secret(text.hasSuffix("\n") ? String(text.dropLast()) : text)
        }
        settings.caFile = caFile
        let source = SchemaSource(settings) {}
        var decoder = RecordDecoder(projections: [projection])
        while let line = readLine() {
            print(decoded(line, as: language, source, &decoder))
        }
    }

    private func decoded(
        _ line: String, as language: SchemaLanguage, _ source: SchemaSource,
        _ decoder: inout RecordDecoder
    ) -> String {
        guard let bytes = Data(base64Encoded: line) else { return "error line it is no base64" }
        let deadline = ContinuousClock.now + .seconds(patience)
        while true {
            decoder.begin()
            let text = bytes.withUnsafeBytes { bytes -> String? in
                do throws(UndecodableRecord) {
                    switch try decoder.decode(bytes, as: language, lookup: source.lookup) {
                    case .json(let json): return String(decoding: json, as: UTF8.self)
                    case .waiting(let schema, let cause):
                        guard ContinuousClock.now >= deadline else { return nil }
                        return "error waiting schema \(schema): \(cause ?? "no answer yet")"
                    }
                } catch { return "error \(error.code.rawValue) \(error.message)" }
            }
            if let text { return text }
            NamedThread.sleep(.milliseconds(2))
        }
    }
}
