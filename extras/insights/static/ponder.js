/** Shows the number of ponder steps for each piece of a text and its translation, as bars. */

import { call } from "./api.js";
import { downloads } from "./download.js";
import { alertOf, html, scrolling, svg } from "./elements.js";
import { headGroup, heading, label, picture } from "./figure.js";
import { drawable, textWidth } from "./labels.js";

const MARGIN = 14, ROW = 20, STEP = 24, PAD = 6; // as in ponder_pictures.py

export class PonderBars {
  /** `question`: the request; `tokens`: tokens of a hypothesis. Calls the server when it is opened. */
  constructor(question, tokens) {
    this.place = html("div");
    this.element = html("details", {}, html("summary", {}, "Steps of each piece"), this.place);
    const target = tokens.map(({ id }) => id);
    this.element.addEventListener("toggle", () => this.#show({ ...question, target }), { once: true });
  }

  async #show(request) {
    try {
      const found = await call("ponder", request);
      const bars = ponderBars(found);
      this.place.append(scrolling("Steps of each piece", bars), downloads("ponder", () => bars, () => found));
    } catch (error) {
      this.place.append(alertOf(error.message));
    }
  }
}

/** Returns a picture with a bar for the steps of each piece; first the source, then the output. */
export function ponderBars({ source, output }) {
  const pieces = [...source, ...output];
  const most = Math.max(1, ...pieces.map(({ steps }) => steps));
  const words = Math.max(0, ...pieces.map(({ token }) => textWidth(token)));
  const title = "Steps of each piece";
  const [headline, least] = heading(MARGIN, MARGIN + ROW / 2, title);
  const width = Math.max(words + 2 * PAD + STEP * (most + 1), least) + 2 * MARGIN;
  const element = picture(width, ROW * (pieces.length + 5) + 2 * MARGIN, { role: "img", "aria-label": title });
  element.append(headline);
  const left = MARGIN + words + PAD;
  let y = MARGIN + ROW / 2;
  Object.entries({ source, output }).forEach(([name, side], number) => {
    const mean = side.reduce((sum, { steps }) => sum + steps, 0) / Math.max(side.length, 1);
    y += ROW * (number ? 2 : 1.5);
    element.append(label(MARGIN, y, `${name}, mean ${mean.toFixed(2)}`, { size: 11, color: "#555555", most: Infinity }));
    const bars = side.map(({ token, steps }) => {
      y += ROW;
      const place = { x: left, y: y - ROW / 2 + 3, width: STEP * steps, height: ROW - 6 };
      element.append(
        label(left - PAD, y, token, { anchor: "end" }),
        label(left + STEP * most + PAD, y, String(steps), { size: 11 }),
      );
      return svg("rect", place, svg("title", {}, `${drawable(token)}: ${steps} ${steps === 1 ? "step" : "steps"}`));
    });
    element.append(headGroup(number + 1, "fill", ...bars));
  });
  return element;
}
