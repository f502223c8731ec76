import { effect, signal } from "@preact/signals";
import { asApiError } from "../api/errors";
import { access } from "../live/state";
import { ask, hubState, listen } from "../workspace/hub";
import { textOf, type Answer, type Message } from "../workspace/protocol";
import { resultOf, teamOf, type Result, type Team } from "./team";

/** The most teams and results that are kept. */
const MAX_TEAMS = 1024;
const MAX_RESULTS = 200;

/** All teams, the newest use first; `null` before the list came. */
export const teams = signal<Team[] | null>(null);

/** Why the list did not come; empty if it did. */
export const teamsTrouble = signal("");

/** Results that came since teams were first looked at, the newest first. */
export const results = signal<Result[]>([]);

// From the first look on the news is followed as long as somebody is signed in.
listen(take);

effect(() => {
  if (!access.value) forget();
  else if (hubState.value === "open") look();
});

function forget(): void {
  teams.value = null;
  results.value = [];
}

/** On each new connection. One that breaks meanwhile is made again, and looks again. */
function look(): void {
  ask({ type: "list_teams" }, "team_list").then(takeList, (thrown: unknown) => (teamsTrouble.value = asApiError(thrown).message));
}

function takeList(message: Answer<"team_list">): void {
  const told = Array.isArray(message["teams"]) ? message["teams"].slice(0, MAX_TEAMS) : [];
  teamsTrouble.value = "";
  teams.value = inOrder(told.map(teamOf).filter((each) => each !== null));
}

function take(message: Message): void {
  const team = teamOf(message["team"]);
  if (team) put(team);
  if (message.type === "team_deleted") removeTeam(textOf(message["team_id"]));
  const result = message.type === "worker_result_received" ? resultOf(message) : null;
  if (result) takeNews(result);
}

/** Takes what an answer says of a team, before the news of it comes. */
export function put(team: Team): void {
  teams.value = inOrder([...(teams.value ?? []).filter(({ id }) => id !== team.id), team].slice(-MAX_TEAMS));
}

export function removeTeam(id: string): void {
  teams.value = (teams.value ?? []).filter((team) => team.id !== id);
  results.value = results.value.filter(({ team }) => team !== id);
}

/** The results that a wait told, and whose news may still come. */
const told = new Set<Result>();

/** Takes the results of a wait: those that are not known by the news. */
export function takeWaited(waited: Result[]): void {
  const fresh = waited.filter((result) => !results.value.some(isSame(result)));
  for (const result of fresh) told.add(result);
  add(fresh);
}

/** Takes the news of a result. A worker may say the same twice; what a wait and the news say is one result. */
export function takeNews(result: Result): void {
  const known = [...told].find(isSame(result));
  if (known) told.delete(known);
  else add([result]);
}

const isSame = (one: Result) => (other: Result) => one.worker === other.worker && one.text === other.text && one.success === other.success;

function add(fresh: Result[]): void {
  if (fresh.length) results.value = [...fresh.reverse(), ...results.value].slice(0, MAX_RESULTS);
  for (const result of told) if (!results.value.includes(result)) told.delete(result);
}

function inOrder(list: Team[]): Team[] {
  return list.sort((a, b) => Number(b.isActive) - Number(a.isActive) || b.lastActive.localeCompare(a.lastActive));
}
