/** Shows the tokens of an output, coloured by probability; a click shows the alternatives. */

import { html, scrolling } from "./elements.js";
import { drawable, percent } from "./labels.js";

const LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]; // limits of probability between the colours

export class TokenStrip {
  /** `tokens`: tokens of a hypothesis; `force`: function of the ids with which the output must begin. */
  constructor(tokens, force) {
    Object.assign(this, { tokens, force, steps: null, chosen: null });
    this.buttons = tokens.map(({ token, log_prob }, at) =>
      html(
        "button",
        { type: "button", class: `step ${levelOf(log_prob)}`, "aria-expanded": "false", click: () => this.choose(at) },
        html("bdi", { class: "piece" }, drawable(token)),
        html("small", {}, percent(Math.exp(log_prob))),
      ),
    );
    this.alternatives = html("div", { class: "alternatives" });
    this.element = html(
      "section",
      { class: "tokens" },
      html("h3", {}, "Tokens and their probabilities"),
      scrolling("Tokens", html("div", { class: "strip", dir: "auto" }, ...this.buttons)),
      this.alternatives,
    );
  }

  /** Stores the alternatives once they are loaded. */
  setSteps(steps) {
    this.steps = steps;
    if (this.chosen !== null) this.#show();
  }

  /** Shows the alternatives of a step; of the step that is shown already, hides them. */
  choose(at) {
    this.chosen = this.chosen === at ? null : at;
    this.buttons.forEach((button, other) => button.setAttribute("aria-expanded", other === this.chosen));
    this.#show();
  }

  #show() {
    if (this.chosen === null || !this.steps) {
      this.alternatives.replaceChildren(this.chosen === null ? "" : "…");
      return;
    }
    const { token, id, alternatives } = this.steps[this.chosen];
    const before = this.tokens.slice(0, this.chosen).map((one) => one.id);
    const rows = alternatives.map((one) => {
      const bar = html("span", { class: "bar" });
      bar.style.setProperty("--part", Math.exp(one.log_prob));
      const name = html("bdi", { class: "piece" }, drawable(one.token));
      return html(
        "li",
        { class: one.id === id ? "taken" : null },
        html(
          "button",
          {
            type: "button", "aria-pressed": one.id === id, disabled: one.id === 1,
            click: () => this.force([...before, one.id]),
          },
          name,
        ),
        html("span", { class: "number" }, percent(Math.exp(one.log_prob))),
        bar,
      );
    });
    this.alternatives.replaceChildren(
      html("h4", {}, "In place of ", html("bdi", { class: "piece" }, drawable(token)), `, step ${this.chosen + 1}`),
      html("p", { class: "muted" }, "A click on a token translates again: the output has to begin with all before it, and it."),
      html("ol", {}, ...rows),
    );
  }
}

function levelOf(logProb) {
  return `p${LEVELS.filter((least) => Math.exp(logProb) >= least).length}`;
}
