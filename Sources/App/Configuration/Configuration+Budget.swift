// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension PushBudgets {
    static var keys: [ConfigurationKey<Self>] {
        // An even share of the day is a minute at least, so that thinning is worth its records.
        let pushes = 0...1440
        return [
            .value(
                "controls", \.[.controls], .integer(pushes),
                "How many pushes one control should be sent a day. What is above is counted and "
                    + "shown with its subjects; `0` counts nothing. Apple states no budget for "
                    + "controls."
            ).live,
            .value(
                "widgets", \.[.widgets], .integer(pushes),
                "The same for one device's widgets. Apple lets a widget that is often looked at "
                    + "reload 40 to 70 times a day."
            ).live,
            .value(
                "background", \.[.background], .integer(pushes),
                "The same for background pushes to one device. Apple asks for no more than two or "
                    + "three an hour."
            ).live,
            .value(
                "thin", \.isThinning, .flag,
                "Whether pushes without a payload above the budget are thinned to one in each even "
                    + "share of the day, the last: of 48 a day, one in 30 minutes. Where a "
                    + "`minimumGap` above some 8 s holds, nothing is. See docs/coalescing.md."
            ).live,
        ]
    }
}
