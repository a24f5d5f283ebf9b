/** The answer of one model: output, hypotheses, tokens, attention, alignment, the beam's tree. */

import { call } from "./api.js";
import { BeamTree } from "./beam_tree.js";
import { downloads } from "./download.js";
import { alertOf, html, scrolling } from "./elements.js";
import { Explorer } from "./explorer.js";
import { cellNote, heatMaps } from "./heat_maps.js";
import { drawable, percent } from "./labels.js";
import { PonderBars } from "./ponder.js";
import { TokenStrip } from "./tokens.js";

export class Result {
  /**
   * `model`: one of those that the server lists; `set`: function of changes of the page's state; `force`: function of the
   * ids with which an output has to begin, and the model whose ids they are.
   */
  constructor(model, { set, force }) {
    Object.assign(this, { model, set, force, explorer: null, answer: null });
    this.output = html("div");
    this.details = html("div");
    const { name, parameters, notice } = model;
    const about = [model.model, model.problem, model.step && `step ${model.step.toLocaleString("en")}`];
    this.element = html(
      "article",
      { class: "result", "aria-label": name, "aria-busy": "true" }, // until everything is there
      html("h2", {}, name),
      html("p", { class: "muted" }, [...about, `${parameters.toLocaleString("en")} parameters`].filter(Boolean).join(", ")),
      notice && html("p", { class: "warning" }, notice),
      this.output,
      this.details,
    );
  }

  /** Asks the server, and shows what it answers. */
  async load(state) {
    const second = this.model.inputs.length > 1 ? { second: state.second } : {};
    this.question = { text: state.text, ...second, model: this.model.name };
    try {
      const [first] = this.model.calls; // translate, generate or predict
      if (first === "predict") this.answer = await call(first, this.question);
      else if (state.target.trim()) await this.#score(state.target);
      else {
        const forced = state.prefix.length ? { prefix: state.prefix } : {};
        this.search = { ...this.question, ...forced, beam_size: state.beam };
        this.answer = await call(first, this.search);
      }
      await this.show(state);
    } catch (error) {
      this.output.append(alertOf(error.message));
      this.element.setAttribute("aria-busy", false);
    }
  }

  /** Shows the answer; the chosen hypothesis in detail. */
  async show(state) {
    if (!this.answer) return;
    this.element.setAttribute("aria-busy", true);
    await this.#show(state);
    this.element.setAttribute("aria-busy", false);
  }

  async #show(state) {
    const { hypotheses, lists, truncated } = this.answer;
    const warning = truncated ? html("p", { class: "warning" }, "The text is too long for the model, and was truncated.") : "";
    this.explorer = null;
    if (lists) { // of an encoder
      this.output.replaceChildren(warning, this.#answer());
      await this.#explain(state);
      return;
    }
    const chosen = hypotheses[state.hypothesis - 1] ?? hypotheses[0];
    const isContinuation = this.model.calls[0] === "generate";
    const prompt = isContinuation ? html("span", { class: "prompt" }, drawable(this.question.text, Infinity)) : null;
    const text = html("bdi", {}, prompt, drawable(chosen.text, Infinity) || "(blank)");
    this.output.replaceChildren(
      html("p", { class: "translation", dir: "auto" }, text),
      warning,
      this.search ? this.#nBest(chosen) : html("p", {}, `Log-probability of the given target: ${chosen.score.toFixed(3)} nats.`),
      this.search?.prefix ? this.#forced(this.search.prefix, chosen) : "",
    );
    await this.#explain(state, chosen);
  }

  /** Applies a change of what is seen of the attention. */
  update(state) {
    this.explorer?.update(state);
  }

  async #score(target) {
    const { log_prob, steps } = await call("steps", { ...this.question, target, top: 10 });
    this.answer = { hypotheses: [{ text: target, score: log_prob, ended: true, tokens: steps }] };
  }

  #answer() {
    const { answer, lists } = this.answer;
    const rows = (list) =>
      list.map((one) => {
        const bar = html("span", { class: "bar" });
        bar.style.setProperty("--part", one.probability);
        const name = html("bdi", {}, drawable(one.text, Infinity));
        return html("li", {}, name, html("span", { class: "number" }, percent(one.probability)), bar);
      });
    return html(
      "section",
      {},
      html("p", { class: "translation" }, html("bdi", {}, drawable(answer, Infinity))),
      lists.length ? html("h3", {}, "Probabilities") : null,
      ...lists.map((list) => html("ol", { class: "shares" }, ...rows(list))),
      downloads("answer", null, () => ({ ...this.question, ...this.answer })),
    );
  }

  #nBest(chosen) {
    const items = this.answer.hypotheses.map((one, at) =>
      html(
        "li",
        {},
        html(
          "button",
          {
            type: "button", class: "hypothesis", "aria-pressed": one === chosen,
            click: () => this.set({ hypothesis: at + 1 }),
          },
          html("bdi", { dir: "auto" }, drawable(one.text, Infinity) || "(blank)"),
          one.ended ? null : html("span", { class: "muted" }, " (cut at the longest output)"),
        ),
        html("span", { class: "number" }, one.score.toFixed(4)),
      ),
    );
    return html(
      "section",
      {},
      html("h3", {}, "Hypotheses and their scores"),
      html("ol", { class: "hypotheses" }, ...items),
      downloads("output", null, () => ({ ...this.search, ...this.answer })),
    );
  }

  #forced(prefix, chosen) {
    const tokens = chosen.tokens.slice(0, prefix.length).map(({ token }) => drawable(token));
    return html(
      "p",
      { class: "forced" },
      "The output had to begin with ",
      html("bdi", { class: "piece" }, tokens.join(" ")),
      " ",
      html("button", { type: "button", click: () => this.force([]) }, "Let it begin freely"),
    );
  }

  /** Adds what shows how the model came to a hypothesis; of an encoder that is its attention alone. */
  async #explain(state, chosen) {
    this.details.replaceChildren();
    if (chosen && !chosen.tokens.length) return;
    const place = html("div");
    this.details.append(place);
    const target = chosen ? { target: chosen.tokens.map(({ id }) => id) } : {};
    const asked = [];
    if (chosen) asked.push(this.#tokens(chosen, target, place));
    if (this.model.attention) asked.push(this.#attention(state, target, place));
    const failed = (await Promise.allSettled(asked)).filter(({ reason }) => reason);
    place.append(...[...new Set(failed.map(({ reason }) => reason.message))].map(alertOf));
    if (chosen && this.model.calls.includes("ponder")) place.append(new PonderBars(this.question, chosen.tokens).element);
    if (this.search) place.append(new BeamTree(this.search, state.tree, this.set).element);
  }

  async #tokens(chosen, target, place) {
    const strip = new TokenStrip(chosen.tokens, (prefix) => this.force(prefix, this.model.name));
    place.append(strip.element);
    const given = !this.search;
    strip.setSteps(given ? chosen.tokens : (await call("steps", { ...this.question, ...target, top: 10 })).steps);
  }

  async #attention(state, target, place) {
    const found = await call("attention", { ...this.question, ...target });
    if (!place.isConnected) return; // another hypothesis has been chosen
    this.explorer = new Explorer(found, this.set);
    const pictures = html("div", { class: "pictures" }, this.explorer.element);
    place.append(pictures);
    if (found.memory) pictures.append(this.#alignment(found.memory));
    this.explorer.update(state);
  }

  /** The mean over the heads of the last layer but one, which aligns best: decoding/alignment.py says why. */
  #alignment({ queries, keys, weights }) {
    const layer = Math.max(1, weights.length - 1);
    const heads = weights[layer - 1];
    const mean = (query, key) => heads.reduce((sum, rows) => sum + rows[query][key], 0) / heads.length;
    const rows = queries.map((_, query) => keys.map((_, key) => mean(query, key)));
    const title = `Cross-attention, layer ${layer} of ${weights.length}, mean over heads`;
    const matrices = [{ head: 1, name: "output by source", rows }];
    const picture = heatMaps({ queries, keys, title, room: 0, matrices });
    const note = html("p", { class: "note" });
    picture.addEventListener("pointerover", (event) => {
      note.textContent = drawable(cellNote(event.target, queries, keys), 80);
    });
    return html(
      "section",
      { class: "alignment" },
      html("h3", {}, "Alignment"),
      scrolling("Alignment", picture),
      note,
      downloads("alignment", () => picture, () => ({ queries, keys, layer, weights: rows })),
    );
  }
}
