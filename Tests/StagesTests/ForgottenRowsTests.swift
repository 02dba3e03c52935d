// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import PushModel
internal import Testing

@Suite struct `The rows that were forgotten` {
    private let id = AssignmentID(ordinal: 3, epoch: 7)
    private let other = AssignmentID(ordinal: 4, epoch: 8)
    private let route = RouteID(rawValue: 1)
    private var rows = ForgottenRows()

    @Test mutating func `forgotten rows are read again from the lowest offset of their partition`()
    {
        for offset in [20, 10, 30] as [Int64] { rows.forget(id, route, offset: offset) }
        rows.forget(other, route, offset: 5)
        #expect(rows.first(of: id, route) == 10 && rows.first(of: other, route) == 5)
        #expect(rows.first(of: id, RouteID(rawValue: 2)) == nil)
        #expect(rows.count == 4)
        rows.beginReading(id, route)
        #expect(rows.isReread(id, route, at: 10) && !rows.isReread(id, route, at: 9))
        #expect(!rows.isReread(other, route, at: 10))
        rows.endReading(id, route)
        #expect(!rows.contains(id, route) && rows.count == 1)
        rows.checkInvariants()
    }

    @Test mutating func `forgotten rows that find no room again are left from there on`() {
        rows.forget(id, route, offset: 10)
        rows.beginReading(id, route)
        #expect(rows.makesRows(id, route))
        rows.forget(id, route, offset: 15)
        rows.forget(id, route, offset: 12)
        #expect(!rows.makesRows(id, route), "a later record of a key is not all of it")
        rows.endReading(id, route)
        #expect(rows.first(of: id, route) == 12 && rows.count == 2)
        rows.checkInvariants()
    }

    @Test mutating func `a reading that is given up has read nothing`() {
        rows.forget(id, route, offset: 10)
        rows.beginReading(id, route)
        rows.forget(id, route, offset: 15)
        rows.giveUpReading(id, route)
        #expect(rows.first(of: id, route) == 10 && rows.count == 1)
        rows.beginReading(id, route)
        #expect(rows.makesRows(id, route))
        rows.checkInvariants()
    }

    @Test mutating func `a partition that is given up has no forgotten rows`() {
        rows.forget(id, route, offset: 10)
        rows.forget(other, route, offset: 11)
        rows.close(id)
        #expect(!rows.contains(id, route) && rows.contains(other, route) && rows.count == 1)
        rows.checkInvariants()
    }
}
