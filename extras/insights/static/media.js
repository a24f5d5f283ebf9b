/** Shows pictures, sounds and other files that the model's writers make of outputs, identified by media types. */

import { call } from "./api.js";
import { saveAs } from "./download.js";
import { alertOf, html, scrolling } from "./elements.js";

const LEAST_SIDE = 196; // size in pixels to which a small picture is enlarged

/** Returns the ending of the pictures that a model writes, or undefined. */
export function pictureEnding({ writes }) {
  return Object.keys(writes).find((ending) => writes[ending].startsWith("image/"));
}

/** The files of one output. `question`: the request; `target`: the output's ids. */
export class Output {
  constructor(writes, question, target) {
    Object.assign(this, { writes, question, target });
  }

  /** Returns {files: [{name, blob}], given}: the files with an ending, and the given part of a picture. */
  async files(ending) {
    const { files, given } = await call("files", { ...this.question, target: this.target, ending });
    return { files: files.map(({ name, type, data }) => ({ name, blob: blobOf(type, data) })), given };
  }

  /** Returns the output's picture as an element. */
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

  /** Returns buttons that play sounds if the browser supports them, and save all files; `name`: the output's name. */
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

/** Returns a picture from the API, {name, type, data}, as an element with a download button. */
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

/** Returns a chosen file in the format of requests; throws an Error if it is longer than `most` bytes. */
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

/** Returns an image. A small "shot" is enlarged by a whole factor, so that its pixels are visible. */
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
