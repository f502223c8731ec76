import type { ITheme } from "@xterm/xterm";

/** The colours of a terminal, from those of the page. */
export function paletteOf(style: CSSStyleDeclaration): ITheme {
  const { color, backgroundColor } = style;
  const accent = style.outlineColor;
  return { foreground: color, background: backgroundColor, cursor: color, cursorAccent: backgroundColor, selectionBackground: translucent(accent) };
}

function translucent(color: string): string {
  const [red, green, blue] = color.match(/\d+/g) ?? [128, 128, 128];
  return `rgba(${red}, ${green}, ${blue}, 0.3)`;
}
