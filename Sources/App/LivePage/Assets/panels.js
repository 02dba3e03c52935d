// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// What each panel shows of a status. Any member of the status may be missing.

import { age, bytes, count, duration, isKnown, moment, rate, seconds, time } from "./format.js";
import { fillCards, fillFigures, fillTable, setText } from "./tables.js";

const byId = (id) => document.getElementById(id);

/** Shows everything but the charts. `elapsed` is the time since `before`, the previous status. */
export function showPanels(status, before, elapsed) {
    showLatencies(status.latency ?? {});
    showOutcomes(status.pushes ?? [], before?.pushes ?? [], elapsed);
    showPools(status.pools ?? []);
    showBreakers(status);
    showWaiting(status.waiting ?? {}, status.pools ?? []);
    showLag(status.partitions ?? [], status.unavailablePartitions);
    showIndex(status.index ?? {}, status.phase);
    showUnmatched(status.unmatched ?? [], status.passedOver ?? []);
    showDemand(status.demand ?? {});
    showSetAside(status.setAside ?? []);
    showRestrictions(status.restrictions);
}

/** The push type with most pushes over the samples, which the chart shows. */
export function busiestType(samples) {
    const counts = new Map();
    for (const { type, count: pushes } of samples.flatMap(({ latencies }) => latencies)) {
        counts.set(type, (counts.get(type) ?? 0) + (pushes ?? 0));
    }
    return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0];
}

function showLatencies({ eventToAccepted = [], roundTrip }) {
    const row = (name, { p50Seconds, p99Seconds }) => [name, duration(p50Seconds), duration(p99Seconds)];
    const rows = eventToAccepted.map((latency) => row(latency.type, latency));
    if (roundTrip) rows.push(row("APNs round trip", roundTrip));
    fillTable(byId("latencies"), rows);
}

function showOutcomes(pushes, before, elapsed) {
    const key = ({ app, type, outcome, reason }) => [app, type, outcome, reason].join("\n");
    const earlier = new Map(before.map((push) => [key(push), push.count]));
    const apps = [...new Set(pushes.map(({ app }) => app))].sort();
    const most = Math.max(1, ...pushes.map((push) => push.count));
    const rows = [];
    for (const app of apps) {
        if (apps.length > 1) rows.push([app]);
        const own = pushes.filter((push) => push.app === app && push.count > 0);
        for (const push of own.toSorted((one, other) => other.count - one.count)) {
            const { type, outcome, reason, count: total } = push;
            const recent = elapsed ? (total - (earlier.get(key(push)) ?? 0)) / elapsed : undefined;
            const state = outcome === "accepted" ? "good" : outcome === "rejected" ? "error" : "warning";
            const row = [
                { text: type, mark: true, state },
                reason ? `${outcome} · ${reason}` : outcome,
                rate(recent === undefined ? undefined : Math.max(0, Math.round(recent * 10) / 10)),
                { text: count(total), share: total / most },
            ];
            row.isPart = apps.length > 1;
            rows.push(row);
        }
    }
    fillTable(byId("outcomes"), rows);
}

/** What a pool is doing. The state of one that has pushes in flight is marked as good. */
function poolState({ state, streams, silentSeconds, nextProbeSeconds }) {
    if (state === "open") {
        return { text: state, state: streams > 0 ? "good" : undefined };
    }
    if (state === "paused") {
        const title = isKnown(nextProbeSeconds)
            ? `The next probe is in ${seconds(nextProbeSeconds)}` : "A probe is out";
        return { text: state, state: "error", title };
    }
    const title = isKnown(silentSeconds)
        ? `APNs has answered nothing for ${seconds(silentSeconds)}` : undefined;
    const isTrouble = state === "stalled" || state === "unconnected";
    return { text: state ?? "–", state: isTrouble ? "error" : undefined, title };
}

function showPools(pools) {
    fillTable(byId("pools"), pools.map((pool) => {
        const { credential, environment, service, connections, streams, streamsMax } = pool;
        return [
            [credential, environment, service].filter((word) => word).join(" · "),
            poolState(pool),
            {
                text: `${count(streams)} / ${count(streamsMax)}`,
                share: streamsMax > 0 ? streams / streamsMax : 0,
            },
            count(connections),
            age(pool.providerTokenAgeSeconds),
        ];
    }));
}

function showBreakers({ breakers, topics }) {
    const open = (breakers ?? []).map(({ name, cause, nextProbeSeconds, remedy }) => ({
        badge: "open",
        state: "error",
        title: name,
        lines: [
            cause,
            remedy,
            isKnown(nextProbeSeconds) ? `Next probe in ${seconds(nextProbeSeconds)}.` : "A probe is out.",
        ],
    }));
    const troubled = (topics ?? []).map(({ topic, trouble, remedy }) => ({
        badge: "topic", state: "warning", title: topic, lines: [trouble, remedy],
    }));
    const isQuiet = breakers ? "All are closed: APNs takes what is sent." : "–";
    fillCards(byId("breakers"), [...open, ...troubled], isQuiet);
}

function showWaiting(waiting, pools) {
    const inPools = pools.reduce((sum, pool) => sum + (pool.streams ?? 0), 0);
    fillFigures(byId("waiting"), [
        ["queued, to be sent", count(waiting.queued)],
        ["in flight, unanswered", count(waiting.inFlight ?? inPools)],
        ["resting before a retry", count(waiting.resting)],
        ["deferred, kept in Kafka", count(waiting.deferred)],
        ["events holding offsets", count(waiting.held)],
        ["unacknowledged records", count(waiting.unacknowledged)],
        ["payloads in memory", bytes(waiting.payloadBytes)],
        ["oldest push waiting", duration(waiting.oldestWaitingSeconds)],
        ["oldest offset not stored", duration(waiting.oldestUncommittedSeconds)],
    ]);
}

function showLag(partitions, unavailable) {
    const most = Math.max(1, ...partitions.map(({ lag }) => lag ?? 0));
    const topics = new Map();
    for (const partition of partitions) {
        topics.set(partition.topic, [...(topics.get(partition.topic) ?? []), partition]);
    }
    const rows = [];
    if (unavailable > 0) rows.push([{ text: "cannot be read", state: "error" }, count(unavailable)]);
    for (const [topic, own] of [...topics].sort()) {
        const known = own.filter(({ lag }) => isKnown(lag));
        const sum = known.length ? known.reduce((total, { lag }) => total + lag, 0) : undefined;
        rows.push([`${topic}, ${own.length} ${own.length === 1 ? "partition" : "partitions"}`, count(sum)]);
        // Of the topic of deferred pushes no partition has a lag.
        if (!known.length) continue;
        for (const { partition, lag } of own.toSorted((one, other) => one.partition - other.partition)) {
            const row = [`partition ${partition}`, { text: count(lag), share: (lag ?? 0) / most }];
            row.isPart = true;
            rows.push(row);
        }
    }
    fillTable(byId("lag"), rows);
}

function showIndex(index, phase) {
    const isReplaying = phase === "replaying";
    const left = isKnown(index.secondsLeft) ? `, ${seconds(index.secondsLeft)} left` : "";
    byId("replaying").toggleAttribute("data-done", !isReplaying);
    byId("replay").value = index.share ?? 0;
    setText(byId("replay-note"), isReplaying
        ? `${Math.floor((index.share ?? 0) * 100)} % read${left}`
        : `Complete: ${count(index.recordsRead)} records read.`);
    fillFigures(byId("index"), [
        ["device tokens", count(index.tokens)],
        ["subjects", count(index.subjects)],
        ["subscriptions", count(index.subscriptions)],
        ["registrations", count(index.registrations)],
        ["memory", bytes(index.bytes)],
    ]);
    fillTable(byId("tables"), (index.topics ?? []).map(({ topic, partitions, unread, ageSeconds }) => [
        { text: topic, title: `${topic}, ${count(partitions)} partitions` },
        count(unread),
        seconds(ageSeconds),
    ]));
}

function showUnmatched(unmatched, passedOver) {
    const rows = [];
    const parts = [
        ...unmatched.map((part) => ({ ...part, name: part.topic })),
        ...passedOver.map((part) => ({ ...part, name: `${part.topic}, shown by no token of theirs` })),
    ];
    for (const { name, count: events, sample } of parts.filter((part) => part.count > 0)) {
        rows.push([name, count(events), ""]);
        for (const { subject, at } of (sample ?? []).toReversed()) {
            const row = [subject, "", time(at)];
            row.isPart = true;
            rows.push(row);
        }
    }
    fillTable(byId("unmatched"), rows);
}

/** The topics and apps that have asked for most pushes in the last minutes, and then the subjects. */
function showDemand({ pushes: all, topics, apps, subjects }) {
    const amount = (pushes) => ({ text: count(pushes), share: all > 0 ? pushes / all : 0 });
    const parts = [...(topics ?? []), ...(apps ?? [])].filter(({ pushes }) => pushes > 0);
    const rows = parts.map(({ name, pushes }) => [name, "", amount(pushes)]);
    for (const { app, unit, name, audience, pushes } of subjects ?? []) {
        const row = [`${unit === "kind" ? "kind " : ""}${name} of ${app}`, count(audience), amount(pushes)];
        row.isPart = true;
        rows.push(row);
    }
    fillTable(byId("demand"), rows);
}

function showSetAside(setAside) {
    const rows = setAside.filter((part) => part.count > 0).map(({ topic, unit, reason, count: total }) => [
        topic,
        `${reason ?? ""} ${unit ?? ""}`,
        count(total),
    ]);
    fillTable(byId("set-aside"), rows);
}

function showRestrictions(restrictions) {
    const cards = (restrictions ?? []).map(({ what, action, perSecond, percent, by, reason, at, until, lift }) => ({
        badge: action,
        state: "warning",
        title: what,
        lines: [
            lift
                ? `By ${by} since ${moment(at)}, until ${until ? moment(until) : "it is resumed"}.`
                : `In the configuration since ${moment(at)}, until it is taken out of ${by}.`,
            isKnown(perSecond) ? `At most ${rate(perSecond)} of all workers together.` : "",
            isKnown(percent) ? `To ${percent} % of the tokens; another sender serves the others.` : "",
            reason,
            lift ? `To end that: ${lift}` : "",
        ],
    }));
    fillCards(byId("restrictions"), cards, restrictions ? "Nothing is paused, dropped or limited." : "–");
}
