import type { AuditJson, InvitationJson, LogLine as ToldLine, SettingJson } from "../api/generated";
import type { Unsure } from "../api/types";
import { isObject, numberOf, textOf } from "../workspace/protocol";

export type { AuditJson as AuditEntry, SettingJson as Setting } from "../api/generated";

/** A line of the server's log. */
export type LogLine = Omit<ToldLine, "level"> & { level: string };

export interface Configuration {
  /** The path of the file on the server's machine; empty: there is none. */
  file: string;
  settings: SettingJson[];
}

/** An invitation, and the machine that joined by it. */
export interface Invitation {
  id: string;
  name: string;
  /** `open`, `joined`, `expired` or `revoked`. */
  state: string;
  createdAt: string;
  expiresAt: string;
  joinedAt: string;
  lastSeenAt: string;
  /** When it has just been made. */
  code: string;
  /** The addresses in the code, the best first. */
  urls: string[];
}

/** The most of each list that is read, and the most characters of a text and of a line of the log. */
const MAX_LISTED = 5000;
const MAX_WORDS = 500;
const MAX_LINE = 20_000;

export function auditOf(value: unknown): AuditJson[] {
  return listOf(value, "entries", (each: Unsure<AuditJson>) => ({
    at: words(each["at"]),
    who: words(each["who"]),
    action: words(each["action"]),
    target: words(each["target"]),
    outcome: words(each["outcome"]),
  }));
}

export function logOf(value: unknown): LogLine[] {
  return listOf(value, "lines", (each: Unsure<ToldLine>) => ({
    n: numberOf(each["n"]) ?? 0,
    at: words(each["at"]),
    level: words(each["level"]),
    text: textOf(each["text"]).slice(0, MAX_LINE),
  }));
}

export function configurationOf(value: unknown): Configuration {
  const file = isObject(value) ? words(value["file"]) : "";
  return { file, settings: listOf(value, "settings", settingOf).filter(({ name }) => name) };
}

function settingOf(value: Unsure<SettingJson>): SettingJson {
  const secret = value["secret"] === true;
  return { name: words(value["name"]), value: secret ? null : (value["value"] ?? null), source: sourceOf(value["source"]), secret };
}

function sourceOf(value: unknown): SettingJson["source"] {
  return value === "file" || value === "environment" || value === "flag" ? value : "default";
}

/** The invitations, the newest first. */
export function invitationsOf(value: unknown): Invitation[] {
  return listOf(value, "invitations", invitationOf).filter(({ id }) => id).reverse();
}

export function invitationOf(value: Unsure<InvitationJson>): Invitation {
  const urls = value["urls"];
  return {
    id: words(value["id"]),
    name: words(value["name"]),
    state: words(value["state"]),
    createdAt: words(value["created_at"]),
    expiresAt: words(value["expires_at"]),
    joinedAt: words(value["joined_at"]),
    lastSeenAt: words(value["last_seen_at"]),
    code: textOf(value["code"]),
    urls: Array.isArray(urls) ? urls.slice(0, 16).map(words).filter(Boolean) : [],
  };
}

function listOf<T>(value: unknown, field: string, read: (each: Record<string, unknown>) => T): T[] {
  const list = isObject(value) ? value[field] : null;
  return Array.isArray(list) ? list.slice(0, MAX_LISTED).filter(isObject).map(read) : [];
}

function words(value: unknown): string {
  return textOf(value).slice(0, MAX_WORDS);
}
