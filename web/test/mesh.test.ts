import { describe, expect, test } from "vitest";
import { factsOf } from "../src/mesh/peer_dialog";
import { matching } from "../src/mesh/peers";
import { idOf, isOver, modelsOf, peersOf, transfersOf, type Peer, type Transfer } from "../src/mesh/answers";
import { hardwareOf, isPlain, linkOf, loadOf, named, namesOf, peerState, placesOf, progressOf, shareOf } from "../src/mesh/words";

const peer = (more: object = {}): Peer => peersOf({ peers: [{ id: "a".repeat(64), name: "ann", link: "lan", sealed: true, status: "ok", ...more }] }).peers[0]!;
const transfer = (more: object = {}): Transfer => transfersOf({ transfers: [{ id: "t", model: "org/m", direction: "in", state: "running", ...more }] })[0]!;
const names = namesOf([peer(), peer({ id: "b".repeat(64), name: "bob" }), peer({ id: "c".repeat(64), name: "" })]);

describe("what the server tells of the mesh", () => {
  test("is read as it is", () => {
    const told = { id: "1", fingerprint: "f", name: "n", listen: "127.0.0.1:1", share: "peers", relays: [{ url: "wss://r", connected: false, challenged: true, error: "away" }], problems: ["another machine has this key"] };
    expect(idOf(told)).toEqual({ ...told, relays: [{ url: "wss://r", connected: false, error: "away" }] });
    expect(modelsOf({ models: [{ id: "m", bytes: null, served_by: ["x"], offered_by: [], served_here: true, files_here: false }] })).toEqual([{ id: "m", bytes: null, servedBy: ["x"], offeredBy: [], servedHere: true, filesHere: false }]);
    expect(transfer({ bytes: 5, total: 10, rate: 2, eta_secs: 3, peers: ["x"] })).toEqual({ id: "t", model: "org/m", outgoing: false, state: "running", bytes: 5, total: 10, rate: 2, secondsLeft: 3, peers: ["x"], detail: "" });
  });

  test("may lack everything, or be something else", () => {
    for (const nonsense of [null, undefined, 7, "x", [], {}, { peers: 1, models: {}, transfers: null }, { peers: [null, 3, {}], models: [{}], transfers: [[]] }]) {
      expect(peersOf(nonsense)).toEqual({ peers: [], unlinked: [] });
      expect(modelsOf(nonsense)).toEqual([]);
      expect(transfersOf(nonsense)).toEqual([]);
      expect(idOf(nonsense).relays).toEqual([]);
    }
    expect(peer({ capacity: "many", models: [1, "m", null], tokens_per_second: NaN })).toMatchObject({ capacity: 1, models: ["m"], tokensPerSecond: null });
  });

  test("is bounded", () => {
    expect(peersOf({ peers: Array.from({ length: 6000 }, (_, n) => ({ id: `${n}` })) }).peers).toHaveLength(5000);
    expect(peer({ name: "x".repeat(9999) }).name).toHaveLength(500);
  });
});

describe("peers in words", () => {
  test("say how they are linked, and whether others can read it", () => {
    expect(["lan", "relay", "listed", "none"].map((link) => linkOf(peer({ link })))).toEqual(["on the LAN, sealed", "through a relay, sealed", "listed by a relay, no link yet", "no link"]);
    expect(linkOf(peer({ sealed: false }))).toBe("on the LAN, in clear text");
    expect([peer(), peer({ sealed: false }), peer({ link: "none", sealed: false })].map(isPlain)).toEqual([false, true, false]);
  });

  test("say how they are and what they do", () => {
    expect(["ok", "degraded", "paused", "unavailable", "unlinked", "news"].map((status) => peerState(peer({ status })).words)).toEqual(["ready", "not heard of lately", "paused", "takes nothing now", "no link", "news"]);
    expect(peerState(peer({ generating: true })).words).toBe("answers");
    expect(loadOf(peer({ tokens_per_second: 4.25, queue_depth: 2, throttle: 60, thermal: "critical" }))).toEqual(["4.3 tok/s", "2 waiting", "at 60 %", "hot"]);
    expect(loadOf(peer())).toEqual([]);
    expect(hardwareOf(peer({ chip: "M2", ram_gb: 15.7 }))).toEqual(["M2", "16 GiB"]);
    expect(factsOf(peer({ warren: null, heard_secs: null })).map(([name]) => name)).toEqual(["State", "Link", "Takes at once", "Program", "Heard of"]);
  });

  test("are named, a few of them", () => {
    expect(named(["a".repeat(64)], names)).toBe("ann");
    expect(named(["a".repeat(64), "b".repeat(64), "c".repeat(64)], names)).toBe("ann, bob and cccccccc");
    expect(named(["d", "e", "f", "g", "h"], names)).toBe("d, e, f and 2 more");
  });

  test("are found by name, id, chip and model", () => {
    const all = [peer({ chip: "M2", models: ["qwen3:8b"] }), peer({ id: "b".repeat(64), name: "bob" })];
    expect(["ANN", "bbb", "m2", "qwen", " ", "nobody"].map((typed) => matching(all, typed).length)).toEqual([1, 1, 1, 1, 2, 0]);
  });
});

describe("models and transfers in words", () => {
  test("say where a model is", () => {
    const [model] = modelsOf({ models: [{ id: "m", served_by: ["a".repeat(64)], offered_by: ["b".repeat(64), "a".repeat(64)], files_here: true }] });
    expect(placesOf(model!, names)).toBe("its files are here · served by ann · files at bob and ann");
  });

  test("say how far a transfer is", () => {
    const running = transfer({ bytes: 1048576, total: 4194304, rate: 524288, eta_secs: 6, peers: ["a".repeat(64)] });
    expect(progressOf(running, names)).toEqual(["1.0 MiB of 4.0 MiB", "512 KiB/s", "6.0 s left", "from ann"]);
    expect(progressOf(transfer({ state: "searching" }), names)).toEqual(["looks for peers that have it"]);
    expect(progressOf(transfer({ direction: "out", bytes: 10, peers: ["z"] }), names)).toEqual(["10 B", "to z"]);
    expect([running, transfer(), transfer({ state: "done" }), transfer({ bytes: 9, total: 3 })].map(shareOf)).toEqual([0.25, null, 1, 1]);
    expect(["searching", "waiting", "done", "failed", "cancelled"].map((state) => isOver({ state }))).toEqual([false, false, true, true, true]);
  });
});
