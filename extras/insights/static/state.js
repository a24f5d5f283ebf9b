/** What the page shows, kept in the address: a link shows the same again. */

const DEFAULTS = {
  text: "", // see useExample
  second: "", // of models that read two texts
  target: "",
  models: [], // names; none: the first
  beam: 4,
  seed: 0, // of samples
  prefix: [], // ids with which the output has to begin
  prefix_of: "", // the name of the model whose ids they are
  hypothesis: 1,
  tree: 0, // 1: the beam's tree is open
  kind: "",
  layer: 0, // from 1; 0: the last but one, as in the paper's figures
  heads: null, // from 1; null: all
  view: "lines",
};

/** Makes a text the one with which the page begins. */
export function useExample(text) {
  DEFAULTS.text = text;
}

/** Returns the state that an address' hash describes; what is missing or wrong has its default. */
export function readState(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) {
    if (!given.has(name)) continue;
    const value = given.get(name);
    if (typeof DEFAULTS[name] === "number") state[name] = wholeNumbers(value)[0] ?? DEFAULTS[name];
    else if (name === "prefix" || name === "heads") state[name] = wholeNumbers(value);
    else if (name === "models") state[name] = given.getAll(name);
    else state[name] = value;
  }
  return state;
}

/** Returns the hash of a state, without what is at its default. */
export function hashOf(state) {
  const shown = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (String(value) === String(DEFAULTS[name]) && (value === null) === (DEFAULTS[name] === null)) continue;
    if (name === "models") value.forEach((model) => shown.append(name, model));
    else shown.set(name, value);
  }
  return `#${shown}`;
}

function wholeNumbers(text) {
  return text.split(",").filter((word) => /^\d{1,9}$/.test(word)).map(Number);
}
