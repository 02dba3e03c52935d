// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A row of the key table: where a value is stored, what may be written, and what it means. The
/// default is the value in a new `Owner`. Decoding, environment variables, validation, the JSON
/// schema and the reference page are all derived from these rows.
struct ConfigurationKey<Owner> {
    let name: String
    /// Makes the row without the types of its values. The owner supplies the defaults.
    let shape: (Owner) -> KeyShape
    /// Reads the value that was written, if any, into the owner.
    let read: (inout Owner, Setting?, inout SettingReader) -> Void
    /// The effective values of this row, secrets hidden.
    let show: (Owner) -> [EffectiveSetting]
    /// Copies from a second owner the values that may change while a worker runs.
    var adopt: (inout Owner, Owner) -> Void = { _, _ in }
    /// Copies all values of this row from a second owner.
    fileprivate let copy: (inout Owner, Owner) -> Void

    /// This row, marked as one whose value a reload changes in a running worker.
    var live: Self {
        var row = ConfigurationKey(
            name: name,
            shape: { owner in
                var shape = self.shape(owner)
                guard case .value(var form) = shape.form else { return shape }
                form.isLive = true
                shape.form = .value(form)
                return shape
            }, read: read, show: show, copy: copy)
        row.adopt = copy
        return row
    }
}

/// An effective value, as `Configuration.description` prints it.
struct EffectiveSetting {
    var path: [String]
    var text: String
    /// The value itself, if the text hides it.
    var hidden: Secret?

    func within(_ name: String) -> EffectiveSetting {
        EffectiveSetting(path: [name] + path, text: text, hidden: hidden)
    }
}

// MARK: Single values

extension ConfigurationKey {
    static func value<Value>(
        _ name: String, _ path: WritableKeyPath<Owner, Value>, _ type: SettingType<Value>,
        _ summary: String
    ) -> Self {
        ConfigurationKey(
            name: name,
            shape: { owner in
                KeyShape(
                    name: name, summary: summary,
                    form: .value(type.form(default: owner[keyPath: path])))
            },
            read: { owner, setting, reader in
                guard let setting, let value = reader.value(of: setting, as: type) else { return }
                owner[keyPath: path] = value
            },
            show: { [type.effective($0[keyPath: path])] },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
    }

    /// A value that is nil unless it is written.
    static func optional<Value>(
        _ name: String, _ path: WritableKeyPath<Owner, Value?>, _ type: SettingType<Value>,
        _ summary: String
    ) -> Self {
        ConfigurationKey(
            name: name,
            shape: { _ in
                KeyShape(name: name, summary: summary, form: .value(type.form(default: nil)))
            },
            read: { owner, setting, reader in
                guard let setting, let value = reader.value(of: setting, as: type) else { return }
                owner[keyPath: path] = value
            },
            show: { owner in owner[keyPath: path].map { [type.effective($0)] } ?? [] },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
    }

    /// A value without a default.
    static func required<Value>(
        _ name: String, _ path: WritableKeyPath<Owner, Value>, _ type: SettingType<Value>,
        _ summary: String
    ) -> Self {
        ConfigurationKey(
            name: name,
            shape: { _ in
                var form = type.form(default: nil)
                form.isRequired = true
                return KeyShape(name: name, summary: summary, form: .value(form))
            },
            read: { owner, setting, reader in
                guard let setting else {
                    return reader.report(
                        nil, Complaint(wrong: "is missing", remedy: "must be \(type.notation)"))
                }
                guard let value = reader.value(of: setting, as: type) else { return }
                owner[keyPath: path] = value
            },
            show: { [type.effective($0[keyPath: path])] },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
    }
}

// MARK: Maps

extension ConfigurationKey {
    /// A map with fixed names.
    static func section<Section>(
        _ name: String, _ path: WritableKeyPath<Owner, Section>,
        _ keys: [ConfigurationKey<Section>], _ summary: String
    ) -> Self {
        var row = ConfigurationKey(
            name: name,
            shape: { owner in
                let rows = keys.map { $0.shape(owner[keyPath: path]) }
                return KeyShape(name: name, summary: summary, form: .section(rows))
            },
            read: { owner, setting, reader in
                reader.section(keys, into: &owner[keyPath: path], from: setting)
            },
            show: { owner in keys.flatMap { $0.effective(in: owner[keyPath: path]) } },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
        row.adopt = { owner, other in
            for key in keys { key.adopt(&owner[keyPath: path], other[keyPath: path]) }
        }
        return row
    }

    /// A map with names that the user chooses. If it is written, it replaces the default as a
    /// whole.
    static func map<Element>(
        _ name: String, _ path: WritableKeyPath<Owner, [String: Element]>, names: NameRule,
        of element: Element, _ keys: [ConfigurationKey<Element>], _ summary: String
    ) -> Self {
        var row = ConfigurationKey(
            name: name,
            shape: { _ in
                KeyShape(
                    name: name, summary: summary,
                    form: .map(names, .section(keys.map { $0.shape(element) })))
            },
            read: { owner, setting, reader in
                let written = reader.map(names: names, from: setting) { value, reader in
                    var element = element
                    reader.section(keys, into: &element, from: value)
                    return element
                }
                if let written { owner[keyPath: path] = written }
            },
            show: { owner in
                owner[keyPath: path].sorted { $0.key < $1.key }.flatMap { name, element in
                    keys.flatMap { $0.effective(in: element) }.map { $0.within(name) }
                }
            },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
        // Names are added and removed only by a restart.
        row.adopt = { owner, other in
            guard Set(owner[keyPath: path].keys) == Set(other[keyPath: path].keys) else { return }
            for (name, element) in other[keyPath: path] {
                for key in keys { key.adopt(&owner[keyPath: path][name]!, element) }
            }
        }
        return row
    }

    /// A map from names that the user chooses to single values.
    static func map<Value>(
        _ name: String, _ path: WritableKeyPath<Owner, [String: Value]>, names: NameRule,
        to type: SettingType<Value>, showing shown: @escaping (String, Value) -> String,
        _ summary: String
    ) -> Self {
        ConfigurationKey(
            name: name,
            shape: { _ in
                KeyShape(
                    name: name, summary: summary,
                    form: .map(names, .value(type.form(default: nil))))
            },
            read: { owner, setting, reader in
                let written = reader.map(names: names, from: setting) { value, reader in
                    reader.value(of: value, as: type)
                }
                if let written { owner[keyPath: path] = written }
            },
            show: { owner in
                owner[keyPath: path].sorted { $0.key < $1.key }.map { name, value in
                    EffectiveSetting(
                        path: [name], text: shown(name, value), hidden: type.hidden?(value))
                }
            },
            copy: { $0[keyPath: path] = $1[keyPath: path] })
    }

    fileprivate func effective(in owner: Owner) -> [EffectiveSetting] {
        show(owner).map { $0.within(name) }
    }
}

extension SettingType {
    fileprivate func effective(_ value: Value) -> EffectiveSetting {
        EffectiveSetting(path: [], text: write(value), hidden: hidden?(value))
    }

    fileprivate func form(default value: Value?) -> KeyShape.ValueForm {
        KeyShape.ValueForm(
            notation: notation, schema: schema, defaultText: value.map(write),
            defaultJSON: value.map { json?($0) ?? .string(write($0)) },
            isVariableOnly: isVariableOnly)
    }
}
