/** The page: its form, its address, and the results below. */

import { call } from "./api.js";
import { alertOf, html } from "./elements.js";
import { Result } from "./result.js";
import { hashOf, readState } from "./state.js";

const part = (id) => document.getElementById(id);
const QUESTION = ["text", "second", "target", "models", "beam", "prefix", "prefix_of"]; // changes of these ask the server again

let state = readState(location.hash);
let models = [];
let results = [];

const chosen = () => {
  const found = models.filter(({ name }) => state.models.includes(name));
  return found.length ? found : models.slice(0, 1);
};

function fillForm() {
  part("text").value = state.text;
  part("second").value = state.second;
  part("target").value = state.target;
  part("beam").value = state.beam;
  for (const box of part("models").querySelectorAll("input")) box.checked = chosen().some(({ name }) => name === box.value);
  const makesText = chosen().some(({ calls }) => calls.includes("steps"));
  for (const id of ["target-field", "beam-field"]) part(id).hidden = !makesText;
  part("second-field").hidden = !chosen().some(({ inputs }) => inputs.length > 1);
}

/** Changes what is seen; the address follows. */
function set(changes) {
  state = { ...state, ...changes };
  history.replaceState(null, "", hashOf(state));
  const apply = "hypothesis" in changes ? "show" : "update";
  results.forEach((result) => result[apply](state));
}

/** Asks a new question; the browser's back button returns to the one before. */
async function ask(changes, isNew = true) {
  state = { ...state, ...changes };
  if (isNew && hashOf(state) !== location.hash) history.pushState(null, "", hashOf(state));
  fillForm();
  part("errors").replaceChildren();
  part("results").replaceChildren();
  results = [];
  if (!state.text.trim()) return;
  const force = (prefix, prefix_of = "") => ask({ prefix, prefix_of, target: "", hypothesis: 1 });
  const asked = (results = chosen().map((model) => new Result(model, { set, force })));
  part("results").append(...asked.map((result) => result.element));
  part("status").textContent = "Asking the model …";
  const { problem } = models.find(({ name }) => name === state.prefix_of) ?? {};
  // Ids mean the same tokens in models of one problem alone.
  const of = (result) => (result.model.problem === problem ? state : { ...state, prefix: [] });
  await Promise.all(asked.map((result) => result.load(of(result))));
  if (asked === results) part("status").textContent = "";
}

function listModels() {
  part("models").hidden = models.length < 2;
  part("models").append(
    ...models.map(({ name }) => {
      const box = html("input", { type: "checkbox", value: name, change: chooseModels });
      return html("label", { class: "inline" }, box, name);
    }),
  );
}

function chooseModels() {
  const boxes = [...part("models").querySelectorAll("input")];
  ask({ models: boxes.filter((box) => box.checked).map((box) => box.value), layer: 0, heads: null });
}

part("question").addEventListener("submit", (event) => {
  event.preventDefault();
  const [text, second, target, beam] = ["text", "second", "target", "beam"].map((id) => part(id).value);
  ask({ text, second, target, beam: Number(beam), prefix: [], prefix_of: "", hypothesis: 1 });
});

for (const id of ["text", "second", "target"]) {
  part(id).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) part("question").requestSubmit();
  });
}

addEventListener("popstate", () => {
  const before = state;
  state = readState(location.hash);
  fillForm();
  if (QUESTION.some((name) => String(before[name]) !== String(state[name]))) ask({}, false);
  else results.forEach((result) => result.show(state));
});

try {
  models = await call("models");
  part("about").textContent = models.map(({ name }) => name).join(", ");
  listModels();
  await ask({}, false);
} catch (error) {
  part("errors").append(alertOf(error.message));
}
