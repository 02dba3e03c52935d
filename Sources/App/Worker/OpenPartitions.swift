// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import PushModel

/// The partitions that are ours, each with the pipeline's number for this assignment of it. Looked
/// up for every record.
struct OpenPartitions {
    /// By topic, then by partition.
    private var places: [[Place?]] = []

    struct Place {
        var id: PartitionEpoch
        var track: TrackID
    }

    subscript(topic topic: Int, partition: Int32) -> Place? {
        guard topic < places.count, partition < places[topic].count else { return nil }
        return places[topic][Int(partition)]
    }

    var open: [PartitionEpoch] { places.joined().compactMap { $0?.id } }

    func track(of id: PartitionEpoch) -> TrackID? {
        guard let place = self[topic: id.topic, id.partition], place.id == id else { return nil }
        return place.track
    }

    mutating func open(_ id: PartitionEpoch, track: TrackID) {
        while places.count <= id.topic { places.append([]) }
        while places[id.topic].count <= Int(id.partition) { places[id.topic].append(nil) }
        precondition(places[id.topic][Int(id.partition)] == nil, "assigned twice")
        places[id.topic][Int(id.partition)] = Place(id: id, track: track)
    }

    /// Nil when this assignment was closed before.
    mutating func close(_ id: PartitionEpoch) -> TrackID? {
        guard let track = track(of: id) else { return nil }
        places[id.topic][Int(id.partition)] = nil
        return track
    }
}
