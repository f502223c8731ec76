import { computed, effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api/errors";
import type { Project as ToldProject } from "../api/generated";
import { access } from "../live/state";
import { linkOptions } from "../workspace/hub";
import { Link, type LinkState } from "../workspace/link";
import { isObject, textOf, type Answer, type AnswerType, type ClientMessage, type Message } from "../workspace/protocol";

/** A folder that the workspace knows by a name. */
export interface Project {
  id: string;
  name: string;
  /** The folder, on the machine that has it. */
  directory: string;
  /** That machine; `null` without a cluster. */
  node: string | null;
}

/** How the connection is. `words` are for a banner: empty while all is well. */
export interface LinkStatus {
  state: LinkState;
  words: string;
}

/** That files of the watched project changed; `count` grows each time. */
export interface Changes {
  project: string | null;
  count: number;
}

/** The most projects that are kept, and the most of a name and a path that is shown. */
const MAX_PROJECTS = 4096;
const MAX_NAME = 300;
const MAX_PATH = 4096;

/** How long the connection outlives the page that used it, in milliseconds: people come back. */
const LINGER_MS = 10_000;

/** All projects, by name; `null` before the list came. */
export const projects = signal<Project[] | null>(null);

/** How the connection is now. */
export const linkStatus = signal<LinkStatus>({ state: "away", words: "" });

/** What changed in the project that is watched. */
export const changes = signal<Changes>({ project: null, count: 0 });

/** Why changes are not told; empty while they are. */
export const watchTrouble = signal("");

/** Whether the connection can be asked now. */
export const isConnected = computed(() => linkStatus.value.state === "open");

let link: Link | null = null;
let users = 0;
let wasOpen = false;
let watched: string | null = null;
let closing: ReturnType<typeof setTimeout> | undefined;

// Who signs in next is told nothing of what the one before saw.
effect(() => {
  if (!access.value) close();
});

/** Keeps the connection while the page that calls this is shown, and a little longer. */
export function useProjects(): void {
  const may = access.value?.workspace ?? "no";
  useEffect(() => {
    if (may === "no") return;
    users += 1;
    open();
    return leave;
  }, [may]);
}

function leave(): void {
  users -= 1;
  clearTimeout(closing);
  closing = setTimeout(() => users === 0 && close(), LINGER_MS);
}

/** Tries again after a refusal. */
export function retryProjects(): void {
  close();
  open();
}

/** Asks for something; fails with an `ApiError`. Its `code` is the type of the refusal. */
export function askProjects(message: ClientMessage, ...answers: AnswerType[]): Promise<Message> {
  return link?.ask(message, ...answers) ?? Promise.reject(new ApiError("The connection to the server is not open.", 0));
}

/** The same for what may take longer than a look: many files, or large ones. */
export function askProjectsWithin(deadlineMs: number, message: ClientMessage, ...answers: AnswerType[]): Promise<Message> {
  return link?.askWithin(deadlineMs, message, ...answers) ?? Promise.reject(new ApiError("The connection to the server is not open.", 0));
}

/** Is told of changes in this project from now on, and of no other; `null`: of none. */
export function watchProject(id: string | null): void {
  if (watched === id) return;
  if (watched) link?.send({ type: "unwatch_project_files", project_id: watched });
  watched = id;
  watchTrouble.value = "";
  watch();
}

function open(): void {
  clearTimeout(closing);
  if (link) return;
  wasOpen = false;
  link = new Link({ ...linkOptions(), onOpen: look, onMessage: take, onState: become });
  link.start();
}

function close(): void {
  clearTimeout(closing);
  link?.stop();
  link = null;
  watched = null;
  projects.value = null;
  watchTrouble.value = "";
  linkStatus.value = { state: "away", words: "" };
}

function become(state: LinkState, refusal: string): void {
  wasOpen ||= state === "open";
  linkStatus.value = { state, words: wordsFor(state, refusal) };
}

function wordsFor(state: LinkState, refusal: string): string {
  if (state === "refused") return refusal ? `The workspace did not let this page in: ${refusal}` : "The workspace did not let this page in.";
  if (state === "open" || (state === "connecting" && !wasOpen)) return "";
  return "The connection is lost; the page goes on trying. What you typed is kept.";
}

/** On each new connection. Files may have changed while there was none. */
function look(): void {
  watch();
  if (watched) changed(watched);
  askProjects({ type: "list_projects" }, "project_list").then(takeList, () => undefined);
}

function watch(): void {
  if (watched) link?.send({ type: "watch_project_files", project_id: watched });
}

function take(message: Message): void {
  if (message.type === "project_list") takeList(message);
  else if (message.type === "project_saved") put(projectOf(message["project"]));
  else if (message.type === "project_removed") remove(textOf(message["project_id"]));
  else if (message.type === "project_files_changed") changed(textOf(message["project_id"]));
  else if (message.type === "project_file_error" && message["project_id"] === watched) watchTrouble.value = textOf(message["message"]);
}

function takeList(message: Answer<"project_list">): void {
  const told = Array.isArray(message["projects"]) ? message["projects"].slice(0, MAX_PROJECTS) : [];
  projects.value = byName(told.map(projectOf).filter((each) => each !== null));
}

/** Takes what an answer says of a project, before the news of it comes. */
export function put(project: Project | null): void {
  if (project) projects.value = byName([...(projects.value ?? []).filter(({ id }) => id !== project.id), project].slice(-MAX_PROJECTS));
}

/** Forgets a project that was removed. */
export function remove(id: string): void {
  if (projects.value) projects.value = projects.value.filter((project) => project.id !== id);
}

function byName(list: Project[]): Project[] {
  return list.sort((a, b) => a.name.localeCompare(b.name) || a.directory.localeCompare(b.directory));
}

function changed(project: string): void {
  changes.value = { project, count: changes.value.count + 1 };
}

/** A project's description; `null` for what is none. */
export function projectOf(value: unknown): Project | null {
  if (!isObject<ToldProject>(value) || !textOf(value["id"])) return null;
  const directory = textOf(value["working_dir"]).slice(0, MAX_PATH);
  return { id: textOf(value["id"]), name: textOf(value["name"]).slice(0, MAX_NAME) || directory, directory, node: textOf(value["node_id"]).slice(0, MAX_NAME) || null };
}
