/** Pictures that the server draws when they are opened: the attention of a long row, and the visible positions. */

import { call } from "./api.js";
import { alertOf, html } from "./elements.js";
import { pictureOf } from "./media.js";

/** A part of the page that requests its content when it is opened. */
class Opened {
  constructor(title, words) {
    this.place = html("div");
    this.element = html(
      "details",
      { toggle: () => this.element.open && !this.place.children.length && this.load() },
      html("summary", {}, html("h3", {}, title)),
      html("p", { class: "muted" }, words),
      this.place,
    );
  }

  /** Shows the result of `ask`, or the message if it fails. */
  async load(change = {}) {
    this.place.replaceChildren(html("p", { class: "muted" }, "Drawing …"));
    try {
      this.place.replaceChildren(...(await this.ask(change)));
    } catch (error) {
      this.place.replaceChildren(alertOf(error.message));
    }
  }
}

/** Shows the attention of one layer for a whole row, with an image per head. */
export class AttentionMap extends Opened {
  constructor(question, target) {
    super(
      "Attention as a map",
      "An image for each head, with a row per step (the query) and a column per position (the key). Darker cells have larger " +
        "weights; grey positions are not visible.",
    );
    Object.assign(this, { question, target });
  }

  async ask(change) {
    const { layer, layers, picture } = await call("attention_map", { ...this.question, target: this.target, ...change });
    const numbers = Array.from({ length: layers }, (_, at) => html("option", { value: at + 1 }, String(at + 1)));
    const choice = html("select", { change: () => this.load({ layer: Number(choice.value) }) }, ...numbers);
    choice.value = layer;
    return [html("label", { class: "inline" }, "Layer ", choice), await pictureOf(picture, `Attention, layer ${layer}`)];
  }
}

/** Shows the self-attention patterns: the positions that each position can see by the settings. */
export class Patterns extends Opened {
  constructor(model) {
    super("Which positions see which", "The positions that each position can see by the settings, independent of training.");
    this.model = model;
  }

  async ask(change) {
    const { length, picture } = await call("patterns", { model: this.model, ...change });
    const field = html("input", {
      type: "number", min: 2, max: 2048, value: length,
      change: () => field.reportValidity() && this.load({ length: Number(field.value) }),
    });
    return [html("label", { class: "inline" }, "Positions ", field), await pictureOf(picture, "Which positions see which")];
  }
}
