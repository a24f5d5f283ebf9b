/** Saves the visible picture as SVG, PNG or JSON. PNGs are painted here, because an SVG loaded as an image has other fonts. */

import { html } from "./elements.js";

const LONGEST_SIDE = 8192, MOST_PIXELS = 40e6; // of a PNG

/** Returns buttons. `picture`: function that returns the SVG element, or null; `data`: function that returns the data for JSON. */
export function downloads(name, picture, data) {
  const button = (format, save) =>
    html("button", { type: "button", click: save, "aria-label": `Download ${name} as ${format}` }, format);
  const pictures = picture && [
    button("SVG", () => saveAs(`${name}.svg`, new Blob([svgText(picture())], { type: "image/svg+xml" }))),
    button("PNG", async () => saveAs(`${name}.png`, await pngOf(seen(picture())))),
  ];
  const json = button("JSON", () => {
    saveAs(`${name}.json`, new Blob([JSON.stringify(data(), null, 1)], { type: "application/json" }));
  });
  return html("div", { class: "row downloads" }, html("span", { class: "muted" }, "Download"), ...(pictures ?? []), json);
}

/** Saves a Blob as a file. */
export function saveAs(name, blob) {
  const link = html("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function svgText(picture) {
  return `${new XMLSerializer().serializeToString(seen(picture))}\n`;
}

/** Returns a copy without hidden elements and without attributes for style.css and the keyboard. */
function seen(picture) {
  const copy = picture.cloneNode(true);
  copy.querySelectorAll(".off, .hidden").forEach((part) => part.remove());
  for (const part of [copy, ...copy.querySelectorAll("*")]) {
    for (const name of ["style", "class", "tabindex", "role", "aria-pressed"]) part.removeAttribute(name);
  }
  return copy;
}

/** Paints the rectangles, lines and texts of a picture, if possible at twice the size on screen, and returns a Blob. */
async function pngOf(picture) {
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
  const scale = Math.min(2, LONGEST_SIDE / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
  const canvas = html("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  for (const shape of picture.querySelectorAll("rect, line, text")) {
    const value = (name) => shape.closest(`[${name}]`)?.getAttribute(name);
    const number = (name) => Number(value(name) ?? 1);
    const own = (name) => Number(shape.getAttribute(name));
    if (shape.tagName === "line") {
      Object.assign(pen, { globalAlpha: number("stroke-opacity"), strokeStyle: value("stroke"), lineWidth: number("stroke-width") });
      pen.beginPath();
      pen.moveTo(own("x1"), own("y1"));
      pen.lineTo(own("x2"), own("y2"));
      pen.stroke();
    } else {
      Object.assign(pen, { globalAlpha: number("fill-opacity"), fillStyle: value("fill") });
      if (shape.tagName === "rect") {
        const place = [own("x"), own("y"), own("width"), own("height")];
        pen.fillRect(...place);
        Object.assign(pen, { strokeStyle: shape.getAttribute("stroke"), lineWidth: 1 });
        if ((shape.getAttribute("stroke") ?? "none") !== "none") pen.strokeRect(...place);
      } else paintText(pen, shape, own, value);
    }
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function paintText(pen, shape, own, value) {
  pen.save();
  const rotation = shape.getAttribute("transform")?.match(/rotate\(([-\d.]+)/);
  pen.translate(own("x"), own("y"));
  if (rotation) pen.rotate((Number(rotation[1]) * Math.PI) / 180);
  pen.font = `${value("font-weight") ?? "normal"} ${own("font-size")}px ${value("font-family")}`;
  pen.direction = shape.getAttribute("direction") ?? "ltr";
  pen.textAlign = { start: "start", middle: "center", end: "end" }[shape.getAttribute("text-anchor")];
  pen.textBaseline = "middle";
  pen.fillText(shape.textContent, 0, 0);
  pen.restore();
}
