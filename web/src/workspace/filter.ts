import type { Session } from "./protocol";
import { kindOf, nodeOf, stateOf, titleOf } from "./words";

/** What of the sessions is wanted. */
export interface Wanted {
  words: string;
  hidden: boolean;
}

/** The sessions in which every word stands somewhere. Those whose agents ask come first, and are never left out as hidden. */
export function chosen(all: readonly Session[], { words, hidden }: Wanted, asking: ReadonlySet<string>): Session[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const first: Session[] = [];
  const rest: Session[] = [];
  for (const session of all) {
    const asks = asking.has(session.id);
    if (session.hidden && !hidden && !asks) continue;
    if (wanted.length && !matches(session, asks, wanted)) continue;
    (asks ? first : rest).push(session);
  }
  return [...first, ...rest];
}

function matches(session: Session, asks: boolean, wanted: string[]): boolean {
  const text = [titleOf(session), kindOf(session), nodeOf(session), session.directory, session.id, stateOf(session, asks).words].join(" ").toLowerCase();
  return wanted.every((word) => text.includes(word));
}
