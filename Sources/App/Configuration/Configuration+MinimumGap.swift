// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension Configuration {
    /// A mistyped app would have no gap, and nobody would notice.
    func checkMinimumGaps(_ reader: inout SettingReader) {
        let path = ["planning", "minimumGap", "apps"]
        let apps = Set(apns.credentials.values.flatMap(\.apps))
        guard reader.isSound(path), reader.isSound(["apns", "credentials"]), !apps.isEmpty else {
            return
        }
        for app in planning.minimumGap.apps.keys.sorted() where !apps.contains(app) {
            reader.report(
                path + [app], wrong: "names an app that no credential signs for",
                remedy: "take the app from apns.credentials")
        }
    }
}

extension MinimumGaps {
    static var keys: [ConfigurationKey<Self>] {
        [
            .value(
                "controls", \.[.controls], .duration(durations),
                "The least time between two pushes without a payload to one control, whichever worker "
                    + "sends them; what comes meanwhile is one push at its end. `0s` is none. A gap "
                    + "above some 8 s costs four records of the deferred topic for each push: see "
                    + "docs/coalescing.md. Apple states no budget for controls."
            ).live,
            .value(
                "widgets", \.[.widgets], .duration(durations),
                "The same for one device's widgets. Apple lets a widget that is often looked at "
                    + "reload 40 to 70 times a day: about once in 15 to 60 minutes."
            ).live,
            .value(
                "background", \.[.background], .duration(durations),
                "The same for background pushes to one device. Apple asks for no more than two or three an "
                    + "hour."
            ).live,
            .map(
                "apps", \.apps, names: Self.bundleIDs, of: OfApp(), OfApp.keys,
                "Of single apps, by bundle identifier, instead of the above."),
        ]
    }

    private static var bundleIDs: NameRule {
        NameRule(
            placeholder: "<app>", notation: "a bundle identifier",
            pattern: "[A-Za-z0-9.\\-]{1,128}", variableSeparator: ".", countMax: 1000)
    }

    fileprivate static var durations: ClosedRange<Duration> { .zero ... .seconds(86_400) }
}

extension MinimumGaps.OfApp {
    fileprivate static var keys: [ConfigurationKey<Self>] {
        let durations = MinimumGaps.durations
        return [
            .optional("controls", \.[.controls], .duration(durations), "Of pushes to one control.")
                .live,
            .optional("widgets", \.[.widgets], .duration(durations), "Of pushes to its widgets.")
                .live,
            .optional("background", \.[.background], .duration(durations), "Of background pushes.")
                .live,
        ]
    }
}
