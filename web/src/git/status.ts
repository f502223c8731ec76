import type { ChangeStatus, GitChange } from "../api/generated";
import { count } from "../live/words";
import { isObject, numberOf, textOf, type Answer } from "../workspace/protocol";

/** Where a change is: in the index, in the files, or in files that git does not know. */
export type Area = "staged" | "unstaged" | "untracked";

/** A file that changed. */
export interface Change {
  area: Area;
  path: string;
  letter: Letter;
  /** Its former name, or the source of a copy. */
  from: string | null;
}

/** How a file changed: git's letters, and `?` for a file that git does not know. */
export type Letter = ChangeStatus | "?";

/** The state of a project's files in git. */
export interface Status {
  isRepository: boolean;
  branch: string | null;
  upstream: string | null;
  ahead: number;
  behind: number;
  changes: Change[];
  /** How many changes are left out. */
  more: number;
}

/** The most changes that are shown, and the longest path. */
const MAX_CHANGES = 3000;
const MAX_PATH = 4096;

const WORDS: Record<Letter, string> = { M: "changed", A: "new", D: "deleted", R: "renamed", C: "copied", T: "another kind of file", U: "conflict", "?": "new, not known to git" };

/** What a change is, in words. */
export function wordsOfChange({ letter, from }: Change): string {
  return from ? `${WORDS[letter]} from ${from}` : WORDS[letter];
}

/** Whether two are the same change, at two times. */
export function isSameChange(a: Change, b: Change): boolean {
  return a.area === b.area && a.path === b.path;
}

/** What is said of a branch and the one that it follows. */
export function wordsOfBranch({ upstream, ahead, behind }: Status): string {
  if (!upstream) return "follows no other branch";
  const differs = [ahead && `${count(ahead, "commit")} ahead`, behind && `${count(behind, "commit")} behind`].filter(Boolean).join(", ");
  return differs ? `${differs} of ${upstream}` : `as ${upstream}`;
}

/** The status in a `git_status_result`. */
export function statusOf(message: Answer<"git_status_result">): Status {
  const all = [
    ...listOf(message["staged"]).map((each) => changeOf("staged", each)),
    ...listOf(message["unstaged"]).map((each) => changeOf("unstaged", each)),
    ...listOf(message["untracked"]).map(unknownOf),
  ].filter((each) => each !== null);
  return {
    isRepository: message["is_repo"] === true,
    branch: textOf(message["branch"]).slice(0, MAX_PATH) || null,
    upstream: textOf(message["upstream"]).slice(0, MAX_PATH) || null,
    ahead: numberOf(message["ahead"]) ?? 0,
    behind: numberOf(message["behind"]) ?? 0,
    changes: all.slice(0, MAX_CHANGES),
    more: Math.max(0, all.length - MAX_CHANGES),
  };
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function changeOf(area: Area, value: unknown): Change | null {
  if (!isObject<GitChange>(value)) return null;
  const path = textOf(value["path"]);
  return isPath(path) ? { area, path, letter: letterOf(value["status"]), from: textOf(value["from"]).slice(0, MAX_PATH) || null } : null;
}

function unknownOf(value: unknown): Change | null {
  const path = textOf(value);
  return isPath(path) ? { area: "untracked", path, letter: "?", from: null } : null;
}

const isPath = (path: string) => path.length > 0 && path.length <= MAX_PATH;

function letterOf(value: unknown): Letter {
  const letter = textOf(value);
  return letter in WORDS ? (letter as Letter) : "M";
}
