// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RegistrarRules
internal import Testing

@testable internal import Registrar

@Suite struct `The items of a batch` {
    /// The pointer of what is wrong with an item; nil if it is accepted.
    private func problem(with item: String) throws -> String? {
        let items = try BodyReader().items(
            in: Array(#"{"items":[\#(item)]}"#.utf8), .production, app: "com.example.Home",
            limits: RegistrarLimits())
        try #require(items.count == 1)
        switch items[0].result {
        case .success: return nil
        case .failure(let problem):
            #expect(problem.status == 422 && !problem.remedy.isEmpty)
            return problem.field
        }
    }

    @Test(arguments: [
        (#""klass":"widgets""#, "klass"), (#""class":"controls","handlr":"Garage""#, "handlr"),
        (#""belowSequnce":9"#, "belowSequnce"), (#""belowsequence":9"#, "belowsequence"),
        (#""Class":null"#, "Class"), (#""a/b~":1"#, "a~1b~0"),
        // These are for a PUT.
        (#""sequence":9"#, "sequence"), (#""targets":[]"#, "targets"),
        (#""class":"controls","handlers":{}"#, "handlers"),
    ])
    func `a removal with a member that it does not have removes nothing`(
        members: String, name: String
    ) throws {
        let item = #"{"method":"DELETE","installation":"S1",\#(members)}"#
        #expect(try problem(with: item) == "/items/0/\(name)")
    }

    @Test(arguments: [("belowSequence", "9"), ("handlr", #""Garage""#), ("target", "[]")])
    func `a write with a member that it does not have writes nothing`(
        name: String, value: String
    ) throws {
        let item = """
            {"method":"PUT","installation":"S1","class":"controls","targets":[],"\(name)":\(value)}
            """
        #expect(try problem(with: item) == "/items/0/\(name)")
    }

    @Test(arguments: [
        #"{"method":"DELETE","installation":"S1"}"#,
        """
        {"v":1,"method":"DELETE","environment":"production","app":"com.example.Home",
        "installation":"S1","class":"controls","handler":"Garage","belowSequence":9,
        "sequence":null,"targets":null,"handlers":null}
        """,
        """
        {"v":1,"method":"PUT","environment":"production","app":"com.example.Home",
        "installation":"S1","class":"controls","handler":"Garage","sequence":9,"targets":[],
        "belowSequence":null}
        """,
        #"{"method":"PUT","installation":"S1","class":"controls","handlers":{"A":[]}}"#,
    ])
    func `every member that the description has is accepted`(item: String) throws {
        #expect(try problem(with: item) == nil)
    }
}
