import { signal } from "@preact/signals";

/** How many notices came since the page was looked at. */
export const unseen = signal(0);

/** The title of the window: how many notices are unseen, then the page. */
export function titled(title: string): string {
  return unseen.value ? `(${unseen.value}) ${title}` : title;
}
