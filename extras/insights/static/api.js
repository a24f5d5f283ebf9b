/** Calls of the server's JSON API. */

/** Returns the answer to a call. Throws an Error with the server's message, or with a description of the failure. */
export async function call(name, request) {
  const options = request && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request),
  };
  let response, answer;
  try {
    response = await fetch(`/api/${name}`, options);
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  try {
    answer = await response.json();
  } catch {
    throw new Error(`The server's answer to ${name} is not JSON (status ${response.status}).`);
  }
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
