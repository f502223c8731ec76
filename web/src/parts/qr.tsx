import { correction, generate } from "lean-qr";

/** Light squares around a code, as readers need them. */
const MARGIN = 3;

/** A text as a QR code, dark on light in every theme. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const { path, size } = drawn(text);
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}

/** The dark squares, row by row in as few strokes as there are runs. */
export function drawn(text: string): { path: string; size: number } {
  const code = generate(text, { minCorrectionLevel: correction.M });
  let path = "";
  for (let y = 0; y < code.size; y += 1) {
    for (let x = 0; x < code.size; x += 1) {
      if (!code.get(x, y)) continue;
      const from = x;
      while (code.get(x + 1, y)) x += 1;
      path += `M${from + MARGIN} ${y + MARGIN}h${x - from + 1}v1h${from - x - 1}z`;
    }
  }
  return { path, size: code.size + 2 * MARGIN };
}
