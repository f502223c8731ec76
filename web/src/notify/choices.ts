import { signal } from "@preact/signals";
import { choiceOf, choose } from "../storage/choices";

/** What a person may want to be told of. */
export const KINDS = ["asks", "turns", "rooms", "transfers"] as const;
export type NoticeKind = (typeof KINDS)[number];

/** What is chosen: kinds of notices, and whether they sound. */
export type Wish = NoticeKind | "sound";

/** What this person wants to be told of, in this browser. */
export const wanted = signal<ReadonlySet<Wish>>(wishesOf(choiceOf("notices")));

/** The wishes in what was kept; what is unknown is left out. */
export function wishesOf(text: string | null): ReadonlySet<Wish> {
  const kept = (text ?? "").split(" ");
  return new Set([...KINDS, "sound" as const].filter((wish) => kept.includes(wish)));
}

/** Wants a kind of notices from here on, or no longer. */
export function want(wish: Wish, on: boolean): void {
  const wishes = new Set(wanted.value);
  if (on) wishes.add(wish);
  else wishes.delete(wish);
  choose("notices", wishes.size ? [...wishes].join(" ") : null);
  wanted.value = wishes;
}

/** Whether any notices are wanted. */
export const wantsAny = () => KINDS.some((kind) => wanted.value.has(kind));
