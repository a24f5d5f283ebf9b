/** The attention explorer: choices of kind, layer, heads and view. The token under the pointer or focus shows its edges. */

import { AttentionLines } from "./attention_lines.js";
import { downloads } from "./download.js";
import { html, scrolling } from "./elements.js";
import { COLORS, TITLES } from "./facts.js";
import { cellNote, heatMaps } from "./heat_maps.js";
import { drawable } from "./labels.js";

export class Explorer {
  /** `attention`: the API's answer; `set`: function of changes to the page's state. */
  constructor(attention, set) {
    Object.assign(this, { attention, set, heads: new Set(), pinned: null });
    const kinds = Object.keys(attention).map((kind) => html("option", { value: kind }, TITLES[kind]));
    this.kind = html("select", { change: () => set({ kind: this.kind.value, layer: 0, heads: null }) }, ...kinds);
    this.layer = html("select", { change: () => set({ layer: Number(this.layer.value) }) });
    this.view = html(
      "select",
      { change: () => set({ view: this.view.value }) },
      html("option", { value: "lines" }, "Lines"),
      html("option", { value: "heat_maps" }, "Heat maps"),
    );
    this.buttons = html("div", { class: "heads", role: "group", "aria-label": "Heads" });
    this.figure = scrolling("Attention");
    this.note = html("div", { class: "note", "aria-live": "polite" });
    this.element = html(
      "section",
      { class: "explorer" },
      html("h3", {}, "Attention"),
      html(
        "div",
        { class: "row" },
        html("label", { class: "inline" }, "Kind ", this.kind),
        html("label", { class: "inline" }, "Layer ", this.layer),
        html("label", { class: "inline" }, "View ", this.view),
      ),
      html(
        "div",
        { class: "row" },
        this.buttons,
        html("button", { type: "button", click: () => set({ heads: null }) }, "All heads"),
        html("span", { class: "muted" }, "double-click, or Shift+Enter: one head alone"),
      ),
      this.figure,
      this.note,
      downloads("attention", () => this.figure.querySelector("svg"), () => this.#seen()),
    );
    const leave = () => this.#showToken(this.pinned);
    this.figure.addEventListener("pointerover", (event) => this.#showToken(this.#tokenOf(event) ?? this.pinned, event));
    this.figure.addEventListener("pointerleave", leave);
    this.figure.addEventListener("focusin", (event) => this.#showToken(this.#tokenOf(event) ?? this.pinned));
    this.figure.addEventListener("focusout", leave);
    this.figure.addEventListener("click", (event) => this.#pin(this.#tokenOf(event)));
    this.figure.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows the current state, and redraws only the parts that have changed. */
  update(state) {
    const kinds = Object.keys(this.attention);
    const kind = kinds.includes(state.kind) ? state.kind : kinds.at(-1);
    const layers = this.attention[kind].weights;
    const layer = layers[state.layer - 1] ? state.layer : Math.max(1, layers.length - 1);
    const count = layers[layer - 1].length;
    this.heads = new Set(range(count).filter((head) => state.heads === null || state.heads.includes(head)));
    const shown = `${kind} ${layer} ${state.view} ${state.view === "lines" || [...this.heads]}`;
    if (shown !== this.shown) {
      this.shown = shown;
      this.#controls(kind, layers.length, layer, count, state.view);
      this.#draw(kind, layer, state.view);
    }
    for (const button of this.buttons.children) {
      button.setAttribute("aria-pressed", this.heads.has(Number(button.dataset.head)));
    }
    this.lines?.showHeads(this.heads);
    this.#showToken(this.pinned);
  }

  #controls(kind, layers, layer, heads, view) {
    Object.assign(this, { shownKind: kind, shownLayer: layer });
    this.kind.value = kind;
    this.view.value = view === "lines" ? "lines" : "heat_maps";
    this.layer.replaceChildren(...range(layers).map((number) => html("option", { value: number }, String(number))));
    this.layer.value = layer;
    if (this.buttons.children.length === heads) return; // a button must survive the first click to receive a double click
    this.buttons.replaceChildren(...range(heads).map((head) => this.#button(head)));
  }

  #button(head) {
    const swatch = html("span", { class: "swatch" });
    swatch.style.setProperty("--head", COLORS[(head - 1) % COLORS.length]);
    const toggle = () => {
      const heads = range(this.buttons.children.length).filter((one) => this.heads.has(one) !== (one === head));
      this.set({ heads: heads.length === this.buttons.children.length ? null : heads });
    };
    const solo = () => this.set({ heads: [head] });
    return html(
      "button",
      {
        type: "button", "data-head": head, "aria-label": `Head ${head}`, "aria-pressed": "true",
        click: toggle,
        dblclick: solo,
        keydown: (event) => {
          if (event.key !== "Enter" || !event.shiftKey) return;
          event.preventDefault();
          solo();
        },
      },
      swatch,
      String(head),
    );
  }

  #draw(kind, layer, view) {
    const { queries, keys, weights } = this.attention[kind];
    const title = `${TITLES[kind]}, layer ${layer} of ${weights.length}`;
    const shared = { kind, queries, keys, title, room: this.figure.clientWidth };
    this.pinned = null;
    this.lines = null;
    if (view === "lines") {
      this.lines = new AttentionLines({ ...shared, weights: weights[layer - 1] });
      this.figure.replaceChildren(this.lines.element);
    } else {
      const matrices = [...this.heads].map((head) => ({ head, name: `head ${head}`, rows: weights[layer - 1][head - 1] }));
      this.figure.replaceChildren(heatMaps({ ...shared, matrices }));
    }
    this.note.style.setProperty("--lines", this.lines ? weights[layer - 1].length + 1 : 1); // the content below does not move
  }

  #tokenOf(event) {
    const found = event.target.closest?.(".token");
    return found && { side: found.dataset.side, at: Number(found.dataset.at) };
  }

  #showToken(token, event) {
    if (!this.lines) {
      const { queries, keys } = this.attention[this.shownKind];
      this.note.textContent = event ? drawable(cellNote(event.target, queries, keys), 80) : "";
      return;
    }
    this.lines.showToken(token, this.heads);
    if (!token) {
      this.note.textContent = "Point at a token, or move to it with Tab and the arrow keys, to see only its edges. A click keeps them.";
      return;
    }
    const { side, at } = token;
    const name = this.lines[side === "query" ? "queries" : "keys"][at];
    this.note.replaceChildren(
      html("p", {}, html("bdi", { class: "piece" }, drawable(name)), side === "query" ? " attends to" : " is attended to by"),
      ...[...this.heads].map((head) => {
        const largest = this.lines.largest(token, head);
        const words = largest.flatMap(([other, weight], place) => [
          place ? ", " : " ",
          html("bdi", { class: "piece" }, drawable(other)),
          ` ${weight.toFixed(3)}`,
        ]);
        return html("p", {}, `head ${head}:`, ...words);
      }),
    );
  }

  #pin(token) {
    const same = token && this.pinned && token.side === this.pinned.side && token.at === this.pinned.at;
    this.pinned = token && !same ? token : null;
    for (const [side, tokens] of Object.entries(this.lines?.tokens ?? {})) {
      tokens.forEach((one, at) => {
        one.setAttribute("aria-pressed", side === this.pinned?.side && at === this.pinned.at);
      });
    }
    this.#showToken(this.pinned ?? token);
  }

  /** One token of the picture is in the tab order; the arrow keys move to the other tokens. */
  #key(event) {
    const token = this.#tokenOf(event);
    if (!token) return;
    const { side, at } = token;
    const other = side === "query" ? "key" : "query";
    const next = {
      ArrowDown: [side, at + 1],
      ArrowUp: [side, at - 1],
      ArrowLeft: ["query", at],
      ArrowRight: ["key", at],
      Home: [side, 0],
      End: [side, this.lines.tokens[side].length - 1],
    }[event.key];
    if (event.key === "Enter" || event.key === " ") this.#pin(token);
    else if (event.key === "Escape") this.#pin(null);
    else if (!next) return;
    event.preventDefault();
    if (!next) return;
    const tokens = this.lines.tokens[next[0]];
    const target = tokens[Math.min(Math.max(next[1], 0), tokens.length - 1)];
    for (const one of [...tokens, ...this.lines.tokens[other], ...this.lines.tokens[side]]) one.setAttribute("tabindex", -1);
    target.setAttribute("tabindex", 0);
    target.focus();
  }

  #seen() {
    const { queries, keys, weights } = this.attention[this.shownKind];
    const heads = [...this.heads];
    return {
      kind: this.shownKind, layer: this.shownLayer, heads, queries, keys,
      weights: heads.map((head) => weights[this.shownLayer - 1][head - 1]),
    };
  }
}

function range(count) {
  return Array.from({ length: count }, (_, at) => at + 1);
}
