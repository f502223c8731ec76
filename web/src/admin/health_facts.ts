import type { Health, WorkspaceHealth } from "../api/generated";
import type { Stats, Unsure } from "../api/types";
import { count, span } from "../live/words";
import { isObject, numberOf, textOf } from "../workspace/protocol";
import type { LogLine } from "./answers";

/** How the server is. */
export interface ServerHealth {
  /** `ok`, `degraded` or `draining`. */
  status: string;
  /** The problem, and what follows from it; empty: there is none. */
  degraded: string;
  version: string;
  uptimeSecs: number;
  workers: number;
  peers: number;
  queued: number;
  inFlight: number;
  models: string[];
  /** Each alias with what it stands for. */
  aliases: [string, string[]][];
  workspace: { clients: number; sessions: number; live: number } | null;
}

/** So many names are read, and so many are shown. */
const READ = 1000;
const NAMED = 24;

export function healthOf(value: unknown, stats: Stats): ServerHealth {
  const told: Unsure<Health> = isObject(value) ? value : {};
  return {
    status: textOf(told["status"]) || "unknown",
    degraded: textOf(told["degraded"]),
    version: textOf(told["version"]),
    uptimeSecs: numberOf(told["uptime_secs"]) ?? stats.uptime_secs,
    workers: numberOf(told["workers_connected"]) ?? stats.active_workers,
    peers: numberOf(told["peers"]) ?? 0,
    queued: numberOf(told["queue_depth"]) ?? 0,
    inFlight: numberOf(told["in_flight"]) ?? stats.in_flight,
    models: textsOf(told["models"]),
    aliases: aliasesOf(told["aliases"]),
    workspace: workspaceOf(told["workspace"]),
  };
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.slice(0, READ).map(textOf).filter(Boolean) : [];
}

function aliasesOf(value: unknown): [string, string[]][] {
  return isObject(value) ? Object.entries(value).slice(0, READ).map(([name, targets]) => [name, textsOf(targets)]) : [];
}

function workspaceOf(value: unknown): ServerHealth["workspace"] {
  if (!isObject<WorkspaceHealth>(value)) return null;
  return { clients: numberOf(value["clients"]) ?? 0, sessions: numberOf(value["sessions"]) ?? 0, live: numberOf(value["live_sessions"]) ?? 0 };
}

/** What is known of the server, by name. */
export function factsOf(health: ServerHealth): [string, string][] {
  const { workspace, aliases } = health;
  return [
    ["Status", health.status],
    ["Version", health.version],
    ["Runs for", span(health.uptimeSecs * 1000)],
    ["Workers", String(health.workers)],
    ["Peers", String(health.peers)],
    ["Waiting", String(health.queued)],
    ["Being answered", String(health.inFlight)],
    ["Models", listed(health.models, ", ")],
    ["Aliases", listed(aliases.map(([name, targets]) => `${name} → ${targets.join(", ")}`), "; ")],
    ["Workspace", workspace ? `${workspace.live} of ${count(workspace.sessions, "session")} run, ${count(workspace.clients, "client")}` : "none"],
  ];
}

function listed(names: string[], between: string): string {
  const more = names.length - NAMED;
  return names.slice(0, NAMED).join(between) + (more > 0 ? ` and ${more} more` : "") || "none";
}

/** All of it as text, for somebody who is to find a fault. */
export function reportOf(health: ServerHealth, lines: LogLine[], browser: string): string {
  const facts = [...factsOf(health), ["Problem", health.degraded || "none"], ["Browser", browser]];
  const told = facts.map(([name, text]) => `${name}: ${text}`).join("\n");
  return lines.length ? `${told}\n\n${lines.map(({ text }) => text).join("\n")}\n` : `${told}\n`;
}
