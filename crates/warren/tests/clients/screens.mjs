// Compares two terminals of xterm.js: one reads what a program wrote, one the snapshot of that.
//
// `screens.mjs PROGRAM ARGUMENTS`: PROGRAM prints the cases, one a line. Both terminals must be
// alike after the past and after the rest, and so must be the page that they go back to.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { installed } from "./scenario.mjs";

const { Terminal } = installed("@xterm/headless");
const { Unicode11Addon } = installed("@xterm/addon-unicode11");

/** How many cases that failed are told in full. */
const TOLD = 5;

class Screen {
  constructor({ cols, rows, flows }) {
    this.flows = flows;
    // Titles are saved where that is allowed. Without a history: it would move what is saved as a place of the cursor.
    const windowOptions = { pushTitle: true, popTitle: true };
    const options = { cols, rows, windowOptions, scrollback: 0, allowProposedApi: true, logLevel: "off" };
    this.terminal = new Terminal(options);
    // The widths of version 6, which is what it has without this, make an emoji one cell wide.
    this.terminal.loadAddon(new Unicode11Addon());
    this.terminal.unicode.activeVersion = "11";
    this.title = "";
    this.terminal.onTitleChange((title) => (this.title = title.trim()));
    this.answers = "";
    this.terminal.onData((data) => (this.answers += data));
  }

  /** Not `write`: an error in there would be nobody's. */
  read(text) {
    this.terminal._core.writeSync(text);
  }

  state() {
    const { buffer } = this.terminal;
    // What is held back until an update is complete is in the snapshot already.
    const { synchronizedOutputMode: _, ...modes } = this.terminal.modes;
    return {
      page: buffer.active.type,
      shown: this.page(buffer.active),
      primary: this.page(buffer.normal),
      modes,
      hidden: this.hidden(),
      title: this.title,
    };
  }

  page(buffer) {
    const rows = {};
    for (let row = 0; row < this.terminal.rows; row++) {
      const line = buffer.getLine(buffer.baseY + row);
      rows[row] = this.cells(line);
      // What becomes of this when lines are written again differs; so it is only compared where
      // they are not. The first row is for those above it.
      rows[row].continues = this.flows && row > 0 && line.isWrapped;
    }
    const active = buffer.type === this.terminal.buffer.active.type;
    return { rows, cursor: active ? [buffer.cursorX, buffer.cursorY] : null };
  }

  cells(line) {
    const cells = {};
    for (let column = 0; column < this.terminal.cols; column++) {
      cells[column] = this.cell(line.getCell(column));
    }
    return cells;
  }

  cell(cell) {
    const fg = `${cell.getFgColorMode()}:${cell.getFgColor()}`;
    const bg = `${cell.getBgColorMode()}:${cell.getBgColor()}`;
    const drawn = [
      cell.isInverse() && "inverse",
      cell.isStrikethrough() && "struck",
      cell.isOverline() && "overlined",
      cell.isProtected?.() && "protected",
      cell.isUnderline() && `underline ${cell.extended.underlineStyle || 1} ${this.underlineColour(cell)}`,
      // Its address is forgotten with the row that it began in.
      cell.extended.urlId && "link",
    ].filter(Boolean);
    if ([undefined, "", " "].includes(cell.getChars()) && cell.getWidth() === 1) {
      // Of a blank nobody sees whether it was printed or erased, nor what is not drawn on it.
      return ["blank", drawn.length ? fg : "any", bg, ...drawn].join(" ");
    }
    const looks = [
      cell.isBold() && "bold",
      cell.isDim() && "dim",
      cell.isItalic() && "italic",
      cell.isBlink() && "blinking",
      cell.isInvisible() && "hidden",
    ].filter(Boolean);
    return [cell.getChars(), cell.getWidth(), fg, bg, ...looks, ...drawn].join(" ");
  }

  underlineColour({ extended }) {
    // What was never set, and what was cleared.
    return [0, 0x3ffffff].includes(extended.underlineColor) ? "" : extended.underlineColor;
  }

  /** What no method tells: read from the inside. */
  hidden() {
    const core = this.terminal._core;
    const buffer = core.buffers.active;
    return {
      margins: [buffer.scrollTop, buffer.scrollBottom],
      cursorHidden: core.coreService.isCursorHidden,
      cursorStyle: core.coreService.decPrivateModes.cursorStyle ?? core.options.cursorStyle,
      cursorBlink: core.coreService.decPrivateModes.cursorBlink ?? core.options.cursorBlink,
      mouseEncoding: core.coreMouseService.activeEncoding,
      keypad: core.coreService.decPrivateModes.applicationKeypad,
      lineFeed: core.options.convertEol,
      charset: core._charsetService.glevel,
    };
  }
}

/** Where two states differ, first things first. */
function differences(left, right, path = "") {
  if (left instanceof Object && right instanceof Object) {
    const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
    return [...keys].flatMap((key) => differences(left[key], right[key], `${path}/${key}`));
  }
  return left === right ? [] : [`${path}: ${JSON.stringify(left)}, after the snapshot ${JSON.stringify(right)}`];
}

/** What is wrong with a case; nothing, if all is well. */
export function faults(test) {
  const [watched, joined] = [new Screen(test), new Screen(test)];
  const compare = (when) => differences(watched.state(), joined.state()).map((found) => `${when}: ${found}`);
  watched.read(test.past);
  joined.read(test.snapshot);
  const asked = joined.answers && [`the snapshot asks: ${JSON.stringify(joined.answers)}`];
  let found = [...asked, ...compare("after the past")];
  for (const text of [test.rest, "\x18\x1b[?1049l"]) {
    if (found.length === 0) {
      [watched, joined].forEach((screen) => screen.read(text));
      found = compare(text === test.rest ? "after the rest" : "back on the primary page");
    }
  }
  [watched, joined].forEach((screen) => screen.terminal.dispose());
  return found;
}

async function main([program, ...words]) {
  const cases = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((done) => cases.once("close", done));
  let [run, failed] = [0, 0];
  for await (const line of createInterface({ input: cases.stdout })) {
    const test = JSON.parse(line);
    const found = faults(test);
    run += 1;
    failed += found.length > 0;
    if (found.length > 0 && failed <= TOLD) {
      console.log(`${test.name}, ${test.cols}x${test.rows}:\n  ${found.slice(0, 8).join("\n  ")}\n  ${line}`);
    }
  }
  console.log(`${run} cases, ${failed} failed`);
  process.exitCode = (await ended) || run === 0 || failed > 0 ? 1 : 0;
}

if (process.argv[1] === import.meta.filename) {
  await main(process.argv.slice(2));
}
