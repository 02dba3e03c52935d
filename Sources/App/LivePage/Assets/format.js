// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Numbers as text. A figure that is not known is a dash.

const unknown = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const precise = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const large = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** Whether a member of an answer holds a number; members may be missing or null. */
export const isKnown = (value) => typeof value === "number" && Number.isFinite(value);

/** A count, such as 12,345 or, from a million on, 1.234 M. */
export function count(value) {
    if (!isKnown(value)) return unknown;
    if (Math.abs(value) >= 1e9) return `${large.format(value / 1e9)} G`;
    if (Math.abs(value) >= 1e6) return `${large.format(value / 1e6)} M`;
    return whole.format(value);
}

/** How often something happens in a second. */
export function rate(value) {
    if (!isKnown(value)) return unknown;
    return `${value > 0 && value < 10 ? precise.format(value) : count(value)}/s`;
}

/** A duration, such as 1.2 ms, 21 ms, 4 s, 3 min 20 s or 5 h 12 min. */
export function duration(seconds) {
    if (!isKnown(seconds)) return unknown;
    if (seconds < 0.0005) return `${precise.format(seconds * 1e6)} µs`;
    if (seconds < 0.9995) return `${precise.format(seconds * 1e3)} ms`;
    if (seconds < 10) return `${(Math.round(seconds * 10) / 10).toString()} s`;
    if (seconds < 100) return `${Math.round(seconds)} s`;
    const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = units.findIndex(([, size]) => seconds >= size);
    const [[large, size], small] = [units[first], units[first + 1]];
    const rest = Math.floor((seconds % size) / small[1]);
    return `${Math.floor(seconds / size)} ${large}${rest ? ` ${rest} ${small[0]}` : ""}`;
}

/** Whole seconds, for what counts down or grows. */
export const seconds = (value) => duration(isKnown(value) && value >= 1 ? Math.floor(value) : value);

/** A duration in its largest unit, such as 22 min. */
export const age = (value) => seconds(value).split(" ").slice(0, 2).join(" ");

/** A number of bytes, such as 12.3 MiB. */
export function bytes(value) {
    if (!isKnown(value)) return unknown;
    const step = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
    return `${precise.format(value / 1024 ** step)} ${["B", "KiB", "MiB", "GiB", "TiB"][step]}`;
}

/** The time of day in UTC of an RFC 3339 date. */
export function time(date) {
    const at = new Date(date);
    return Number.isNaN(at.getTime()) ? unknown : at.toISOString().slice(11, 19);
}

/** The minute in UTC of an RFC 3339 date, such as 2026-11-21 06:12. */
export function moment(date) {
    const at = new Date(date);
    return Number.isNaN(at.getTime()) ? unknown : at.toISOString().slice(0, 16).replace("T", " ");
}
