import { describe, expect, test } from "vitest";
import { matching, whoWords } from "../src/admin/audit";
import { factsOf, healthOf, reportOf } from "../src/admin/health_facts";
import { stateWords } from "../src/admin/invitations";
import { askedFor, isLoopback } from "../src/admin/new_invitation";
import { groupsOf, shownValue } from "../src/admin/settings";
import { auditOf, configurationOf, invitationsOf, logOf } from "../src/admin/answers";
import type { Stats } from "../src/api/types";

const stats: Stats = { queue_depth: {}, queues: [], active_workers: 2, in_flight: 1, uptime_secs: 90 };
const names = new Map([["k-1", "laptop"]]);

describe("what the server tells administrators", () => {
  test("may lack everything, or be something else", () => {
    for (const nonsense of [null, 7, "x", [], {}, { entries: 3, lines: {}, settings: null, invitations: "x" }, { entries: [null], lines: [4], settings: [{}], invitations: [{}] }]) {
      expect(auditOf(nonsense)).toEqual([]);
      expect(logOf(nonsense)).toEqual([]);
      expect(configurationOf(nonsense)).toEqual({ file: "", settings: [] });
      expect(invitationsOf(nonsense)).toEqual([]);
      expect(healthOf(nonsense, stats)).toMatchObject({ status: "unknown", workers: 2, inFlight: 1, uptimeSecs: 90, workspace: null });
    }
  });

  test("has the newest invitation first", () => {
    expect(invitationsOf({ invitations: [{ id: "1" }, { id: "2" }] }).map(({ id }) => id)).toEqual(["2", "1"]);
  });

  test("has no secret, even if the server sends one", () => {
    const { settings } = configurationOf({ file: null, settings: [{ name: "client_token", value: "open-sesame", source: "file", secret: true }] });
    expect(JSON.stringify(settings)).not.toContain("sesame");
    expect(shownValue(settings[0]!).words).toBe("set, and secret");
  });
});

describe("the audit log", () => {
  const entries = auditOf({ entries: [
    { at: "2026-11-27T08:00:00Z", who: "k-1", action: "key.create", target: "k-2", outcome: "done" },
    { at: "2026-11-27T07:00:00Z", who: "admin-token (page session s-9)", action: "worker.drain", target: "w-1", outcome: "there is no such worker" },
  ] });

  test("says who, by name", () => {
    expect(["k-1", "k-7", "admin-token", "command-line", "k-1 (page session s-9)", ""].map((who) => whoWords(who, names))).toEqual(["laptop", "k-7", "the administrator's token", "the command line", "laptop, from a browser", ""]);
  });

  test("is filtered by all words, whoever or whatever they are about", () => {
    const found = (typed: string) => matching(entries, typed, names).map(({ action }) => action);
    expect(found("laptop CREATE")).toEqual(["key.create"]);
    expect(found("browser no such")).toEqual(["worker.drain"]);
    expect(found("laptop drain")).toEqual([]);
    expect(found("  ")).toHaveLength(2);
  });
});

describe("the configuration", () => {
  const { settings } = configurationOf({ file: "/etc/warren.toml", settings: [
    { name: "mesh.listen", value: "0.0.0.0:9180", source: "flag", secret: false },
    { name: "listen", value: "127.0.0.1:9178", source: "default", secret: false },
    { name: "log", value: "", source: "environment", secret: false },
    { name: "mesh.share.models", value: ["a", "b"], source: "file", secret: false },
    { name: "mesh.passcode", value: null, source: "strange", secret: false },
  ] });

  test("is grouped by the part before the first dot, those of no table first", () => {
    expect(groupsOf(settings, "", false).map(({ name, settings: within }) => [name, within.length])).toEqual([["server", 2], ["mesh", 3]]);
    expect(groupsOf(settings, "", true).map(({ name, settings: within }) => [name, within.map((each) => each.name)])).toEqual([["server", ["log"]], ["mesh", ["mesh.listen", "mesh.share.models"]]]);
  });

  test("is filtered by names and values", () => {
    expect(groupsOf(settings, "9178", false)[0]!.settings[0]!.name).toBe("listen");
    expect(groupsOf(settings, "SHARE", false)[0]!.settings).toHaveLength(1);
    expect(groupsOf(settings, "nothing", false)).toEqual([]);
  });

  test("shows every kind of value", () => {
    expect(settings.map((each) => shownValue(each).words)).toEqual(["0.0.0.0:9180", "127.0.0.1:9178", '""', '["a","b"]', "not set"]);
  });
});

describe("the health", () => {
  const health = healthOf({ status: "degraded", degraded: "the disk is full", version: "1.2.3", uptime_secs: 7200, workers_connected: 3, peers: 1, queue_depth: 4, in_flight: 2, models: ["m"], aliases: { big: ["x", "y"] }, workspace: { clients: 1, sessions: 5, live_sessions: 2 } }, stats);

  test("is told by name", () => {
    expect(Object.fromEntries(factsOf(health))).toEqual({ Status: "degraded", Version: "1.2.3", "Runs for": "2 h 0 min", Workers: "3", Peers: "1", Waiting: "4", "Being answered": "2", Models: "m", Aliases: "big → x, y", Workspace: "2 of 5 sessions run, 1 client" });
  });

  test("is a text for a bug report, with the log", () => {
    const report = reportOf(health, logOf({ lines: [{ n: 1, at: "", level: "warn", text: "WARN it rains" }] }), "A browser");
    expect(report).toContain("Problem: the disk is full\nBrowser: A browser\n\nWARN it rains\n");
  });

  test("names a few of many models", () => {
    const many = healthOf({ models: Array.from({ length: 30 }, (_, n) => `m${n}`) }, stats);
    expect(Object.fromEntries(factsOf(many))["Models"]).toMatch(/m23 and 6 more$/);
  });
});

describe("invitations", () => {
  test("ask for what was typed, and leave the rest to the server", () => {
    expect(askedFor(" gpu ", 3600, "")).toEqual({ name: "gpu", expires_in_secs: 3600 });
    expect(askedFor("", 3600, " https://x ")).toEqual({ expires_in_secs: 3600, url: "https://x" });
  });

  test("say how they stand, and whether anybody can follow them", () => {
    expect(stateWords({ state: "joined", expiresAt: "" })).toBe("joined");
    expect(stateWords({ state: "open", expiresAt: "2026-11-27T08:00:00Z" })).toMatch(/^open until /);
    expect(["http://127.0.0.1:9178", "http://[::1]:1", "http://localhost/", "http://192.168.1.2:9178", "https://localhost.example.org"].map(isLoopback)).toEqual([true, true, true, false, false]);
  });
});
