import { part } from "./address";
import { call, callJson } from "./call";
import type { CreateKey, KeyList } from "./generated";
import type { Key } from "./types";

/** All keys, the revoked ones included, the oldest first. Needs the scope `admin`. */
export async function keys(signal?: AbortSignal): Promise<Key[]> {
  return (await callJson<KeyList>("admin/keys", { signal })).keys;
}

/** Makes a key. Its text is in this answer only. */
export const createKey = (key: CreateKey) => callJson<Key & { key: string }>("admin/keys", { method: "POST", body: key });

/** Revokes a key for good: what runs by it ends, its workers and sessions too. */
export const revokeKey = (id: string) => call(`admin/keys/${part(id)}`, { method: "DELETE" });
