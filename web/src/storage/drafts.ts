import { keptAs } from "./place";

/** The longest draft that is kept, in characters. */
const MAX_DRAFT = 200_000;

const name = (id: string) => keptAs(`draft.${id}`);

/** What was typed and not sent, in a conversation or (`new`) in one that has not begun. */
export function draftOf(id: string): string {
  try {
    return localStorage.getItem(name(id)) ?? "";
  } catch {
    return "";
  }
}

/** Keeps what is typed, so that a closed tab or a lost server costs nothing. */
export function keepDraft(id: string, text: string): void {
  try {
    if (text && text.length <= MAX_DRAFT) localStorage.setItem(name(id), text);
    else localStorage.removeItem(name(id));
  } catch {
    // Storage is full or forbidden: the text is still in its field.
  }
}
