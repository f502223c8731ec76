import { ApiError, asApiError } from "../api/errors";
import { numberOf, textOf, type Message } from "../workspace/protocol";
import { base64Of } from "./base64";
import { Pace } from "./pace";
import { Sha256 } from "./sha256";
import { persistently, type Line } from "./transfer_link";

const MIB = 1024 * 1024;

/** What is larger is sent in parts; and the largest part, and what a server takes that knows of no parts. */
const WHOLE = MIB;
const MAX_PART = 4 * MIB;
const MAX_WHOLE = 25 * MIB;

/** How often an upload is begun that the server has forgotten. */
const MAX_BEGINNINGS = 3;

export interface Upload {
  line: Line;
  project: string;
  path: string;
  file: Blob;
  signal: AbortSignal;
  onProgress: (done: number) => void;
}

/** Whether an error means that the name is taken. */
export function isTaken(thrown: unknown): boolean {
  return /already exists/.test(asApiError(thrown).message);
}

/** Sends a new file of any size. It fails if there is one of that name, other than the very same that was sent before a connection broke. */
export async function upload(of: Upload): Promise<void> {
  if (of.file.size <= WHOLE) return sendWhole(of);
  await refuseTaken(of);
  for (let beginning = 1; ; beginning += 1) {
    const sent = await sendParts(of).catch((thrown: unknown) => asApiError(thrown));
    if (!sent) return;
    if (sent.code === "error" && /unknown message type/.test(sent.message)) return sendWholeOrRefuse(of);
    if (isTaken(sent) && (await isThere(of))) return;
    const isForgotten = beginning < MAX_BEGINNINGS && !isTaken(sent) && sent instanceof LostParts;
    if (of.signal.aborted || !isForgotten) throw sent;
  }
}

/** The server has no part of the upload any more: it was away. */
class LostParts extends ApiError {}

async function sendWholeOrRefuse(of: Upload): Promise<void> {
  if (of.file.size > MAX_WHOLE) throw new ApiError("This server takes files of up to 25 MiB: it is older than this page and knows no uploads in parts.", 413);
  return sendWhole(of);
}

async function sendWhole(of: Upload): Promise<void> {
  const data = base64Of(await bytesOfPart(of.file, 0, of.file.size));
  let isUnsure = false;
  try {
    const request = () => of.line.ask({ type: "upload_project_file", ...named(of), data }, "project_fs_action_result");
    await persistently(of.line, of.signal, request, () => (isUnsure = true));
  } catch (thrown) {
    if (!isUnsure || !isTaken(thrown) || !(await isThere(of))) throw thrown;
  }
  of.onProgress(of.file.size);
}

/** Sends all parts in order. A part whose answer was lost is sent again. */
async function sendParts(of: Upload): Promise<null> {
  const [pace, id] = [new Pace(MAX_PART), randomId()];
  let wasLost = false;
  const lost = () => { wasLost = true; pace.lost(); };
  for (let at = 0; at < of.file.size; ) {
    const size = Math.min(pace.size, of.file.size - at);
    const part = { upload_id: id, offset: at, data: base64Of(await bytesOfPart(of.file, at, size)), done: at + size === of.file.size };
    try {
      const began = performance.now();
      await persistently(of.line, of.signal, () => of.line.ask({ type: "upload_project_file_part", ...named(of), ...part }, "project_fs_action_result"), lost);
      pace.took(performance.now() - began);
    } catch (thrown) {
      const error = asApiError(thrown);
      throw wasLost && error.code === "project_fs_action_error" && !isTaken(error) ? new LostParts(error.message, error.status, error.code) : error;
    }
    at += size;
    of.onProgress(at);
  }
  return null;
}

/** What takes long to send is not sent in vain. */
async function refuseTaken(of: Upload): Promise<void> {
  const found = await persistently(of.line, of.signal, () => lookAt(of, 0, false)).then(() => true, (thrown: unknown) => {
    if (of.signal.aborted || asApiError(thrown).away) throw thrown;
    return /is a directory|not a regular file/.test(asApiError(thrown).message);
  });
  if (found) throw new ApiError("a file or directory with that name already exists", 400, "project_fs_action_error");
}

/** Whether the server has exactly this file. */
async function isThere(of: Upload): Promise<boolean> {
  try {
    const answer = await persistently(of.line, of.signal, () => lookAt(of, of.file.size, true));
    return numberOf(answer["total_size"]) === of.file.size && textOf(answer["sha256"]) === (await digestOf(of.file));
  } catch {
    return false;
  }
}

function lookAt(of: Upload, offset: number, check: boolean): Promise<Message> {
  return of.line.ask({ type: "read_project_file_chunk", ...named(of), offset, len: 0, check }, "project_file_chunk");
}

async function digestOf(file: Blob): Promise<string> {
  const hash = new Sha256();
  for (let at = 0; at < file.size; at += MAX_PART) hash.update(await bytesOfPart(file, at, MAX_PART));
  return hash.hex();
}

async function bytesOfPart(file: Blob, at: number, size: number): Promise<Uint8Array> {
  try {
    return new Uint8Array(await file.slice(at, at + size).arrayBuffer());
  } catch {
    throw new ApiError("The browser cannot read the file any more; perhaps it was changed or moved. Choose it again.", 400);
  }
}

function named({ project, path }: Upload) {
  return { project_id: project, path, request_id: randomId() };
}

export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
