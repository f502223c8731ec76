// Measures the page in Chromium, before a real server. WARREN names the server's program, and DIST the page, as for the tests.
//
//   npm run bench                        everything
//   npm run bench -- echo start          some of it: throughput, echo, start, scrolling, memory
//   npm run bench -- throughput --mib 32
//   npm run bench -- memory --minutes 30
import { parseArgs } from "node:util";
import { echo } from "./echo.mjs";
import { memory } from "./memory.mjs";
import { scrolling } from "./scrolling.mjs";
import { start } from "./start.mjs";
import { throughput } from "./throughput.mjs";

const ALL = { throughput, echo, start, scrolling, memory };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { mib: { type: "string", default: "16" }, keys: { type: "string", default: "200" }, minutes: { type: "string", default: "1" }, json: { type: "boolean", default: false } },
});
const asked = { mib: Number(values.mib), keys: Number(values.keys), minutes: Number(values.minutes) };
if (!process.env.WARREN) throw new Error("WARREN names the server's program; it is not set.");
const unknown = positionals.filter((name) => !ALL[name]);
if (unknown.length) throw new Error(`There is no benchmark ${unknown.join(", ")}; there are ${Object.keys(ALL).join(", ")}.`);
if (!Object.values(asked).every((number) => number > 0)) throw new Error("--mib, --keys and --minutes are numbers above 0.");

/** Each row has a name, a figure with its unit, a goal where there is one, and whether that is reached. */
const rows = [];
for (const [name, run] of Object.entries(ALL)) {
  if (positionals.length && !positionals.includes(name)) continue;
  for (const row of await run(asked)) rows.push({ benchmark: name, ...row, reached: reached(row) });
}
if (!values.json) console.table(rows.map(({ benchmark, what, value, unit, goal, reached }) => ({ benchmark, what, value: round(value), unit, goal: goal ?? "", reached: reached ?? "" })));
console.log(JSON.stringify({ at: new Date().toISOString(), ...asked, rows }));
if (rows.some(({ reached }) => reached === false)) process.exitCode = 1;

/** A goal such as `≥ 0.7` or `≤ 50`. */
function reached({ value, goal }) {
  if (!goal) return undefined;
  const [sign, bound] = goal.split(" ");
  return sign === "≥" ? value >= Number(bound) : value <= Number(bound);
}

function round(value) {
  return Math.abs(value) >= 100 ? Math.round(value) : Math.round(value * 100) / 100;
}
