// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

// Fills tables and lists. Data is only ever set as text, and elements stay where they are.

/** Sets the text of an element if it has changed, so that selections and screen readers rest. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function setOption(element, name, value) {
    if (value === undefined) delete element.dataset[name];
    else if (element.dataset[name] !== value) element.dataset[name] = value;
}

/**
 * Fills a table's body.
 * @param rows of cells, each a text or an object with `text`, and any of: `share`, from 0 to 1, drawn
 * as a bar; `state`: good, warning or error; `mark`, a dot before the text; `title`. A row whose
 * `isPart` is set belongs to the one above it.
 */
export function fillTable(table, rows) {
    const [body] = table.tBodies;
    const headings = [...table.tHead.rows[0].cells];
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((cells, index) => {
        const row = body.rows[index] ?? body.insertRow();
        row.classList.toggle("part", cells.isPart === true);
        headings.forEach((heading, column) => {
            const cell = row.cells[column] ?? newCell(row, heading, column);
            const value = cells[column] ?? "";
            const { text, share, state, mark, title } = typeof value === "string" ? { text: value } : value;
            setText(cell, text);
            cell.title = title ?? (text.length > 14 ? text : "");
            setOption(cell, "state", state);
            setOption(cell, "mark", mark ? "" : undefined);
            setOption(cell, "share", share === undefined ? undefined : "");
            if (share !== undefined) cell.style.setProperty("--share", `${Math.min(100, share * 100)}%`);
        });
    });
    const empty = table.parentElement.querySelector(".empty");
    if (empty) [table.hidden, empty.hidden] = [rows.length === 0, rows.length > 0];
}

function newCell(row, heading, column) {
    const cell = document.createElement(column === 0 ? "th" : "td");
    if (column === 0) cell.scope = "row";
    for (const name of ["number", "wrap"]) cell.classList.toggle(name, heading.classList.contains(name));
    row.append(cell);
    return cell;
}

/** Fills a `dl` with figures: pairs of a name and a text, and perhaps a state. */
export function fillFigures(list, figures) {
    figures.forEach(([name, text, state], index) => {
        let figure = list.children[index];
        if (!figure) {
            figure = document.createElement("div");
            figure.append(document.createElement("dt"), document.createElement("dd"));
            list.append(figure);
        }
        setText(figure.children[0], name);
        setText(figure.children[1], text);
        setOption(figure, "state", state);
    });
}

/**
 * Fills a list with cards.
 * @param cards each with `badge`, `state`, `title` and `lines`.
 * @param quiet the text that is shown if there is none.
 */
export function fillCards(list, cards, quiet) {
    const wanted = cards.length ? cards : [{ lines: [quiet] }];
    while (list.children.length > wanted.length) list.lastElementChild.remove();
    wanted.forEach(({ badge, state, title, lines }, index) => {
        const item = list.children[index] ?? list.appendChild(document.createElement("li"));
        item.classList.toggle("quiet", cards.length === 0);
        setOption(item, "state", state);
        const parts = [["span", badge], ["b", title], ...lines.map((line) => ["p", line])];
        fillCard(item, parts.filter(([, text]) => text));
    });
}

/** Fills a card with elements, each a name and a text. Those that are there stay. */
function fillCard(item, parts) {
    while (item.children.length > parts.length) item.lastElementChild.remove();
    parts.forEach(([name, text], index) => {
        let part = item.children[index];
        if (part?.localName !== name) {
            const fresh = document.createElement(name);
            part ? part.replaceWith(fresh) : item.append(fresh);
            part = fresh;
        }
        part.classList.toggle("badge", name === "span");
        setText(part, text);
    });
}
