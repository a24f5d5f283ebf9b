/** Attention as lines between two columns of tokens (the paper's figures 3 to 5). */

import { svg } from "./elements.js";
import { OFFSET, SIDES, SMALLEST } from "./facts.js";
import { headGroup, heading, label, picture } from "./figure.js";
import { drawable, textWidth, wrapped } from "./labels.js";

const ROW = 20, MARGIN = 14, PAD = 6, LEGEND = 34;

/**
 * Draws one layer. `element` is the picture; every line has its numbers in data-… attributes.
 *
 * All lines are drawn once. Those of a single token are drawn over them, while the others get no opacity, which costs
 * the browser next to nothing per line.
 */
export class AttentionLines {
  /** `weights`: [heads][queries][keys]; `room`: available pixels. */
  constructor({ kind, queries, keys, weights, title, room }) {
    Object.assign(this, { queries, keys, weights, places: {} });
    const headers = SIDES[kind];
    const [left, right] = [queries, keys].map(
      (labels, side) => Math.max(...[headers[side], ...labels].map((text) => textWidth(text))) + 2 * PAD,
    );
    const count = Math.max(queries.length, keys.length);
    const wanted = Math.min(Math.max(160, 8 * count), 480);
    const gap = Math.min(wanted, Math.max(90, room - left - right - 2 * MARGIN));
    const perLine = Math.max(1, Math.floor((left + gap + right) / LEGEND));
    this.top = MARGIN + 20 + 24 * Math.ceil(weights.length / perLine) + 38;
    this.begin = MARGIN + left;
    this.end = this.begin + gap;
    const bottom = this.top + ROW * count;
    const [headline, least] = heading(MARGIN, MARGIN + 8, title);
    const width = Math.max(this.end + right, least + MARGIN);
    const notes = wrapped(OFFSET[kind], width - MARGIN, 10);
    const height = bottom + MARGIN + 16 * notes.length;
    this.element = picture(width + MARGIN, height, { role: "group", "aria-label": title });
    this.all = svg("g", { class: "edges all", "stroke-width": 2 });
    this.ofToken = svg("g", { class: "edges", "stroke-width": 2 });
    this.shade = svg("rect", { fill: "#bbbbbb", "fill-opacity": 0, height: ROW, class: "shade" });
    this.tokens = { query: [], key: [] };
    const muted = { size: 11, color: "#555555", class: "faint" };
    this.element.append(
      headline,
      ...weights.map((_, at) => this.#legend(at, perLine)),
      label(this.begin - PAD, this.top - 18, headers[0], { ...muted, anchor: "end" }),
      label(this.end + PAD, this.top - 18, headers[1], muted),
      this.shade,
      this.all,
      this.ofToken,
      this.#column("query", queries, MARGIN, left),
      this.#column("key", keys, this.end, right),
      ...notes.map((line, at) => label(MARGIN, bottom + 12 + 16 * at, line, { ...muted, size: 10, most: Infinity })),
    );
    weights.forEach((rows, at) => {
      const edges = rows.flatMap((row, query) => row.map((weight, key) => this.#edge(at + 1, query, key, weight)));
      this.all.append(headGroup(at + 1, "stroke", ...edges));
    });
  }

  /** Shows only some heads, a Set of numbers from 1. */
  showHeads(heads) {
    for (const part of this.element.querySelectorAll("[data-head]")) {
      part.classList.toggle("off", !heads.has(Number(part.dataset.head)));
    }
  }

  /** Shows only the edges of one token, or all edges if it is null. */
  showToken(token, heads) {
    this.all.classList.toggle("hidden", token !== null);
    this.shade.setAttribute("fill-opacity", token ? 0.5 : 0);
    this.ofToken.replaceChildren();
    if (!token) return;
    const { side, at } = token;
    for (const [name, value] of Object.entries(this.places[side])) this.shade.setAttribute(name, value);
    this.shade.setAttribute("y", this.top + ROW * at);
    for (const head of heads) {
      const rows = this.weights[head - 1];
      const edges =
        side === "query"
          ? rows[at].map((weight, key) => this.#edge(head, at, key, weight))
          : rows.map((row, query) => this.#edge(head, query, at, row[at]));
      this.ofToken.append(headGroup(head, "stroke", ...edges));
    }
  }

  /** Returns the largest weights of a token, [[label, weight]], in one head. */
  largest({ side, at }, head, count = 3) {
    const rows = this.weights[head - 1];
    const others = side === "query" ? this.keys : this.queries;
    const found = others.map((name, other) => [name, side === "query" ? rows[at][other] : rows[other][at]]);
    return found.sort((a, b) => b[1] - a[1]).slice(0, count);
  }

  #column(side, labels, x, width) {
    this.places[side] = { x, width };
    const [end, anchor] = side === "query" ? [x + width - PAD, "end"] : [x + PAD, "start"];
    const verb = side === "query" ? "attends" : "is attended to";
    return svg(
      "g",
      {},
      ...labels.map((text, at) => {
        const y = this.top + ROW * at;
        const token = svg(
          "g",
          {
            class: "token", role: "button", "aria-pressed": "false", "data-side": side, "data-at": at,
            tabindex: side === "query" && at === 0 ? 0 : -1, "aria-label": `${drawable(text)}, ${at + 1}: ${verb}`,
          },
          svg("rect", { x, y, width, height: ROW, fill: "#ffffff", "fill-opacity": 0 }),
          label(end, y + ROW / 2, text, { anchor }),
        );
        this.tokens[side].push(token);
        return token;
      }),
    );
  }

  #edge(head, query, key, weight) {
    if (weight < SMALLEST) return null;
    const numbers = { "data-query": query, "data-key": key, "data-weight": weight };
    const [y1, y2] = [query, key].map((at) => this.top + ROW * (at + 0.5));
    return svg("line", { x1: this.begin, y1, x2: this.end, y2, "stroke-opacity": weight, ...numbers });
  }

  #legend(at, perLine) {
    const x = MARGIN + LEGEND * (at % perLine);
    const y = MARGIN + 20 + 24 * Math.floor(at / perLine);
    return headGroup(
      at + 1,
      "fill",
      svg("rect", { x, y: y + 4, width: 12, height: 12 }),
      label(x + 16, y + 10, String(at + 1), { size: 11 }),
    );
  }
}
