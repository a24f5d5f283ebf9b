/** Pictures, sounds and other files of outputs, as the model's writers make them; known by their media types alone. */

import { call } from "./api.js";
import { saveAs } from "./download.js";
import { alertOf, html, scrolling } from "./elements.js";

const LEAST_SIDE = 196; // pixels that a small picture is enlarged to

/** Returns the ending of the pictures that a model writes, or undefined. */
export function pictureEnding({ writes }) {
  return Object.keys(writes).find((ending) => writes[ending].startsWith("image/"));
}

/** The files of one output. `question`: what was asked; `target`: the output's ids. */
export class Output {
  constructor(writes, question, target) {
    Object.assign(this, { writes, question, target });
  }

  /** Returns {files: [{name, blob}], given}: those with an ending, and the part of a picture that was given. */
  async files(ending) {
    const { files, given } = await call("files", { ...this.question, target: this.target, ending });
    return { files: files.map(({ name, type, data }) => ({ name, blob: blobOf(type, data) })), given };
  }

  /** Returns its picture as an element. */
  async picture(words) {
    const { files, given } = await this.files(pictureEnding(this));
    const frame = html("div", { class: "frame" }, ...(await Promise.all(files.map(({ blob }) => image(blob, words)))));
    if (given) {
      const part = html("div", { class: "given-part", title: "given" });
      ["left", "top", "width", "height"].forEach((side, at) => (part.style[side] = `${100 * given[at]}%`));
      frame.append(part);
    }
    return scrolling(words, frame);
  }

  /** Returns buttons that play the sounds that the browser knows, and save all files; `name`: of the output. */
  controls(name) {
    const endings = Object.keys(this.writes);
    const player = html("div");
    const play = async (ending) => {
      const { files } = await this.files(ending);
      player.replaceChildren(
        ...files.map(({ name, blob }) =>
          html("audio", { src: URL.createObjectURL(blob), controls: true, autoplay: true, "aria-label": name }),
        ),
      );
    };
    const save = async (ending) => (await this.files(ending)).files.forEach(({ name, blob }) => saveAs(name, blob));
    const button = (words, label, run, ending) => {
      const click = () => run(ending).catch((error) => player.replaceChildren(alertOf(error.message)));
      return html("button", { type: "button", click, "aria-label": `${label} ${ending.toUpperCase()}` }, words);
    };
    const probe = html("audio");
    const sounds = endings.filter((ending) => probe.canPlayType(this.writes[ending]));
    return html(
      "section",
      {},
      html(
        "div",
        { class: "row downloads" },
        ...sounds.map((ending) => button("Play", "Play", play, ending)),
        html("span", { class: "muted" }, `Download ${name}`),
        ...endings.map((ending) => button(ending.toUpperCase(), "Download output as", save, ending)),
      ),
      player,
    );
  }
}

/** Returns a picture of the API, {name, type, data}, as an element with a button that saves it. */
export async function pictureOf({ name, type, data }, words) {
  const blob = blobOf(type, data);
  const save = html("button", { type: "button", click: () => saveAs(name, blob), "aria-label": `Download ${name}` }, "PNG");
  return html(
    "div",
    {},
    scrolling(words, await image(blob, words, "chart")),
    html("div", { class: "row downloads" }, html("span", { class: "muted" }, "Download"), save),
  );
}

/** Returns a file that was chosen as a request has it; throws an Error if it is longer than `most` bytes. */
export async function fileOf(chosen, most) {
  if (chosen.size > most) {
    const [size, limit] = [chosen.size, most].map((bytes) => bytes.toLocaleString("en"));
    throw new Error(`${chosen.name}: ${size} bytes. Expected at most ${limit}.`);
  }
  const bytes = new Uint8Array(await chosen.arrayBuffer());
  return { name: chosen.name, data: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) };
}

function blobOf(type, data) {
  return new Blob([Uint8Array.from(atob(data), (character) => character.charCodeAt(0))], { type });
}

/** Returns an image; a "shot" that is small is enlarged by a whole number, so that each of its pixels is seen. */
async function image(blob, words, look = "shot") {
  const element = html("img", { alt: words, class: look });
  element.src = URL.createObjectURL(blob);
  try {
    await element.decode();
  } catch {
    throw new Error("The browser does not show this picture; download it.");
  } finally {
    URL.revokeObjectURL(element.src);
  }
  if (look !== "shot") return element;
  const scale = Math.max(1, Math.floor(LEAST_SIDE / Math.max(element.naturalWidth, element.naturalHeight)));
  element.width = scale * element.naturalWidth;
  element.height = scale * element.naturalHeight;
  return element;
}
