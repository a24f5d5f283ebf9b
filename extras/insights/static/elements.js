/** Creates elements. Texts become text nodes, so that they cannot contain markup. */

/** Returns an HTML element; functions become listeners, and attributes or children that are null are omitted. */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Returns an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (typeof value === "boolean" && !name.startsWith("aria-")) element.toggleAttribute(name, value);
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Returns a paragraph that screen readers announce immediately. */
export function alertOf(message) {
  return html("p", { role: "alert", class: "error" }, message);
}

/** Returns a box in which wide content scrolls, also with the keyboard. */
export function scrolling(label, ...children) {
  return html("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": label }, ...children);
}
