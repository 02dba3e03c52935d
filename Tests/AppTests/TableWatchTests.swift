// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import Testing

@testable internal import Worker

@Suite struct `A watch over tables` {
    private let lines = LogLines()
    private var logger: Logger { Logger(label: "test") { [lines] _ in LineHandler(lines: lines) } }

    private func lag(_ number: Int32, seconds: Int = 31) -> TableLag {
        TableLag(
            partition: TablePartition(topic: 1, number: number), age: .seconds(seconds),
            unread: 5, cause: number == 3 ? "no leader" : nil)
    }

    private func look(_ watch: inout TableWatch, _ lags: [TableLag]) -> [String] {
        watch.report(lags, topics: ["registrations", "suppressions"], logger: logger)
        return lines.taken()
    }

    @Test func `the table watch names a partition once when it grows old and once when it is read`()
    {
        var watch = TableWatch()
        #expect(look(&watch, []).isEmpty)
        let told = look(&watch, [lag(3), lag(4, seconds: 50)])
        #expect(told.count == 1)
        #expect(
            told.first?.hasPrefix(
                "warning registrations, suppressions or restrictions are out of date") == true)
        #expect(
            told.first?.hasSuffix(
                "[behindSeconds=50, cause=no leader, partitions=suppressions/3, suppressions/4, unread=10]"
            )
                == true)
        #expect(look(&watch, [lag(3), lag(4)]).isEmpty)
        #expect(look(&watch, [lag(3), lag(4), lag(9)]).count == 1)
        let again = look(&watch, [lag(9)])
        #expect(again.count == 1)
        #expect(again.first?.hasSuffix("[partitions=suppressions/3, suppressions/4]") == true)
        #expect(look(&watch, (20..<40).map { lag($0) }).joined().contains(" and 10 more"))
    }
}
