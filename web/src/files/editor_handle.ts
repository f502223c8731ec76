import { signal } from "@preact/signals";

/** What the bar above the text does in it. */
export interface EditorHandle {
  undo: () => void;
  redo: () => void;
  search: () => void;
  focus: () => void;
}

/** The text that is shown; `null` while there is none. */
export const editorHandle = signal<EditorHandle | null>(null);

/** Whether long lines are wrapped. */
export const isWrapped = signal(matchMedia("(max-width: 760px)").matches);

/** Where the cursor is: its line and column. */
export const cursorAt = signal<{ line: number; column: number } | null>(null);
