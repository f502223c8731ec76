import { signal } from "@preact/signals";

/** Whether somebody wants to hear of what happens while the page is hidden. */
export const staysAwake = signal(false);

/** Whether the page asks nothing now: nobody sees it, and nobody wants to hear of anything. */
export function rests(): boolean {
  return document.visibilityState === "hidden" && !staysAwake.value;
}
