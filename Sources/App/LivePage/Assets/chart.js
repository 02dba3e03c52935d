// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// A chart of the last three minutes, drawn as SVG. Colours and sizes are in page.css.

import { isKnown } from "./format.js";

/** How far a chart reaches back, in milliseconds. */
export const reach = 180_000;

/** A line ends where no sample follows for so long. The page asks a second after the last answer,
 * and waits up to 2.5 s for one. */
const gapMilliseconds = 4000;

/** A linear scale from 0 to the next round number above the values. */
export function linear(values) {
    const most = Math.max(1, ...values);
    const power = 10 ** Math.floor(Math.log10(most));
    const top = power * [1, 1.5, 2, 3, 4, 6, 8, 10].find((step) => step * power >= most);
    return { marks: [top / 2, top], share: (value) => value / top };
}

/** A logarithmic scale over the decades of the values, at least two. */
export function logarithmic(values) {
    const above = values.filter((value) => value > 0);
    const low = above.length ? Math.floor(Math.log10(Math.min(...above)) + 1e-9) : -3;
    const high = Math.max(low + 2, above.length ? Math.ceil(Math.log10(Math.max(...above)) - 1e-9) : 0);
    const step = Math.ceil((high - low) / 3);
    const marks = [];
    for (let power = low + step; power <= high; power += step) marks.push(10 ** power);
    const share = (value) => (Math.log10(Math.max(value, 10 ** low)) - low) / (high - low);
    return { marks, share };
}

function shape(name, attributes, parent) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
}

/** Draws series of samples by their times; the right edge is now. */
export class Chart {
    #box;
    #scale;
    #label;
    #grid;
    #series;

    /**
     * @param box the element to draw into.
     * @param series the classes of the series, of which the first has an area under its line.
     * @param scale makes a scale of values: `linear` or `logarithmic`.
     * @param label the text of a value.
     */
    constructor(box, series, scale, label) {
        this.#box = box;
        this.#scale = scale;
        this.#label = label;
        const size = { viewBox: `0 0 ${reach} 100`, preserveAspectRatio: "none", "aria-hidden": "true" };
        const svg = shape("svg", size, box);
        this.#grid = shape("g", {}, svg);
        this.#series = series.map((name, index) => ({
            area: index === 0 ? shape("path", { class: `area ${name}` }, svg) : undefined,
            line: shape("path", { class: name }, svg),
        }));
        for (const [name, text] of [["from", "3 min ago"], ["until", "now"]]) {
            const mark = document.createElement("span");
            mark.className = name;
            mark.textContent = text;
            box.append(mark);
        }
    }

    /** Draws the samples, each with its time `at` and `values`: a number for each series, or none. */
    draw(samples, now) {
        const { marks, share } = this.#scale(samples.flatMap(({ values }) => values).filter(isKnown));
        const y = (value) => 100 - 100 * share(value);
        this.#mark(marks, y);
        this.#series.forEach(({ line, area }, index) => {
            const runs = [[]];
            let last;
            for (const { at, values } of samples) {
                const isApart = at - last > gapMilliseconds;
                last = at;
                if (isApart || !isKnown(values[index])) runs.push([]);
                if (!isKnown(values[index])) continue;
                runs.at(-1).push(`${reach - (now - at)} ${y(values[index]).toFixed(2)}`);
            }
            const drawn = runs.filter((run) => run.length);
            line.setAttribute("d", drawn.map((run) => `M${run.join("L")}h0`).join(""));
            const closed = (run) => `M${run[0].split(" ")[0]} 100L${run.join("L")}V100Z`;
            area?.setAttribute("d", drawn.map(closed).join(""));
        });
    }

    /** Draws a line and a label for each mark of the scale. */
    #mark(marks, y) {
        const wanted = marks.map((mark) => this.#label(mark)).join();
        if (this.#box.dataset.marks === wanted) return;
        this.#box.dataset.marks = wanted;
        this.#grid.replaceChildren();
        for (const label of this.#box.querySelectorAll("span.mark")) label.remove();
        for (const mark of marks) {
            shape("line", { x1: 0, x2: reach, y1: y(mark), y2: y(mark) }, this.#grid);
            const label = document.createElement("span");
            label.className = "mark";
            label.textContent = this.#label(mark);
            label.style.top = `calc(${y(mark)}% + 3px)`;
            this.#box.append(label);
        }
    }
}
