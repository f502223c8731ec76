import { describe, expect, it } from "vitest";
import { hrefOf, routeOf } from "../src/route";
import { reachOf, serversOf, type Here } from "../src/ports/address";
import { requestFor as serverRequest } from "../src/ports/new_server";
import { lettersOf, memberName, memberState, resultOf, teamOf, waitedOf, wordsOfTeam, MAX_TEXT } from "../src/teams/team";
import { requestFor } from "../src/teams/work";
import { results, takeNews, takeWaited } from "../src/teams/teams";
import { sessionOf, type Session } from "../src/workspace/protocol";

const ID = "550e8400-e29b-41d4-a716-446655440000";
const session = (fields: object): Session => sessionOf({ id: ID, mode: "sdk", status: "idle", ...fields })!;

describe("a team", () => {
  it("is read, whatever is missing", () => {
    expect(teamOf({ id: "t", name: "n", leader_session_id: "l", worker_session_ids: ["a", 7, "b"], status: "inactive", last_active: "2026-01-01T00:00:00Z" }))
      .toEqual({ id: "t", name: "n", leader: "l", workers: ["a", "b"], isActive: false, lastActive: "2026-01-01T00:00:00Z" });
    expect(teamOf({ id: "t" })).toEqual({ id: "t", name: "a team", leader: "", workers: [], isActive: true, lastActive: "" });
    for (const none of [null, 7, {}, { id: 7 }]) expect(teamOf(none)).toBeNull();
  });

  it("has words for how many of it work", () => {
    const team = { ...teamOf({ id: "t", worker_session_ids: ["a", "b"] })! };
    expect(wordsOfTeam(team, [session({}), session({ status: "running" }), undefined])).toBe("2 workers, 1 member works");
    expect(wordsOfTeam({ ...team, workers: ["a"] }, [])).toBe("1 worker, nobody works");
    expect(wordsOfTeam({ ...team, workers: [] }, [session({ status: "running" }), session({ status: "running" })])).toBe("no workers, 2 members work");
    expect(wordsOfTeam({ ...team, isActive: false }, [])).toBe("has ended");
  });

  it("has members whose sessions may be gone", () => {
    expect([memberName(ID, undefined), memberState(undefined, false).words]).toEqual(["session 550e8400", "its session is gone"]);
    expect([memberName(ID, session({ name: "ann" })), memberState(session({}), true).words]).toEqual(["ann", "asks for permission"]);
  });

  it("has an address", () => {
    expect(routeOf(`#/workspace/teams/${ID}`)).toEqual({ page: "workspace", ids: [], tab: "teams", team: ID });
    expect(hrefOf({ page: "workspace", ids: [], tab: "teams", team: ID })).toBe(`#/workspace/teams/${ID}`);
    expect(routeOf("#/workspace/ports")).toEqual({ page: "workspace", ids: [], tab: "ports" });
    expect(routeOf("#/workspace/teams/x")).toEqual({ page: "overview" });
  });
});

describe("what comes of work", () => {
  it("is read from the news and from waits", () => {
    expect(resultOf({ team_id: "t", worker_session_id: "w", success: true, result: "x".repeat(MAX_TEXT + 1) })).toMatchObject({ team: "t", worker: "w", success: true, text: "x".repeat(MAX_TEXT) });
    expect(resultOf({ worker_session_id: "w" })).toMatchObject({ success: false, text: "" });
    expect(resultOf({ result: "x" })).toBeNull();
    expect(waitedOf({ type: "team_wait_result", results: [{ worker_session_id: "w" }, 7], pending_workers: ["p"], wait_id: "i" })).toMatchObject({ results: [{ worker: "w" }], pending: ["p"], waitId: "i" });
    expect(waitedOf({ type: "team_wait_result" })).toEqual({ results: [], pending: [], waitId: null });
  });

  it("is kept once, the newest first, and not without end", () => {
    const result = (text: string) => ({ team: "t", worker: "w", success: true, text });
    const seen = () => results.value.map(({ text }) => text);
    takeNews(result("a"));
    takeWaited([result("a"), result("b")]);
    expect(seen()).toEqual(["b", "a"]);
    takeNews(result("b"));
    expect(seen()).toEqual(["b", "a"]);
    takeNews(result("b"));
    expect(seen()).toEqual(["b", "b", "a"]);
    takeWaited(Array.from({ length: 500 }, (_, at) => result(`${at}`)));
    expect(results.value).toHaveLength(200);
    expect(results.value[0]!.text).toBe("499");
  });

  it("is asked for in the form of the protocol", () => {
    const wish = { prompt: " do it ", name: " ann ", provider: "", node: "n" };
    expect(requestFor("t", false, wish)).toEqual({ type: "assign", team_id: "t", prompt: " do it ", worker_name: "ann", provider: null, node_id: "n" });
    expect(requestFor("t", true, { ...wish, name: "" })).toEqual({ type: "spawn_worker", team_id: "t", name: null, provider: null, node_id: "n" });
  });
});

describe("an inbox", () => {
  it("is read, whatever is missing", () => {
    expect(lettersOf({ type: "team_inbox", messages: [{ seq: 3, from_session_id: "f", payload: "p", delivered_at: "d" }, 7, {}] })).toEqual([{ seq: 3, from: "f", text: "p", at: "d" }, { seq: 0, from: "", text: "", at: "" }]);
    expect(lettersOf({ type: "team_inbox" })).toEqual([]);
  });
});

describe("a development server", () => {
  const here: Here = { host: "192.168.1.5", isOnlyHere: false, node: "n" };
  const server = (fields: object) => session({ mode: "pty", status: "running", tags: ["dev-server"], dev_server_port: 5173, ...fields });

  it("is found by its tag", () => {
    expect(serversOf([session({}), server({}), session({ tags: "dev-server" })]).map(({ port }) => port)).toEqual([5173]);
  });

  it("is reached at the address of this page if it is on the same machine, and says when that works", () => {
    expect(reachOf(server({}), { ...here, node: null }, "this server")).toMatchObject({ href: "http://192.168.1.5:5173/", words: expect.stringContaining("0.0.0.0") });
    expect(reachOf(server({ node_id: "n" }), here, "box").href).toBe("http://192.168.1.5:5173/");
    expect(reachOf(server({}), { host: "localhost", isOnlyHere: true, node: null }, "x").words).toBe("Works in a browser on the machine that runs the server.");
  });

  it("of another machine, one that has ended and one without a port have no address", () => {
    expect(reachOf(server({ node_id: "other" }), here, "box")).toEqual({ href: null, words: "Port 5173 of box. Its address is not known here: open it by the name that you reach that machine by." });
    expect(reachOf(server({ status: "exited" }), here, "box").href).toBeNull();
    expect(reachOf(server({ dev_server_port: null }), here, "box").href).toBeNull();
  });

  it("is started by a shell", () => {
    expect(serverRequest(" npm run dev ", "", { project: "p", directory: "" }, "")).toEqual({
      type: "new_session", mode: "pty", tags: ["dev-server"], extra_args: ["sh", "-c", "npm run dev"], name: null, project_id: "p", working_dir: null, node_id: null,
    });
    expect(serverRequest("x", "n", { project: "", directory: "" }, "m")).toMatchObject({ name: "n", project_id: null, working_dir: "~", node_id: "m" });
  });
});
