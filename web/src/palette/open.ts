import { signal } from "@preact/signals";

/** Whether the palette is shown. */
export const paletteShown = signal(false);

export function openPalette(): void {
  paletteShown.value = true;
}
