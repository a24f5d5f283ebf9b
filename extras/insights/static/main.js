/** The page: its form, its address, and the results below. */

import { call } from "./api.js";
import { alertOf, html } from "./elements.js";
import { LONGEST_FILE } from "./facts.js";
import { fileOf, pictureEnding } from "./media.js";
import { Result } from "./result.js";
import { hashOf, readState, useExample } from "./state.js";

const part = (id) => document.getElementById(id);
const QUESTION = ["text", "second", "target", "models", "beam", "seed", "prefix", "prefix_of"]; // changes to these fields send a new request

let state = readState(location.hash);
let models = [];
let results = [];
let file = null; // a file instead of the text, which an address cannot contain

const chosen = () => {
  const found = models.filter(({ name }) => state.models.includes(name));
  return found.length ? found : models.slice(0, 1);
};

function fillForm() {
  part("text").value = state.text;
  part("second").value = state.second;
  part("target").value = state.target;
  part("beam").value = state.beam;
  part("seed").value = state.seed;
  for (const box of part("models").querySelectorAll("input")) box.checked = chosen().some(({ name }) => name === box.value);
  const makesText = chosen().some(({ calls }) => calls.includes("steps"));
  const samples = chosen().some((model) => model.samples);
  const reads = chosen().flatMap((model) => model.reads);
  part("beam-field").hidden = !makesText;
  part("beam-name").textContent = samples ? "Samples" : "Beam size";
  part("seed-field").hidden = !samples;
  part("target-field").hidden = !chosen().some((model) => model.calls.includes("steps") && !pictureEnding(model));
  part("file-field").hidden = !reads.length;
  part("file").accept = reads.map((ending) => `.${ending}`).join(",");
  part("no-file").hidden = !part("file").files.length;
  part("text").required = !reads.length;
  part("second-field").hidden = !chosen().some(({ inputs }) => inputs.length > 1);
}

/** Changes the page's state and its address. */
function set(changes) {
  state = { ...state, ...changes };
  history.replaceState(null, "", hashOf(state));
  const apply = "hypothesis" in changes ? "show" : "update";
  results.forEach((result) => result[apply](state));
}

/** Sends a new request; the browser's back button returns to the previous one. */
async function ask(changes, isNew = true, isAsked = Boolean(file)) {
  state = { ...state, ...changes };
  if (isNew && hashOf(state) !== location.hash) history.pushState(null, "", hashOf(state));
  fillForm();
  part("errors").replaceChildren();
  part("results").replaceChildren();
  results = [];
  if (!state.text.trim() && !isAsked) return;
  const force = (prefix, prefix_of = "") => ask({ prefix, prefix_of, target: "", hypothesis: 1 });
  const asked = (results = chosen().map((model) => new Result(model, { set, force, file })));
  part("results").append(...asked.map((result) => result.element));
  part("status").textContent = "Asking the model …";
  const { vocabulary } = models.find(({ name }) => name === state.prefix_of) ?? {};
  // Ids only mean the same tokens in models with the same vocabulary.
  const of = (result) => (result.model.vocabulary === vocabulary ? state : { ...state, prefix: [] });
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

part("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  const [text, second, target] = ["text", "second", "target"].map((id) => (part(id).closest("[hidden]") ? "" : part(id).value));
  const [beam, seed] = ["beam", "seed"].map((id) => Number(part(id).value));
  const [given] = part("file-field").hidden ? [] : part("file").files;
  try {
    file = given ? await fileOf(given, LONGEST_FILE) : null;
  } catch (error) {
    part("results").replaceChildren();
    part("errors").replaceChildren(alertOf(error.message));
    return;
  }
  const changes = { text: file ? "" : text, second, target, beam, seed, prefix: [], prefix_of: "", hypothesis: 1 };
  ask(changes, true, true);
});

part("file").addEventListener("change", () => {
  part("no-file").hidden = !part("file").files.length;
});

part("no-file").addEventListener("click", () => {
  part("file").value = "";
  part("no-file").hidden = true;
});

for (const id of ["text", "second", "target"]) {
  part(id).addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) part("question").requestSubmit();
  });
}

addEventListener("popstate", () => {
  const before = state;
  state = readState(location.hash);
  if (state.text) {
    file = null; // the question of this address is a text
    part("file").value = "";
  }
  fillForm();
  if (QUESTION.some((name) => String(before[name]) !== String(state[name]))) ask({}, false);
  else results.forEach((result) => result.show(state));
});

try {
  models = await call("models");
  part("about").textContent = models.map(({ name }) => name).join(", ");
  useExample(models[0].example);
  state = readState(location.hash);
  listModels();
  await ask({}, false);
} catch (error) {
  part("errors").append(alertOf(error.message));
}
