// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Asks the worker for its status once a second, and shows it.

import { Chart, linear, logarithmic, reach } from "./chart.js";
import { count, duration, rate, time } from "./format.js";
import { busiestType, showPanels } from "./panels.js";
import { fillCards, setText } from "./tables.js";
import { Wall } from "./wall.js";

const byId = (id) => document.getElementById(id);
const intervalMilliseconds = 1000;
const patienceMilliseconds = 2500;

const phases = {
    replaying: ["Reading the index", "busy"],
    running: ["Running", "good"],
    draining: ["Draining", "busy"],
    stopped: ["Stopped", "error"],
};

const throughput = new Chart(byId("throughput"), ["lit", "cool"], linear, rate);
const latency = new Chart(byId("latency"), ["cool", "high"], logarithmic, duration);
const wall = new Wall();

/** The workers to choose from. Outside the demo there is one. */
let workers = [{ name: "", status: "status" }];
let devices;
let chosen = 0;
/** Of each worker: its samples for the charts, its last status and when the last current one came. */
const memory = new Map();
/** The sentence that screen readers were told last, without what changes from second to second. */
let announced;
let token = sessionStorage.getItem("token");

const remembered = () => {
    if (!memory.has(chosen)) memory.set(chosen, { samples: [], status: undefined, at: undefined });
    return memory.get(chosen);
};

// MARK: Asking

class Refused extends Error {}

/** Asks for JSON. Resolves to the answer, and whether it is of now. */
async function ask(path) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch(path, { headers, signal: AbortSignal.timeout(patienceMilliseconds) });
    if (answer.status === 401) throw new Refused();
    // A worker that is stuck answers 503 with its status of an earlier moment, which says so.
    const isJSON = answer.headers.get("Content-Type")?.startsWith("application/json");
    if (!isJSON) throw new Error((await answer.text()).trim() || `it answers ${answer.status}`);
    return { answer: await answer.json(), isCurrent: answer.ok };
}

async function turn() {
    const asked = chosen;
    // The wall shows what the demo knows, whether the worker answers or not.
    if (devices) ask(devices).then(({ answer }) => wall.show(answer), () => {});
    try {
        const { answer: status, isCurrent } = await ask(workers[chosen].status);
        if (asked !== chosen) return;
        byId("access").hidden = true;
        byId("problems").hidden = false;
        showStatus(status, isCurrent);
    } catch (error) {
        if (asked !== chosen) return;
        if (error instanceof Refused) showAccess();
        else showSilence(error);
    }
}

// MARK: Showing

function showState(state, phase, summary) {
    const { dataset } = document.documentElement;
    if (dataset.start === "") dataset.start = "told";
    byId("state").dataset.state = state;
    setText(byId("phase"), phase);
    setText(byId("summary"), summary);
    announce(summary);
}

/** Tells screen readers a sentence when its cause is new: not that a number in it counts on, or that
 * the latest unmatched event has another subject. */
function announce(summary) {
    const cause = summary.replace(/, such as .* in \S+/, "").replace(/\d[\d,.:]*( (s|min|h|d)\b)?/g, "");
    if (cause !== announced) setText(byId("announcement"), summary);
    announced = cause;
}

function showStatus(status, isCurrent) {
    const own = remembered();
    const now = Date.now();
    const elapsed = isCurrent && now > own.at ? (now - own.at) / 1000 : undefined;
    const problems = (status.problems ?? []).map(({ severity, summary, remedy }) => ({
        badge: severity === "error" ? "Error" : "Warning",
        state: severity === "error" ? "error" : "warning",
        title: summary,
        lines: [remedy],
    }));
    const [phase, calm] = phases[status.phase] ?? [status.phase ?? "Unknown", "warning"];
    const worst = problems.find(({ state }) => state === "error") ?? problems[0];
    showState(worst?.state ?? calm, phase, status.summary ?? `${phase}.`);
    fillCards(byId("problems"), problems, "No problems.");
    document.title = `${problems.length ? `(${problems.length}) ` : ""}Lamplighter ${status.worker?.id ?? ""}`;
    delete document.documentElement.dataset.quiet;
    showWorker(status);
    showPanels(status, own.status, elapsed);
    own.status = status;
    if (isCurrent) own.at = now;
    // Figures of an earlier moment say nothing of this one.
    addSample(own, isCurrent ? status : {});
}

function showWorker({ worker = {}, at }) {
    const build = [worker.version, worker.commit && `(${worker.commit.slice(0, 12)})`];
    const parts = [worker.id, worker.group && `group ${worker.group}`, build.filter(Boolean).join(" ")];
    const up = (Date.parse(at) - Date.parse(worker.startedAt)) / 1000;
    if (up >= 0) parts.push(`up ${duration(Math.floor(up))}`);
    setText(byId("worker"), parts.filter(Boolean).join(" · "));
    setText(byId("clock"), `${time(at)} UTC`);
}

function addSample(own, { rates, latency: latencies }) {
    const latenciesByType = latencies?.eventToAccepted ?? [];
    own.samples.push({ at: Date.now(), rates: rates ?? {}, latencies: latenciesByType });
    drawCharts(own);
}

function drawCharts(own) {
    const now = Date.now();
    // A clock that was set back leaves samples of the future.
    own.samples = own.samples.filter(({ at }) => at <= now && at >= now - reach);
    const type = busiestType(own.samples);
    const flows = own.samples.map(({ at, rates }) =>
        ({ at, values: [rates.acceptedPerSecond, rates.eventsPerSecond] }));
    const times = own.samples.map(({ at, latencies }) => {
        const latency = latencies.find((each) => each.type === type);
        return { at, values: [latency?.p50Seconds, latency?.p99Seconds] };
    });
    const [accepted, events] = flows.at(-1)?.values ?? [];
    const [p50, p99] = times.at(-1)?.values ?? [];
    setText(byId("accepted-rate"), rate(accepted));
    setText(byId("event-rate"), rate(events));
    setText(byId("p50"), duration(p50));
    setText(byId("p99"), duration(p99));
    setText(byId("latency-type"), type ? ` of ${type}` : "");
    throughput.draw(flows, now);
    latency.draw(times, now);
}

/** Says in the sentence's place that there is no answer; the figures stay as they were. */
function showSilence(error) {
    const own = remembered();
    const isUnreachable = error.name === "TimeoutError" || error instanceof TypeError;
    const cause = isUnreachable ? "The worker does not answer." : `The worker gives no status: ${error.message}.`;
    const since = own.status ? ` What is shown is from ${time(own.status.at)} UTC.` : "";
    showState("error", "No answer", `${cause}${since}`);
    fillCards(byId("problems"), [], "If it has ended, the last line of its log says why.");
    document.documentElement.dataset.quiet = "";
    document.title = "(!) Lamplighter does not answer";
    addSample(own, {});
}

function showAccess() {
    showState("warning", "Locked", token ? "The listener does not take this token." : "The listener asks for its token.");
    token = null;
    sessionStorage.removeItem("token");
    byId("problems").hidden = true;
    if (byId("access").hidden) {
        byId("access").hidden = false;
        byId("token").focus();
    }
}

// MARK: Choosing

byId("access").addEventListener("submit", (event) => {
    event.preventDefault();
    token = byId("token").value.trim();
    byId("token").value = "";
    sessionStorage.setItem("token", token);
    start();
});

function offer(names) {
    const group = byId("workers");
    names.forEach((name, index) => {
        const label = document.createElement("label");
        const choice = document.createElement("input");
        Object.assign(choice, { type: "radio", name: "worker", checked: index === chosen });
        choice.addEventListener("change", () => {
            chosen = index;
            drawCharts(remembered());
            turn();
        });
        label.append(choice, name);
        group.append(label);
    });
    group.hidden = false;
}

/** Learns from the server whether it stands for several workers, and has devices to show. */
async function learnFleet() {
    const { answer: fleet } = await ask("fleet");
    if (fleet.workers.length) {
        wall.show((await ask(fleet.devices)).answer);
        ({ workers, devices } = fleet);
        offer(workers.map(({ name }) => name));
    }
    delete document.documentElement.dataset.start;
}

let isStarted = false;

async function start() {
    if (!isStarted) {
        try {
            await learnFleet();
            isStarted = true;
        } catch (error) {
            return error instanceof Refused ? showAccess() : showSilence(error);
        }
    }
    await turn();
}

async function run() {
    await start();
    for (;;) {
        await new Promise((resume) => setTimeout(resume, intervalMilliseconds));
        // A page that nobody sees asks for nothing; nor does one that lacks the token.
        if (document.hidden || !byId("access").hidden) continue;
        await start();
    }
}

run();
