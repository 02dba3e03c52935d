// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A key without its types: what environment variables, suggestions, the schema and the reference
/// page need to know of it.
struct KeyShape {
    var name: String
    var summary: String
    var form: Form

    indirect enum Form {
        case value(ValueForm)
        case section([KeyShape])
        case map(NameRule, Form)
    }

    struct ValueForm {
        var notation: String
        var schema: JSONText
        /// As written in the file; nil when there is none.
        var defaultText: String?
        /// The default in the schema.
        var defaultJSON: JSONText?
        var isRequired = false
        /// Whether a reload changes it in a running worker.
        var isLive = false
        var isVariableOnly: Bool
    }

    /// Every single value beneath, with the path to it; user-chosen names stand as `<topic>`.
    var values: [(path: [String], summary: String, form: ValueForm)] {
        Self.values(of: form, summary: summary).map { ([name] + $0.path, $0.summary, $0.form) }
    }

    private static func values(
        of form: Form, summary: String
    ) -> [(path: [String], summary: String, form: ValueForm)] {
        switch form {
        case .value(let form): [([], summary, form)]
        case .section(let rows): rows.flatMap(\.values)
        case .map(let names, let element):
            values(of: element, summary: summary).map {
                ([names.placeholder] + $0.path, $0.summary, $0.form)
            }
        }
    }
}

/// What the names in a map with user-chosen names may be.
struct NameRule {
    /// As it stands in the reference, such as `<topic>`.
    var placeholder: String
    var notation: String
    /// A regular expression for the whole name.
    var pattern: String
    /// What `_` in an environment variable stands for in a name that the file does not have.
    var variableSeparator: Character
    /// At most so many names.
    var countMax: Int

    func allows(_ name: String) -> Bool {
        // As in `SettingType.text`: the patterns are constants, each used by a test.
        name.wholeMatch(of: try! Regex(pattern)) != nil
    }
}
