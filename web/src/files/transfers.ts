import { effect, signal } from "@preact/signals";
import { asApiError } from "../api/errors";
import { access } from "../live/state";
import { download } from "./download";
import { nameOf, parentOf, joined, savedName } from "./names";
import { sinkFor } from "./saving";
import type { ClientMessage } from "../workspace/protocol";
import { persistently, withLine, type Line } from "./transfer_link";
import { isTaken, randomId, upload } from "./upload";

/** How many transfers run at the same time, and how many are listed. */
const MAX_RUNNING = 2;
const MAX_LISTED = 1000;

/** A file on its way. */
export interface Transfer {
  id: string;
  kind: "upload" | "download";
  project: string;
  path: string;
  done: number;
  total: number;
  /** `taken`: there is a file of that name, and the person says what to do. */
  state: "waiting" | "running" | "done" | "failed" | "taken";
  words: string;
  file: Blob | null;
}

/** All transfers since the page was opened, but those that were put away. */
export const transfers = signal<Transfer[]>([]);

const stops = new Map<string, AbortController>();
const queue: (() => Promise<void>)[] = [];
let running = 0;

// Who signs out takes what is under way along.
effect(() => {
  if (!access.value) stops.forEach((stop) => stop.abort());
});

// A page that is closed takes them along, too.
window.addEventListener("beforeunload", (event) => stops.size > 0 && event.preventDefault());

/** Sends files into a folder. Says how many there is no room for in the list. */
export function uploadFiles(project: string, folder: string, files: File[]): number {
  const room = Math.max(0, MAX_LISTED - transfers.value.length);
  files.slice(0, room).forEach((file) => enqueue(listed("upload", project, joined(folder, file.name), file.size, file)));
  return Math.max(0, files.length - room);
}

/** Fetches a file, once the person has said where to. */
export async function downloadFile(project: string, path: string, size = 0): Promise<void> {
  const sink = await sinkFor(savedName(nameOf(path)));
  if (!sink) return;
  const transfer = listed("download", project, path, size, null);
  start(transfer.id, (line, stop) =>
    download({ line, project, path, sink, signal: stop, onProgress: (done, total) => change(transfer.id, { done, total }) }));
}

/** Sends a file whose name was taken by another name. */
export function uploadAs(transfer: Transfer, name: string): void {
  enqueue(change(transfer.id, { path: joined(parentOf(transfer.path), name), state: "waiting", words: "" }));
}

/** Puts a file in the place of the one that is there. The old one is deleted once the new one is complete. */
export function replaceBy({ id }: Transfer): void {
  const transfer = change(id, { state: "waiting", words: "" });
  if (!transfer?.file) return;
  const { project, path, file } = transfer;
  const beside = joined(parentOf(path), `.upload-${randomId()}`);
  start(id, async (line, signal) => {
    try {
      await upload({ line, project, path: beside, file, signal, onProgress: (done) => change(id, { done }) });
    } catch (thrown) {
      // What is there of the new file is in nobody's way.
      await line.ask({ type: "delete_project_entry", project_id: project, path: beside, request_id: randomId() }, "project_fs_action_result").catch(() => undefined);
      throw thrown;
    }
    await doOnce(line, signal, (request_id) => ({ type: "delete_project_entry", project_id: project, path, request_id }));
    await doOnce(line, signal, (request_id) => ({ type: "move_project_entry", project_id: project, from: beside, to: path, request_id }));
  });
}

/** Does something that cannot be done twice: if the first answer was lost, the second one says that nothing is there any more. */
async function doOnce(line: Line, signal: AbortSignal, messageOf: (requestId: string) => ClientMessage): Promise<void> {
  let isUnsure = false;
  const request = () => line.ask(messageOf(randomId()), "project_fs_action_result");
  try {
    await persistently(line, signal, request, () => (isUnsure = true));
  } catch (thrown) {
    if (!isUnsure || !/no such file/.test(asApiError(thrown).message)) throw thrown;
  }
}

/** Ends a transfer, or takes one that is over from the list. */
export function dismissTransfer(id: string): void {
  stops.get(id)?.abort();
  transfers.value = transfers.value.filter((each) => each.id !== id);
}

export function dismissDone(): void {
  transfers.value = transfers.value.filter(({ state }) => state !== "done");
}

function listed(kind: Transfer["kind"], project: string, path: string, total: number, file: Blob | null): Transfer {
  const transfer: Transfer = { id: randomId(), kind, project, path, done: 0, total, state: "waiting", words: "", file };
  transfers.value = [...transfers.value.slice(-(MAX_LISTED - 1)), transfer];
  return transfer;
}

function enqueue(transfer: Transfer | null): void {
  if (!transfer?.file) return;
  const { id, project, path, file } = transfer;
  start(id, (line, signal) => upload({ line, project, path, file, signal, onProgress: (done) => change(id, { done }) }));
}

function start(id: string, work: (line: Line, signal: AbortSignal) => Promise<void>): void {
  const stop = new AbortController();
  stops.set(id, stop);
  queue.push(() => run(id, stop, work));
  next();
}

function next(): void {
  while (running < MAX_RUNNING && queue.length) {
    running += 1;
    void queue.shift()!().finally(() => { running -= 1; next(); });
  }
}

async function run(id: string, stop: AbortController, work: (line: Line, signal: AbortSignal) => Promise<void>): Promise<void> {
  if (stop.signal.aborted) return;
  change(id, { state: "running" });
  try {
    await withLine((line) => work(line, stop.signal));
    change(id, { state: "done" });
  } catch (thrown) {
    if (!stop.signal.aborted) change(id, isTaken(thrown) ? { state: "taken" } : { state: "failed", words: asApiError(thrown).message });
  } finally {
    stops.delete(id);
  }
}

/** Changes what is told of a transfer; `null` if it is not listed any more. */
function change(id: string, by: Partial<Transfer>): Transfer | null {
  let changed: Transfer | null = null;
  transfers.value = transfers.value.map((each) => (each.id === id ? (changed = { ...each, ...by }) : each));
  return changed;
}
