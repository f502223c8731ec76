import type { MeshId as ToldId, MeshModel as ToldModel, MeshModels, MeshPeer, MeshPeers, MeshRelayJson, MeshTransfer, MeshTransfers, MeshUnlinked } from "../api/generated";
import type { Unsure } from "../api/types";
import { isObject, numberOf, textOf } from "../workspace/protocol";

/** This machine in the mesh. */
export type MeshId = Required<Omit<ToldId, "relays">> & { relays: Relay[] };

/** A relay that this machine is registered at, or tries to be. */
export type Relay = Required<Omit<MeshRelayJson, "challenged">>;

/** Another machine of the mesh. */
export interface Peer {
  id: string;
  name: string;
  /** `lan`, `relay`, `listed` or `none`. */
  link: string;
  /** Its address, or the relay's host. */
  address: string;
  sealed: boolean;
  /** `ok`, `degraded`, `paused`, `unavailable` or `unlinked`. */
  status: string;
  models: string[];
  capacity: number;
  waiting: number;
  generating: boolean;
  /** How much of its speed it gives, in per cent. */
  throttle: number;
  thermal: string;
  tokensPerSecond: number | null;
  chip: string;
  ramGb: number;
  /** The version of its Warren; empty of a stock peer. */
  warren: string;
  heardSecs: number | null;
}

/** A peer that was met and could not be linked to. */
export interface Unlinked {
  place: string;
  why: string;
  metSecs: number;
}

/** A model that somebody has. Machines are named by their ids. */
export interface MeshModel {
  id: string;
  bytes: number | null;
  servedBy: string[];
  offeredBy: string[];
  servedHere: boolean;
  filesHere: boolean;
}

/** A model on its way. */
export interface Transfer {
  id: string;
  model: string;
  outgoing: boolean;
  state: string;
  bytes: number;
  total: number | null;
  /** Bytes a second. */
  rate: number;
  secondsLeft: number | null;
  peers: string[];
  /** Where it was put, or why it failed. */
  detail: string;
}

/** The most of each list that is read, and the most characters of a text. */
const MAX_LISTED = 5000;
const MAX_WORDS = 500;

export function idOf(value: unknown): MeshId {
  const told: Unsure<ToldId> = isObject(value) ? value : {};
  return {
    id: words(told["id"]),
    fingerprint: words(told["fingerprint"]),
    name: words(told["name"]),
    listen: words(told["listen"]),
    share: words(told["share"]),
    relays: listOf(told["relays"], relayOf),
    problems: textsOf(told["problems"]),
  };
}

function relayOf(value: Unsure<MeshRelayJson>): Relay {
  return { url: words(value["url"]), connected: value["connected"] === true, error: words(value["error"]) };
}

export function peersOf(value: unknown): { peers: Peer[]; unlinked: Unlinked[] } {
  const told: Unsure<MeshPeers> = isObject(value) ? value : {};
  return { peers: listOf(told["peers"], peerOf).filter(({ id }) => id), unlinked: listOf(told["unlinked"], unlinkedOf) };
}

function peerOf(value: Unsure<MeshPeer>): Peer {
  return {
    id: words(value["id"]),
    name: words(value["name"]),
    link: words(value["link"]) || "none",
    address: words(value["address"]),
    sealed: value["sealed"] === true,
    status: words(value["status"]),
    models: textsOf(value["models"]),
    capacity: numberOf(value["capacity"]) ?? 1,
    waiting: numberOf(value["queue_depth"]) ?? 0,
    generating: value["generating"] === true,
    throttle: numberOf(value["throttle"]) ?? 100,
    thermal: words(value["thermal"]),
    tokensPerSecond: numberOf(value["tokens_per_second"]),
    chip: words(value["chip"]),
    ramGb: numberOf(value["ram_gb"]) ?? 0,
    warren: words(value["warren"]),
    heardSecs: numberOf(value["heard_secs"]),
  };
}

function unlinkedOf(value: Unsure<MeshUnlinked>): Unlinked {
  return { place: words(value["place"]), why: words(value["why"]), metSecs: numberOf(value["met_secs"]) ?? 0 };
}

export function modelsOf(value: unknown): MeshModel[] {
  return listOf(isObject<MeshModels>(value) ? value["models"] : [], modelOf).filter(({ id }) => id);
}

function modelOf(value: Unsure<ToldModel>): MeshModel {
  return {
    id: words(value["id"]),
    bytes: numberOf(value["bytes"]),
    servedBy: textsOf(value["served_by"]),
    offeredBy: textsOf(value["offered_by"]),
    servedHere: value["served_here"] === true,
    filesHere: value["files_here"] === true,
  };
}

export function transfersOf(value: unknown): Transfer[] {
  return listOf(isObject<MeshTransfers>(value) ? value["transfers"] : [], transferOf).filter(({ id }) => id);
}

/** A transfer, as the list has it, and as the lines of a pull have it. */
export function transferOf(value: Unsure<MeshTransfer>): Transfer {
  return {
    id: words(value["id"]),
    model: words(value["model"]),
    outgoing: value["direction"] === "out",
    state: words(value["state"]),
    bytes: numberOf(value["bytes"]) ?? 0,
    total: numberOf(value["total"]),
    rate: numberOf(value["rate"]) ?? 0,
    secondsLeft: numberOf(value["eta_secs"]),
    peers: textsOf(value["peers"]),
    detail: words(value["detail"]),
  };
}

/** Whether nothing more comes of a transfer. */
export function isOver({ state }: Pick<Transfer, "state">): boolean {
  return state === "done" || state === "failed" || state === "cancelled";
}

function listOf<T>(value: unknown, read: (each: Record<string, unknown>) => T): T[] {
  return Array.isArray(value) ? value.slice(0, MAX_LISTED).filter(isObject).map(read) : [];
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, MAX_LISTED).map(words).filter(Boolean) : [];
}

function words(value: unknown): string {
  return textOf(value).slice(0, MAX_WORDS);
}
