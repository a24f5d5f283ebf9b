/** Pictures that the server draws once they are opened: the attention of a long row, and which positions see which. */

import { call } from "./api.js";
import { alertOf, html } from "./elements.js";
import { pictureOf } from "./media.js";

/** A part of the page that asks for its content when it is opened. */
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

  /** Shows what `ask` returns; the message if it fails. */
  async load(change = {}) {
    this.place.replaceChildren(html("p", { class: "muted" }, "Drawing …"));
    try {
      this.place.replaceChildren(...(await this.ask(change)));
    } catch (error) {
      this.place.replaceChildren(alertOf(error.message));
    }
  }
}

/** The attention of one layer in a whole row, as an image for each head. */
export class AttentionMap extends Opened {
  constructor(question, target) {
    super(
      "Attention as a map",
      "An image for each head: a row for each step (the query), a column for each position that it has read (the key). The darker, " +
        "the larger the weight; grey is not seen.",
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

/** The patterns of self-attention: what the settings of each layer let a position see. */
export class Patterns extends Opened {
  constructor(model) {
    super("Which positions see which", "What the settings let each position see, whatever the model has learned.");
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
