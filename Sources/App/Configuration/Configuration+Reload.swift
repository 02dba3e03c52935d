// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// One key that a reloaded configuration has changed.
package struct ConfigurationChange: Sendable, Equatable {
    /// The path of the key, such as `delivery.attemptsMax`.
    package var key: String
    /// The old value: `none` for a key that was not set, a placeholder for a secret.
    package var from: String
    package var to: String
    /// Whether the new value is already in effect; otherwise it waits for a restart.
    package var isApplied: Bool
}

extension ConfigurationChange: CustomStringConvertible {
    package var description: String {
        "\(key): \(Self.shortened(from)) -> \(Self.shortened(to))"
    }

    /// Shortens a value and replaces its control characters: a list may have a thousand entries,
    /// and a name may contain anything.
    private static func shortened(_ text: String) -> String {
        let shown = String(text.prefix(200)).printable
        return text.count <= 200 ? shown : shown + "…"
    }
}

extension Configuration {
    /// This configuration with the values of another that a running worker can adopt. The mixture
    /// may be invalid although both are valid; then nothing is adopted and every change waits for a
    /// restart.
    package func adopting(_ other: Configuration) -> Configuration {
        var adopted = self
        for key in Self.keys { key.adopt(&adopted, other) }
        var reader = SettingReader(knownPaths: [])
        adopted.check(&reader, for: .worker)
        return reader.problems.isEmpty ? adopted : self
    }

    /// The keys that differ, in the order of the key table.
    ///
    /// - Parameter adopted: the configuration in effect from now on.
    package func changes(
        to other: Configuration, adopted: Configuration
    ) -> [ConfigurationChange] {
        let (old, new, now) = (effective, other.effective, adopted.effective)
        let inForce = Self.byPath(now)
        let before = Self.byPath(old), after = Self.byPath(new)
        let gone = old.filter { after[$0.path] == nil }
        return (new + gone).compactMap { setting in
            let from = before[setting.path], to = after[setting.path]
            guard !Self.isSame(from, to) else { return nil }
            return ConfigurationChange(
                key: SettingReader.shown(setting.path), from: from?.text ?? "none",
                to: to?.text ?? "none", isApplied: Self.isSame(inForce[setting.path], to))
        }
    }

    /// The effective values, in the order of the key table.
    var effective: [EffectiveSetting] {
        Self.keys.flatMap { key in key.show(self).map { $0.within(key.name) } }
    }

    private static func byPath(_ settings: [EffectiveSetting]) -> [[String]: EffectiveSetting] {
        Dictionary(uniqueKeysWithValues: settings.map { ($0.path, $0) })
    }

    private static func isSame(_ one: EffectiveSetting?, _ other: EffectiveSetting?) -> Bool {
        one?.text == other?.text && one?.hidden == other?.hidden
    }
}
