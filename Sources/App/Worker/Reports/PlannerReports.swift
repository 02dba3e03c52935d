// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// What the planner tells the log from time to time, each with what it has told already.
struct PlannerReports {
    var watch = ConsumerWatch()
    var flow = FlowReport()
    var recordTimes = RecordTimeWatch()
    var tables = TableWatch()
    var unmatched = UnmatchedReport()
    var setAside = SetAsideReport()
    var misplaced = MisplacedReport()
    var held = HeldReport()
    var clock = ClockReport()
    var restrictions = SeenRestrictions()
}
