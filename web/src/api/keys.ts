import { part } from "./address";
import { call, callJson } from "./call";
import type { Key } from "./types";

/** What a new key is to be. */
export interface NewKey {
  name: string;
  scopes: string[];
  /** The models it is for, `*` at the end for all that begin so; absent: all. */
  models?: string[];
  limits?: { rpm?: number };
  /** RFC 3339; absent: never. */
  expires_at?: string;
}

/** All keys, the revoked ones included, the oldest first. Needs the scope `admin`. */
export async function keys(signal?: AbortSignal): Promise<Key[]> {
  return (await callJson<{ keys: Key[] }>("admin/keys", { signal })).keys;
}

/** Makes a key. Its text is in this answer only. */
export const createKey = (key: NewKey) => callJson<Key & { key: string }>("admin/keys", { method: "POST", body: key });

/** Revokes a key for good: what runs by it ends, its workers and sessions too. */
export const revokeKey = (id: string) => call(`admin/keys/${part(id)}`, { method: "DELETE" });
