// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// The demo's wall: one lamp for each simulated device, lit when APNs accepts a push for it.

import { count } from "./format.js";
import { setText } from "./tables.js";

const isCalm = matchMedia("(prefers-reduced-motion: reduce)");

export class Wall {
    #panel = document.getElementById("wall");
    #devices = document.getElementById("devices");
    #note = document.getElementById("wall-note");
    /** When each device's last push was accepted, as of the answer before. */
    #seen = [];

    /** Shows an answer of `devices`: when the last push of each was accepted, in milliseconds. */
    show({ at, accepted, total }) {
        this.#panel.hidden = false;
        while (this.#devices.children.length < accepted.length) {
            this.#devices.append(document.createElement("i"));
        }
        let lit = 0;
        accepted.forEach((acceptedAt, index) => {
            const isNew = typeof acceptedAt === "number" && acceptedAt !== this.#seen[index];
            if (!isNew || at - acceptedAt > 2000) return this.#dim(index);
            lit += 1;
            // Answers come once a second, and each push lights up as long after its time.
            this.#light(index, Math.max(0, 1000 - (at - acceptedAt)));
        });
        this.#seen = accepted;
        setText(this.#note, `${count(accepted.length)} of ${count(total)} · a push accepted lights its device`);
        this.#devices.setAttribute("aria-label", `A wall of simulated devices, ${lit} of them lit`);
    }

    #light(index, delay) {
        const device = this.#devices.children[index];
        if (isCalm.matches) return device.classList.add("lit");
        device.animate(
            { backgroundColor: ["var(--glow)", "var(--unlit)"], boxShadow: ["0 0 8px 1px var(--glow)", "none"] },
            { duration: 1400, delay, easing: "cubic-bezier(0.2, 0, 0.6, 1)" });
    }

    #dim(index) {
        this.#devices.children[index]?.classList.remove("lit");
    }
}
