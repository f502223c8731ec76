import { ApiError } from "../api/errors";
import type { FileVersion } from "../api/generated";
import type { Unsure } from "../api/types";
import { isObject, numberOf, textOf, type Answer, type ClientMessage } from "../workspace/protocol";
import { bytesOf } from "./base64";
import { Pace } from "./pace";
import { Sha256 } from "./sha256";
import { persistently, type Line } from "./transfer_link";

/** The most of a piece, as the protocol has it. */
const MAX_PIECE = 8 * 1024 * 1024;

/** How often a file that changes meanwhile is begun again. */
const MAX_BEGINNINGS = 4;

/** Where a downloaded file goes to. */
export interface Sink {
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Everything begins anew. */
  restart(): Promise<void>;
  finish(): Promise<void>;
  /** Nothing is kept. */
  abort(): Promise<void>;
}

export interface Download {
  line: Line;
  project: string;
  path: string;
  sink: Sink;
  signal: AbortSignal;
  onProgress: (done: number, total: number) => void;
}

/** A piece of a file, as it was told. */
interface Piece {
  bytes: Uint8Array<ArrayBuffer>;
  offset: number;
  total: number;
  end: boolean;
  file: string;
  changed: string;
  settled: boolean;
}

/** Fetches a file of any size, all of it as of one moment. */
export async function download(of: Download): Promise<void> {
  try {
    for (let beginning = 1; !(await fetchOnce(of)); beginning += 1) {
      if (beginning === MAX_BEGINNINGS) throw new ApiError("The file changed all the time while it was fetched. Try again when nobody writes to it.", 409);
      await of.sink.restart();
    }
    of.signal.throwIfAborted();
    await of.sink.finish();
  } catch (thrown) {
    await of.sink.abort().catch(() => undefined);
    throw thrown;
  }
}

/** Fetches it from its beginning; says whether what came is one file at one moment. */
async function fetchOnce(of: Download): Promise<boolean> {
  const [pace, hash] = [new Pace(MAX_PIECE), new Sha256()];
  let first: Piece | null = null;
  let isCertain = true;
  for (let at = 0; ; ) {
    const piece = await pieceAt(of, at, pace);
    first ??= piece;
    if (piece.file !== first.file || piece.offset !== at) return false;
    isCertain &&= piece.settled && piece.changed === first.changed;
    await of.sink.write(piece.bytes);
    hash.update(piece.bytes);
    at += piece.bytes.length;
    of.onProgress(at, Math.max(at, piece.total));
    // What grows all the time is fetched as far as it went at first.
    if (piece.end || at >= first.total) return isCertain || (await isStill(of, at, hash.hex()));
    if (!piece.bytes.length) return false;
  }
}

async function pieceAt(of: Download, offset: number, pace: Pace): Promise<Piece> {
  return persistently(of.line, of.signal, async () => {
    const began = performance.now();
    const answer = await of.line.ask(requestFor(of, offset, pace.size, false), "project_file_chunk");
    pace.took(performance.now() - began);
    return pieceOf(answer);
  }, () => pace.lost());
}

/** Whether the file begins with the bytes of this digest. */
async function isStill(of: Download, length: number, digest: string): Promise<boolean> {
  const answer = await persistently(of.line, of.signal, () => of.line.ask(requestFor(of, length, 0, true), "project_file_chunk"));
  return textOf(answer["sha256"]) === digest;
}

function requestFor({ project, path }: Download, offset: number, len: number, check: boolean): ClientMessage {
  return { type: "read_project_file_chunk", request_id: crypto.getRandomValues(new Uint32Array(4)).join("-"), project_id: project, path, offset, len, check };
}

function pieceOf(message: Answer<"project_file_chunk">): Piece {
  const version: Unsure<FileVersion> = isObject(message["version"]) ? message["version"] : {};
  return {
    bytes: bytesOf(textOf(message["data"])),
    offset: numberOf(message["offset"]) ?? 0,
    total: numberOf(message["total_size"]) ?? 0,
    end: message["eof"] === true,
    file: textOf(version["file"]),
    changed: textOf(version["changed"]),
    settled: version["settled"] === true,
  };
}
