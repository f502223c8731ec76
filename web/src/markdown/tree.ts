/** A piece of text within a line. */
export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "break" }
  | { kind: "strong" | "em" | "strike"; inner: Inline[] }
  | { kind: "link"; href: string; inner: Inline[] };

/** A block of a text. */
export type Block =
  | { kind: "paragraph"; text: string }
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; language: string; text: string; closed: boolean }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Item[] }
  | { kind: "table"; align: Align[]; head: string[]; rows: string[][] }
  | { kind: "rule" };

/** One item of a list. `done` is set for tasks. */
export interface Item {
  done: boolean | null;
  blocks: Block[];
}

/** How a column of a table is aligned. */
export type Align = "left" | "right" | "center" | null;
