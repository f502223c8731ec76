// How a script of scenarios is run: `SCRIPT.mjs NAME`, or `SCRIPT.mjs --list` for all names.
//
// A scenario is a function; it fails by throwing. The server is told by the environment, and so is
// where the packages are installed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";

export const { SERVER_URL: URL, SERVER_KEY: KEY, MODEL } = process.env;
// A red dot.
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO" +
  "9TXL0Y4OHwAAAABJRU5ErkJggg==";

export const installed = createRequire(`${process.env.PACKAGES}/`);

export async function run(scenarios) {
  const name = process.argv[2];
  if (name === "--list") {
    console.log(Object.keys(scenarios).join("\n"));
    return;
  }
  await scenarios[name]();
}

/** Tells the test something, and waits until it has seen that happen. */
export async function told(what) {
  console.log(what);
  process.stdin.resume();
  await once(process.stdin, "data");
  // An open input would keep the process.
  process.stdin.pause();
}

export const hungUp = () => told("hung up");

/** Checks that an error is of just this class, has the status, and tells these words. */
export async function throws(kind, action, status, words) {
  try {
    await action();
  } catch (error) {
    assert.equal(error.constructor.name, kind.name);
    assert.equal(error.status, status);
    assert.ok(error.message.includes(words), `${words} is not in ${error.message}`);
    return error;
  }
  assert.fail(`${kind.name} was expected`);
}
