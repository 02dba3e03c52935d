// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Testing

@testable internal import Configuration

@Suite struct `A configured file` {
    /// Every key that names a file, with a relative path.
    private static func tree(_ shapes: [KeyShape]) -> [(String, String)] {
        shapes.flatMap { shape -> [(String, String)] in
            switch shape.form {
            case .value(let form):
                form.notation == "the path of a file" ? [(shape.name, "secret/file")] : []
            case .section(let rows): text(shape.name, tree(rows))
            case .map(_, .section(let rows)): text(shape.name, text("home", tree(rows)))
            case .map: []
            }
        }
    }

    private static func text(_ name: String, _ members: [(String, String)]) -> [(String, String)] {
        members.isEmpty
            ? [] : [(name, "{" + members.map { "\($0): \($1)" }.joined(separator: ", ") + "}")]
    }

    @Test func `is looked for from the configuration's folder, whatever key names it`() throws {
        let yaml = Self.tree(Configuration.shape).map { "\($0): \($1)" }.joined(separator: "\n")
        var reader = SettingReader(knownPaths: [])
        var configuration = Configuration()
        reader.section(Configuration.keys, into: &configuration, from: try Setting(yaml: yaml))
        configuration.resolvePaths(in: "/etc/lamplighter")
        let files = configuration.effective.filter { $0.text.contains("secret/file") }
        #expect(files.count == yaml.ranges(of: "secret/file").count)
        for file in files {
            #expect(file.text == "/etc/lamplighter/secret/file", "\(file.path)")
        }
    }
}
