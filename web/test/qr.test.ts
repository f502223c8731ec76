import jsQR from "jsqr";
import { describe, expect, test } from "vitest";
import { drawn } from "../src/parts/qr";

/** Pixels of a side of a square; readers want some. */
const SCALE = 4;

/** The picture that a path of the QR code draws, in black and white. */
function pixels({ path, size }: { path: string; size: number }): Uint8ClampedArray {
  const side = size * SCALE;
  const picture = new Uint8ClampedArray(side * side * 4).fill(255);
  for (const [, x, y, wide] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\d+z/g)) {
    for (let row = 0; row < SCALE; row += 1) {
      const from = ((Number(y) * SCALE + row) * side + Number(x) * SCALE) * 4;
      for (let at = 0; at < Number(wide) * SCALE; at += 1) picture.fill(0, from + at * 4, from + at * 4 + 3);
    }
  }
  return picture;
}

describe("a QR code", () => {
  test.each([
    "http://192.168.1.20:9178/#room=K7MPX2",
    "https://a-rather-long-name.of-a-machine.example.org/warren/#login=AAAAAAAAAAAAAAAAAAAAAA",
    `https://example.org/${"x".repeat(150)}`,
  ])("is read as what it says: %s", (text) => {
    const code = drawn(text);
    const side = code.size * SCALE;
    expect(jsQR(pixels(code), side, side)?.data).toBe(text);
  });
});
