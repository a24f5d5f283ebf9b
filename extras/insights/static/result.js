/** The answer of one model: output, hypotheses, tokens, attention, alignment, the beam's tree. */

import { call } from "./api.js";
import { BeamTree } from "./beam_tree.js";
import { downloads } from "./download.js";
import { alertOf, html, scrolling } from "./elements.js";
import { Explorer } from "./explorer.js";
import { MOST_TOKENS } from "./facts.js";
import { cellNote, heatMaps } from "./heat_maps.js";
import { drawable, percent } from "./labels.js";
import { AttentionMap, Patterns } from "./long_attention.js";
import { Output, pictureEnding } from "./media.js";
import { PonderBars } from "./ponder.js";
import { TokenStrip } from "./tokens.js";

export class Result {
  /**
   * `model`: a model from the list of the server; `set`: function of changes to the page's state; `force`: function of the
   * ids with which an output must begin, and the name of their model; `file`: {name, data} instead of the text, or
   * null.
   */
  constructor(model, { set, force, file }) {
    Object.assign(this, { model, set, force, file, explorer: null, answer: null, pictures: null });
    this.output = html("div");
    this.details = html("div");
    const { name, parameters, notice } = model;
    const about = [model.model, model.problem, model.step && `step ${model.step.toLocaleString("en")}`];
    this.element = html(
      "article",
      { class: "result", "aria-label": name, "aria-busy": "true" }, // until everything has loaded
      html("h2", {}, name),
      html("p", { class: "muted" }, [...about, `${parameters.toLocaleString("en")} parameters`].filter(Boolean).join(", ")),
      notice && html("p", { class: "warning" }, notice),
      this.output,
      this.details,
    );
  }

  /** Sends the request and shows the answer. */
  async load(state) {
    const second = this.model.inputs.length > 1 ? { second: state.second } : {};
    this.question = { ...(this.file ? { file: this.file } : { text: state.text }), ...second, model: this.model.name };
    try {
      const [first] = this.model.calls; // translate, generate or predict
      if (first === "predict") this.answer = await call(first, this.question);
      else if (state.target.trim()) await this.#score(state.target);
      else {
        const forced = state.prefix.length ? { prefix: state.prefix } : {};
        const sampled = this.model.samples ? { seed: state.seed } : {};
        this.search = { ...this.question, ...forced, ...sampled, beam_size: state.beam };
        this.answer = await call(first, this.search);
      }
      await this.show(state);
    } catch (error) {
      this.output.append(alertOf(error.message));
      this.element.setAttribute("aria-busy", false);
    }
  }

  /** Shows the answer, with details of the chosen hypothesis. */
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
    if (pictureEnding(this.model)) await this.#draw();
    const prompt = isContinuation ? html("span", { class: "prompt" }, drawable(this.question.text ?? "", Infinity)) : null;
    const text = html("bdi", {}, prompt, drawable(chosen.text, Infinity) || "(blank)");
    this.output.replaceChildren(
      this.pictures ? "" : html("p", { class: "translation", dir: "auto" }, text),
      warning,
      this.search ? this.#nBest(chosen) : html("p", {}, `Log-probability of the given target: ${chosen.score.toFixed(3)} nats.`),
      this.search?.prefix ? this.#forced(this.search.prefix, chosen) : "",
      Object.keys(this.model.writes).length ? this.#outputOf(chosen).controls(`output ${hypotheses.indexOf(chosen) + 1}`) : "",
    );
    await this.#explain(state, chosen);
  }

  /** Applies a change to the attention's view. */
  update(state) {
    this.explorer?.update(state);
  }

  #outputOf({ tokens }) {
    return new Output(this.model.writes, this.question, tokens.map(({ id }) => id));
  }

  /** Creates the pictures of all outputs and of the input file. */
  async #draw() {
    if (this.pictures) return;
    const pictures = [];
    for (const [at, one] of this.answer.hypotheses.entries()) {
      pictures.push(await this.#outputOf(one).picture(`Output ${at + 1}`));
    }
    this.given = this.file && (await this.#outputOf({ tokens: [] }).picture(`Given: ${drawable(this.file.name)}`));
    this.pictures = pictures;
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
    const items = this.answer.hypotheses.map((one, at) => {
      const cut = one.ended || this.pictures ? null : html("span", { class: "muted" }, " (cut at the longest output)");
      const shown = this.pictures ? `Output ${at + 1}` : drawable(one.text, Infinity) || "(blank)";
      return html(
        "li",
        {},
        this.pictures?.[at] ?? null,
        html(
          "button",
          {
            type: "button", class: "hypothesis", "aria-pressed": one === chosen,
            click: () => this.set({ hypothesis: at + 1 }),
          },
          html("bdi", { dir: "auto" }, shown),
          cut,
        ),
        html("span", { class: "number" }, one.score.toFixed(4)),
      );
    });
    const words = "A dashed frame or a line shows where the given part ends in the outputs.";
    const given = this.given && html("div", {}, html("h3", {}, "Given"), html("p", { class: "muted" }, words), this.given);
    return html(
      "section",
      {},
      given || null,
      html("h3", {}, this.model.samples ? "Samples and their scores" : "Hypotheses and their scores"),
      html("ol", { class: this.pictures ? "hypotheses gallery" : "hypotheses" }, ...items),
      downloads("output", null, () => ({ ...this.search, ...this.answer })),
    );
  }

  #forced(prefix, chosen) {
    const tokens = chosen.tokens.slice(0, prefix.length).map(({ token }) => drawable(token));
    return html(
      "p",
      { class: "forced" },
      "The output was forced to begin with ",
      html("bdi", { class: "piece" }, tokens.join(" ")),
      " ",
      html("button", { type: "button", click: () => this.force([]) }, "Remove this prefix"),
    );
  }

  /** Adds explanations of a hypothesis; for an encoder, only its attention. */
  async #explain(state, chosen) {
    this.details.replaceChildren();
    if (chosen && !chosen.tokens.length) return;
    const place = html("div");
    this.details.append(place);
    const ids = chosen?.tokens.map(({ id }) => id);
    const read = this.answer.prompt_tokens?.length ?? 0; // a language model's row consists of prompt and output
    const asked = [];
    if (chosen) asked.push(this.#tokens(chosen, ids, place));
    if (this.model.attention && read + (ids?.length ?? 0) <= MOST_TOKENS) {
      asked.push(this.#attention(state, chosen ? { target: ids } : {}, place));
    }
    const failed = (await Promise.allSettled(asked)).filter(({ reason }) => reason);
    place.append(...[...new Set(failed.map(({ reason }) => reason.message))].map(alertOf));
    if (chosen && this.model.calls.includes("ponder")) place.append(new PonderBars(this.question, chosen.tokens).element);
    if (this.model.calls.includes("attention_map")) place.append(new AttentionMap(this.question, ids).element);
    if (this.model.calls.includes("patterns")) place.append(new Patterns(this.model.name).element);
    if (this.search && !this.model.samples) place.append(new BeamTree(this.search, state.tree, this.set).element);
  }

  /** Shows the tokens of an output. Of a long output, only the first tokens are shown, because the API scores no more. */
  async #tokens(chosen, ids, place) {
    const strip = new TokenStrip(chosen.tokens.slice(0, MOST_TOKENS), (prefix) => this.force(prefix, this.model.name));
    place.append(strip.element);
    if (ids.length > MOST_TOKENS) {
      strip.element.append(html("p", { class: "muted" }, `The first ${MOST_TOKENS} of ${ids.length} tokens.`));
    }
    if (!this.search) return strip.setSteps(chosen.tokens);
    const request = { ...this.question, target: ids.slice(0, MOST_TOKENS), top: 10 };
    strip.setSteps((await call("steps", request)).steps);
  }

  async #attention(state, target, place) {
    const found = await call("attention", { ...this.question, ...target });
    if (!place.isConnected) return; // another hypothesis was chosen meanwhile
    this.explorer = new Explorer(found, this.set);
    const pictures = html("div", { class: "pictures" }, this.explorer.element);
    place.append(pictures);
    if (found.memory) pictures.append(this.#alignment(found.memory));
    this.explorer.update(state);
  }

  /** The mean over the heads of the second to last layer, which aligns best (see decoding/alignment.py). */
  #alignment({ queries, keys, weights }) {
    const layer = Math.max(1, weights.length - 1);
    const heads = weights[layer - 1];
    const mean = (query, key) => heads.reduce((sum, rows) => sum + rows[query][key], 0) / heads.length;
    const rows = queries.map((_, query) => keys.map((_, key) => mean(query, key)));
    const title = `Cross-attention, layer ${layer} of ${weights.length}, mean over heads`;
    const matrices = [{ head: 1, name: "output by source", rows }];
    const picture = heatMaps({ kind: "memory", queries, keys, title, room: 0, matrices });
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
