import { part } from "../api/address";
import { call, callJson } from "../api/call";
import { auditOf, configurationOf, invitationOf, invitationsOf, logOf } from "./answers";

/** How grave lines of the log are, the gravest first. Each is sent along with all graver ones. */
export const LEVELS = ["error", "warn", "info", "debug", "trace"] as const;
export type Level = (typeof LEVELS)[number];

/** What a new invitation of a machine is to be. */
export interface NewInvitation {
  /** The machine's name; without one it names itself. */
  name?: string;
  /** How long it is good for, in seconds. */
  expires_in_secs: number;
  /** An address by which the server is reached from elsewhere. */
  url?: string;
}

/** What administrators did, the newest first. */
export const audit = async (limit: number, signal?: AbortSignal) => auditOf(await callJson<unknown>(`admin/audit?limit=${limit}`, { signal }));

/** The newest lines of the log, the oldest of them first. */
export const logLines = async (limit: number, level: Level, signal?: AbortSignal) => logOf(await callJson<unknown>(`admin/logs?limit=${limit}&level=${level}`, { signal }));

/** The configuration as it stands. The status 404 means that the server does not tell it. */
export const configuration = async (signal?: AbortSignal) => configurationOf(await callJson<unknown>("admin/config", { signal }));

export const invitations = async (signal?: AbortSignal) => invitationsOf(await callJson<unknown>("admin/invitations", { signal }));

/** Invites a machine. The code is in this answer only. */
export const invite = async (asked: NewInvitation) => invitationOf(await callJson<Record<string, unknown>>("admin/invitations", { method: "POST", body: asked }));

/** Revokes an invitation, and the key of the machine that joined by it. */
export const revokeInvitation = (id: string) => call(`admin/invitations/${part(id)}`, { method: "DELETE" });
