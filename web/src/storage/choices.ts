import { keptAs } from "./place";

/** What a person chose and finds again: never a secret. */
export type Choice = "theme" | "model" | "secondModel" | "directory" | "provider" | "diff" | "terminalDrawing" | "terminalReader" | "notices";

/** A choice as it was made last; `null` when it never was. */
export function choiceOf(choice: Choice): string | null {
  try {
    return localStorage.getItem(keptAs(choice));
  } catch {
    return null;
  }
}

/** Remembers a choice; `null` forgets it. */
export function choose(choice: Choice, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(keptAs(choice));
    else localStorage.setItem(keptAs(choice), value);
  } catch {
    // A browser may forbid storage; the choice then holds for this visit.
  }
}
