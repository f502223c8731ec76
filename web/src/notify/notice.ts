import type { NoticeKind } from "./choices";

/** Something that a person wanted to be told of. */
export interface Notice {
  /** The same in every tab that sees it. */
  key: string;
  kind: NoticeKind;
  title: string;
  body: string;
  /** The address within the page that shows it. */
  href: string;
}
