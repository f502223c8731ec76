import type { Session } from "./protocol";

/** Sessions that run come first, and of those the ones that were used last. */
export function inOrder(list: Session[]): Session[] {
  return list.sort(compare);
}

/** An ordered list with a session at its place, instead of what was known of it. Lists are long, and news are many: only the place is searched. */
export function withSession(list: readonly Session[], session: Session): Session[] {
  const next = without(list, session.id);
  next.splice(placeOf(next, session), 0, session);
  return next;
}

/** A list without a session. */
export function without(list: readonly Session[], id: string): Session[] {
  const next = list.slice();
  const at = next.findIndex((each) => each.id === id);
  if (at >= 0) next.splice(at, 1);
  return next;
}

/** The first place that a session may have, by halving. */
function placeOf(list: Session[], session: Session): number {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(list[middle]!, session) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const rank = ({ status }: Session) => (status === "exited" ? 1 : 0);

/** Times are written so that they stand in their order as texts, too. The ids decide between sessions of one moment. */
function compare(a: Session, b: Session): number {
  return rank(a) - rank(b) || order(b.lastActive, a.lastActive) || order(a.id, b.id);
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
