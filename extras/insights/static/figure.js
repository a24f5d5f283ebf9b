/** SVG pictures in the style of t2t_lite/visualization: the attributes have the light colours, and style.css has the dark ones. */

import { svg } from "./elements.js";
import { COLORS } from "./facts.js";
import { drawable, FONT, isRightToLeft, textWidth } from "./labels.js";

/** Returns an empty picture with a white background. */
export function picture(width, height, attributes) {
  const size = { width: Math.ceil(width), height: Math.ceil(height) };
  return svg(
    "svg",
    { ...size, viewBox: `0 0 ${size.width} ${size.height}`, "font-family": FONT, class: "picture", ...attributes },
    svg("rect", { ...size, fill: "#ffffff", class: "paper" }),
  );
}

/** Returns the heading of a picture and the heading's width. */
export function heading(x, y, text) {
  const look = { size: 14, "font-weight": "bold", most: Infinity };
  return [label(x, y, text, look), 1.15 * textWidth(text, look.size, Infinity)]; // bold
}

/** Returns a text element; x is its left, middle or right end, and y its vertical middle. */
export function label(x, y, text, { size = 13, anchor = "start", color = "#222222", most = undefined, ...others } = {}) {
  const shown = drawable(text, most);
  const place = { x, y, dy: "0.35em", "font-size": size, fill: color, ...others };
  if (isRightToLeft(shown)) {
    place.direction = "rtl"; // right-to-left text starts at its right end
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
