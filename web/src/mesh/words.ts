import { bytes, count, span } from "../live/words";
import type { MeshModel, Peer, Transfer } from "./answers";

/** Names of peers by their ids. */
export type Names = ReadonlyMap<string, string>;

/** What is shown of an id. */
const SHORT = 8;

/** So many machines are named before the rest is counted. */
const NAMED = 3;

export function namesOf(peers: Peer[]): Names {
  return new Map(peers.map(({ id, name }) => [id, name || id.slice(0, SHORT)]));
}

/** Machines by their names: `ann, bob and 3 more`. */
export function named(ids: string[], names: Names): string {
  const known = ids.slice(0, NAMED).map((id) => names.get(id) ?? id.slice(0, SHORT));
  return several(known, ids.length);
}

function several(shown: string[], all: number): string {
  const more = all - shown.length;
  if (more > 0) return `${shown.join(", ")} and ${more} more`;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

/** How a peer is reached. */
export function linkOf({ link, sealed }: Pick<Peer, "link" | "sealed">): string {
  if (link === "listed") return "listed by a relay, no link yet";
  if (link !== "lan" && link !== "relay") return "no link";
  return `${link === "lan" ? "on the LAN" : "through a relay"}, ${sealed ? "sealed" : "in clear text"}`;
}

/** Whether what is sent to a peer can be read on the way. */
export function isPlain({ link, sealed }: Pick<Peer, "link" | "sealed">): boolean {
  return (link === "lan" || link === "relay") && !sealed;
}

const STATES: Record<string, { words: string; look: "good" | "so-so" | "bad" | "" }> = {
  degraded: { words: "not heard of lately", look: "so-so" },
  paused: { words: "paused", look: "so-so" },
  unavailable: { words: "takes nothing now", look: "so-so" },
  unlinked: { words: "no link", look: "" },
};

/** How a peer is. */
export function peerState(peer: Peer): { words: string; look: "good" | "so-so" | "bad" | "" } {
  if (peer.status !== "ok") return STATES[peer.status] ?? { words: peer.status || "unknown", look: "so-so" };
  return { words: peer.generating ? "answers" : "ready", look: "good" };
}

/** What a peer does, beyond its state. */
export function loadOf({ waiting, throttle, thermal, tokensPerSecond }: Peer): string[] {
  const parts: string[] = [];
  if (tokensPerSecond) parts.push(`${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)} tok/s`);
  if (waiting) parts.push(`${waiting} waiting`);
  if (throttle > 0 && throttle < 100) parts.push(`at ${throttle} %`);
  if (thermal === "serious" || thermal === "critical") parts.push("hot");
  return parts;
}

/** What a peer is made of. */
export function hardwareOf({ chip, ramGb }: Pick<Peer, "chip" | "ramGb">): string[] {
  return [chip, ramGb > 0 ? `${Math.round(ramGb)} GiB` : ""].filter(Boolean);
}

/** Which models a peer serves. */
export function servedModels({ models }: Pick<Peer, "models">): string {
  return models.length ? several(models.slice(0, NAMED), models.length) : "serves no model";
}

/** Where a model is. */
export function placesOf(model: MeshModel, names: Names): string {
  const parts = [];
  if (model.servedHere) parts.push("served here");
  else if (model.filesHere) parts.push("its files are here");
  if (model.servedBy.length) parts.push(`served by ${named(model.servedBy, names)}`);
  if (model.offeredBy.length) parts.push(`files at ${named(model.offeredBy, names)}`);
  return parts.join(" · ");
}

const STEPS: Record<string, string> = {
  searching: "looks for peers that have it",
  preparing: "prepares",
  running: "",
  waiting: "waits for a peer",
  finishing: "checks what came",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
};

/** How a transfer stands, in words. */
export function stepOf({ state }: Pick<Transfer, "state">): string {
  return STEPS[state] ?? state;
}

/** The share of a transfer that is there, from 0 to 1; `null` while that is unknown. */
export function shareOf({ bytes: there, total, state }: Transfer): number | null {
  if (state === "done") return 1;
  return total ? Math.min(1, there / total) : null;
}

/** How far a transfer is, and how fast. */
export function progressOf(transfer: Transfer, names: Names): string[] {
  const { bytes: there, total, rate, secondsLeft, peers, outgoing, state } = transfer;
  const parts = [stepOf(transfer), total ? `${bytes(there)} of ${bytes(total)}` : there ? bytes(there) : ""];
  if (state === "running" && rate) parts.push(`${bytes(rate)}/s`);
  if (state === "running" && secondsLeft !== null) parts.push(`${span(secondsLeft * 1000)} left`);
  if (peers.length) parts.push(`${outgoing ? "to" : "from"} ${named(peers, names)}`);
  return parts.filter(Boolean);
}

/** Whom this machine answers. */
export function shareWords(share: string): string {
  const words: Record<string, string> = {
    off: "It answers no peer: it was started without --mesh-share.",
    peers: "It answers peers that proved the passcode, and those that are trusted.",
    anyone: "It answers every peer that reaches it.",
  };
  return words[share] ?? share;
}

/** How many peers there are, for a heading. */
export const peerCount = (peers: Peer[]) => count(peers.length, "peer");
