/** Draws attention weights as matrices: rows are queries, columns are keys, and darker cells have larger weights. */

import { svg } from "./elements.js";
import { AXES, SMALLEST } from "./facts.js";
import { headGroup, heading, label, picture } from "./figure.js";
import { isRightToLeft, textWidth } from "./labels.js";

const MARGIN = 14, SPACE = 18, SLANT = -50;

/** Returns a picture with a matrix for each of `matrices`, [{ head, name, rows: [queries][keys] }]. `kind`: the kind of attention. */
export function heatMaps({ kind, queries, keys, matrices, title, room }) {
  const cell = Math.max(queries.length, keys.length) <= 60 ? 18 : 12;
  const size = cell * 0.7;
  const longest = Math.max(...keys.map((key) => textWidth(key, size)));
  const left = Math.max(...queries.map((query) => textWidth(query, size))) + 6;
  const above = longest * 0.77 + 30; // sine of the labels' slant
  const width = left + cell * keys.length + longest * 0.65 + SPACE; // cosine of the labels' slant
  const height = above + cell * queries.length + SPACE;
  const columns = Math.max(1, Math.min(matrices.length, Math.floor((room - 2 * MARGIN) / width)));
  const top = MARGIN + 44;
  const [headline, least] = heading(MARGIN, MARGIN + 8, title);
  const axes = label(MARGIN, MARGIN + 28, AXES[kind], { size: 10, most: Infinity });
  const whole = Math.max(width * columns, least, textWidth(AXES[kind], 10, Infinity)) + 2 * MARGIN;
  const element = picture(whole, top + height * Math.ceil(matrices.length / columns), {
    role: "img",
    "aria-label": title,
  });
  element.append(headline, axes);
  const turned = isRightToLeft(keys.join(" "));
  const column = (key) => (turned ? keys.length - 1 - key : key);
  matrices.forEach(({ head, name, rows }, at) => {
    const x0 = MARGIN + width * (at % columns) + left;
    const y0 = top + height * Math.floor(at / columns) + above;
    const cells = rows.flatMap((row, query) =>
      row.map((weight, key) => {
        if (weight < SMALLEST) return null;
        const place = { x: x0 + cell * column(key), y: y0 + cell * query, width: cell, height: cell };
        const numbers = { "data-query": query, "data-key": key, "data-weight": weight };
        return svg("rect", { ...place, "fill-opacity": weight, ...numbers });
      }),
    );
    element.append(
      label(x0, y0 - above + 8, name, { size: 12, "font-weight": "bold" }),
      svg("rect", {
        x: x0, y: y0, width: cell * keys.length, height: cell * queries.length, fill: "#f4f4f4", class: "matrix",
      }),
      headGroup(head, "fill", ...cells),
      ...queries.map((query, row) => label(x0 - 5, y0 + cell * (row + 0.5), query, { size, anchor: "end" })),
      ...keys.map((key, at) => {
        const x = x0 + cell * (column(at) + 0.5);
        return label(x, y0 - 6, key, { size, transform: `rotate(${SLANT} ${x} ${y0 - 6})` });
      }),
    );
  });
  return element;
}

/** Returns the note of the cell under a pointer, or "". */
export function cellNote(target, queries, keys) {
  const { query, key, weight } = target.dataset;
  return weight === undefined ? "" : `${queries[query]} → ${keys[key]}: ${Number(weight).toFixed(3)}`;
}
