import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { choiceOf, choose } from "../storage/choices";

/** Wide enough for two columns of code. */
const WIDE = "(min-width: 1100px)";

/** Whether a person wants what was and what is side by side. */
export const wantsBeside = signal(choiceOf("diff") !== "unified");

/** Remembers what the person wants. */
export function chooseBeside(beside: boolean): void {
  wantsBeside.value = beside;
  choose("diff", beside ? null : "unified");
}

/** Whether a diff is shown side by side here: a phone has no room for it. */
export function useBeside(): boolean {
  const [isWide, setIsWide] = useState(() => matchMedia(WIDE).matches);
  useEffect(() => {
    const query = matchMedia(WIDE);
    const read = () => setIsWide(query.matches);
    query.addEventListener("change", read);
    return () => query.removeEventListener("change", read);
  }, []);
  return isWide && wantsBeside.value;
}
