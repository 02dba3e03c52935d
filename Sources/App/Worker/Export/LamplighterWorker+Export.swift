// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
internal import Logging
internal import OTLPExporter

extension LamplighterWorker {
    /// Exports metrics and spans until the task is cancelled, where a collector is configured.
    func export() async {
        guard
            let settings = configuration.collectorSettings(
                worker: source.worker ?? "", version: build.version)
        else { return }
        let export = TelemetryExport(
            collector: Collector(settings), source: status, spans: control.spans,
            counters: exports, logger: logger)
        await export.run()
    }
}
