/** Formats tokens for display, as t2t_lite/visualization/drawing.py does for files. */

export const FONT = "DejaVu Sans, Verdana, Arial, sans-serif";
const MOST_CHARACTERS = 24;
// Bidirectional controls would reorder the text around them; the others have no glyph or are not allowed in XML.
const NOT_DRAWN = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\p{Cc}\p{Cs}\p{Cn}\p{Co}\p{Zl}\p{Zp}]/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

const pen = document.createElement("canvas").getContext("2d");

/** Returns a token with U+FFFD for characters that cannot be drawn, truncated to `most` characters. */
export function drawable(text, most = MOST_CHARACTERS) {
  const characters = [...text];
  const cut = characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
  return cut.replace(NOT_DRAWN, "\ufffd");
}

/** Returns whether the first letter is written from right to left. */
export function isRightToLeft(text) {
  const letter = text.match(/\p{L}/u);
  return letter !== null && RIGHT_TO_LEFT.test(letter[0]);
}

/** Returns the width in pixels of a token or a longer text when drawn. */
export function textWidth(text, size = 13, most = MOST_CHARACTERS) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(drawable(text, most)).width;
}

/** Splits a text into lines of at most `width` pixels, if its words are not wider. */
export function wrapped(text, width, size) {
  const lines = [];
  for (const word of text.split(" ").filter(Boolean)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && textWidth(longer, size, Infinity) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Returns a probability as text with three digits. */
export function percent(probability) {
  return `${(100 * probability).toPrecision(3)} %`;
}
