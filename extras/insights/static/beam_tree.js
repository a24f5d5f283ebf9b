/** Draws the tree of a beam search: a column per step, the best on top, with lines from each token to its parent. */

import { call } from "./api.js";
import { downloads } from "./download.js";
import { alertOf, html, scrolling, svg } from "./elements.js";
import { label, picture } from "./figure.js";
import { drawable, textWidth } from "./labels.js";

const MARGIN = 14, ROW = 34, HEIGHT = 28, GAP = 36;
const BEST = "#0b5cad";

/** A part of the page that runs the search again, and shows its tree, when it is opened. */
export class BeamTree {
  /** `search`: the request; `isOpen`: whether it is initially open; `set`: function of changes to the page's state. */
  constructor(search, isOpen, set) {
    this.search = search;
    this.place = html("div");
    this.element = html(
      "details",
      { class: "tree", open: Boolean(isOpen), toggle: () => this.#toggled(set) },
      html("summary", {}, html("h3", {}, "The beam's tree")),
      this.place,
    );
  }

  async #toggled(set) {
    set({ tree: this.element.open ? 1 : 0 });
    if (!this.element.open || this.place.children.length) return;
    try {
      this.place.replaceChildren(html("p", { class: "muted" }, "Searching …"));
      const tree = await call("beam", this.search);
      const drawn = drawTree(tree);
      const note = html("p", { class: "note" });
      drawn.addEventListener("pointerover", (event) => {
        note.textContent = noteOf(tree.nodes[event.target.closest("[data-node]")?.dataset.node]);
      });
      const words =
        "Each column is a step, with tokens and scores (log-probability / length penalty), the best on top. Dropped tokens are " +
        "pale, framed tokens end a hypothesis, and the output is blue.";
      this.place.replaceChildren(
        html("p", { class: "muted" }, words),
        scrolling("The beam's tree", drawn),
        note,
        downloads("beam", () => drawn, () => tree),
      );
    } catch (error) {
      this.place.replaceChildren(alertOf(error.message));
    }
  }
}

/** Returns the picture for the API's nodes and hypotheses. */
export function drawTree({ nodes, hypotheses }) {
  const best = new Set();
  for (let at = hypotheses[0]; at !== null && at !== undefined; at = nodes[at].parent) best.add(at);
  const steps = Object.values(Object.groupBy(nodes, ({ step }) => step));
  const places = [];
  let x = MARGIN;
  for (const column of steps) {
    const width = Math.max(44, ...column.map(({ token }) => 1.15 * textWidth(token, 12))) + 12; // bold
    const sorted = [...column].sort((a, b) => b.score - a.score);
    sorted.forEach(({ id }, row) => (places[id] = { x, y: MARGIN + ROW * row, width }));
    x += width + GAP;
  }
  const most = Math.max(...steps.map((column) => column.length));
  const element = picture(x - GAP + MARGIN, 2 * MARGIN + ROW * most, { role: "img", "aria-label": "The beam's tree" });
  // The output's lines and tokens are drawn last, on top of the others.
  const ordered = [...nodes].sort((a, b) => best.has(a.id) - best.has(b.id) || a.kept - b.kept);
  const edges = ordered.filter(({ parent }) => parent !== null).map((node) => edgeOf(node, places, best));
  element.append(svg("g", {}, ...edges), ...ordered.map((node) => nodeOf(node, places[node.id], best, hypotheses)));
  return element;
}

function edgeOf({ id, parent, kept }, places, best) {
  const [from, to] = [places[parent], places[id]];
  const [color, name] = best.has(id) ? [BEST, "best"] : kept ? ["#555555", "kept"] : ["#bbbbbb", "dropped"];
  const ends = { x1: from.x + from.width, y1: from.y + HEIGHT / 2, x2: to.x, y2: to.y + HEIGHT / 2 };
  return svg("line", { ...ends, stroke: color, "stroke-width": best.has(id) ? 2 : 1, class: `edge ${name}` });
}

function nodeOf({ id, token, score, kept, finished }, { x, y, width }, best, hypotheses) {
  const name = best.has(id) ? "best" : kept ? "kept" : "dropped";
  const color = { best: BEST, kept: "#222222", dropped: "#6b6b6b" }[name];
  const frame = finished || hypotheses.includes(id);
  const box = { x, y, width, height: HEIGHT, fill: "#ffffff", stroke: frame ? color : "none", class: `node ${name}` };
  const look = { anchor: "middle", color, class: name };
  return svg(
    "g",
    { "data-node": id },
    svg("rect", box),
    label(x + width / 2, y + 9, token, { ...look, size: 12, "font-weight": kept ? "bold" : "normal" }),
    id === 0 ? null : label(x + width / 2, y + 21, score.toFixed(3), { ...look, size: 9 }),
  );
}

function noteOf(node) {
  if (!node || node.parent === null) return "";
  const { step, token, log_prob, score, kept, finished } = node;
  const state = [kept ? "kept" : "dropped", finished ? "ends" : ""].filter(Boolean).join(", ");
  return `step ${step}, ${drawable(token)}: log-probability ${log_prob.toFixed(4)}, score ${score.toFixed(4)}; ${state}`;
}
