/** The state of the page, which is kept in its address so that a link restores it. */

const DEFAULTS = {
  text: "", // see useExample
  second: "", // for models that read two texts
  target: "",
  models: [], // names; none: the first
  beam: 4,
  seed: 0, // of samples
  prefix: [], // ids with which the output must begin
  prefix_of: "", // name of the model to which these ids belong
  hypothesis: 1,
  tree: 0, // 1: the beam's tree is open
  kind: "",
  layer: 0, // from 1; 0: the last but one, as in the paper's figures
  heads: null, // from 1; null: all
  view: "lines",
};

/** Sets the text that the page initially shows. */
export function useExample(text) {
  DEFAULTS.text = text;
}

/** Returns the state in an address's hash; missing or invalid values get their defaults. */
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

/** Returns the hash of a state, without values that equal their defaults. */
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
  return text.split(",").filter((word) => /^\d{1,10}$/.test(word)).map(Number);
}
