/** SVG pictures in the style of t2t_lite/visualization: the attributes are the light colours, style.css darkens them. */

import { svg } from "./elements.js";
import { COLORS } from "./facts.js";
import { drawable, FONT, isRightToLeft, textWidth } from "./labels.js";

/** Returns an empty picture with white paper. */
export function picture(width, height, attributes) {
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  return svg(
    "svg",
    { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": FONT, class: "picture", ...attributes },
    svg("rect", { ...size, fill: "#ffffff", class: "paper" }),
  );
}

/** Returns the heading of a picture, and its width. */
export function heading(x, y, text) {
  const look = { size: 14, "font-weight": "bold", most: Infinity };
  return [label(x, y, text, look), 1.15 * textWidth(text, look.size, Infinity)]; // bold
}

/** Returns a text; x is its left, middle or right end, y the middle of its height. */
export function label(x, y, text, { size = 13, anchor = "start", color = "#222222", most = undefined, ...others } = {}) {
  const shown = drawable(text, most);
  const place = { x, y, dy: "0.35em", "font-size": size, fill: color, ...others };
  if (isRightToLeft(shown)) {
    place.direction = "rtl"; // there, text starts at its right end
    anchor = { start: "end", end: "start" }[anchor] ?? anchor;
  }
  return svg("text", { ...place, "text-anchor": anchor }, shown);
}

/** Returns the group of a head's shapes; `what` is "stroke" or "fill". */
export function headGroup(head, what, ...children) {
  const color = COLORS[(head - 1) % COLORS.length];
  const group = svg("g", { "data-head": head, [what]: color, class: `head ${what}` }, ...children);
  group.style.setProperty("--head", color);
  return group;
}
