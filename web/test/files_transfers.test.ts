import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/errors";
import { base64Of, bytesOf } from "../src/files/base64";
import { download, type Sink } from "../src/files/download";
import { Pace } from "../src/files/pace";
import { Sha256, sha256Of } from "../src/files/sha256";
import type { Line } from "../src/files/transfer_link";
import { upload } from "../src/files/upload";
import type { Message } from "../src/workspace/protocol";

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("digests and base64", () => {
  it("are those of everybody else, whatever the pieces", () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000, 70_001]) {
      const bytes = randomBytes(length);
      const hash = new Sha256();
      for (let at = 0; at < length; at += 37) hash.update(bytes.subarray(at, at + 37));
      expect(hash.hex()).toBe(digest(bytes));
      expect(base64Of(bytes)).toBe(bytes.toString("base64"));
      expect([...bytesOf(bytes.toString("base64"))]).toEqual([...bytes]);
    }
    expect(sha256Of("é")).toBe(digest(Buffer.from("é")));
  });
});

/** A connection to one file, which changes when `between` says so. */
class FileLine implements Line {
  asked = 0;
  constructor(public bytes: Buffer, public version: { file: string; changed: string; settled: boolean } | null, private readonly between: (line: FileLine) => void = () => undefined) {}

  async ask(message: Message): Promise<Message> {
    this.asked += 1;
    this.between(this);
    const [offset, len] = [Number(message["offset"]), Math.min(Number(message["len"]), 100_000)];
    const data = this.bytes.subarray(offset, offset + len);
    const sha256 = message["check"] && offset <= this.bytes.length ? digest(this.bytes.subarray(0, offset)) : null;
    return { type: "project_file_chunk", data: data.toString("base64"), offset, total_size: this.bytes.length, eof: offset + data.length >= this.bytes.length, version: this.version, sha256 };
  }

  async back(): Promise<void> {}
}

async function fetched(line: FileLine): Promise<{ bytes: Buffer; restarts: number; ended: string }> {
  let pieces: Uint8Array[] = [];
  const told = { restarts: 0, ended: "" };
  const sink: Sink = {
    write: async (bytes) => void pieces.push(bytes),
    restart: async () => { pieces = []; told.restarts += 1; },
    finish: async () => void (told.ended = "finished"),
    abort: async () => void (told.ended = "aborted"),
  };
  const work = download({ line, project: "p", path: "f", sink, signal: new AbortController().signal, onProgress: () => undefined });
  await work.catch((thrown) => (told.ended += `: ${(thrown as Error).message}`));
  return { bytes: Buffer.concat(pieces), ...told };
}

describe("a download", () => {
  const file = randomBytes(350_000);
  const settled = { file: "1", changed: "1", settled: true };

  it("joins the pieces of one file, and asks no more than it has to", async () => {
    const line = new FileLine(file, settled);
    const { bytes, restarts, ended } = await fetched(line);
    expect([bytes.equals(file), restarts, ended, line.asked]).toEqual([true, 0, "finished", 4]);
    expect(await fetched(new FileLine(Buffer.alloc(0), settled))).toMatchObject({ ended: "finished", restarts: 0 });
  });

  it("goes on through lost connections", async () => {
    const line = new FileLine(file, settled, ({ asked }) => { if (asked % 2) throw new ApiError("lost", 0); });
    expect((await fetched(line)).bytes.equals(file)).toBe(true);
  });

  it("begins again where another file has taken the name, or what came was changed", async () => {
    const other = randomBytes(200_000);
    const replaced = await fetched(new FileLine(file, settled, (line) => { if (line.asked === 3) [line.bytes, line.version] = [other, { ...settled, file: "2" }]; }));
    expect([replaced.bytes.equals(other), replaced.restarts]).toEqual([true, 1]);
    const changed = await fetched(new FileLine(file, settled, (line) => { if (line.asked === 3) [line.bytes, line.version] = [Buffer.concat([other, other]), { ...settled, changed: "2" }]; }));
    expect([changed.bytes.equals(Buffer.concat([other, other])), changed.restarts]).toEqual([true, 1]);
  });

  it("takes a file that only grew, and gives up on one that changes all the time", async () => {
    const grown = await fetched(new FileLine(file, settled, (line) => { line.bytes = Buffer.concat([line.bytes, Buffer.from("more")]); line.version = { ...settled, changed: String(line.asked) }; }));
    expect([grown.bytes.subarray(0, file.length).equals(file), grown.restarts, grown.ended]).toEqual([true, 0, "finished"]);
    const restless = await fetched(new FileLine(file, settled, (line) => { line.version = { ...settled, file: String(line.asked) }; }));
    expect(restless.ended).toMatch(/^aborted: The file changed all the time/);
  });

  it("checks what has no certain version", async () => {
    const line = new FileLine(file, { ...settled, settled: false });
    expect([(await fetched(line)).bytes.equals(file), line.asked]).toEqual([true, 5]);
  });
});

/** A server that takes uploads; `parts: false` knows no parts. */
class UploadLine implements Line {
  files = new Map<string, Buffer>();
  log: string[] = [];
  private parts = new Map<string, Buffer>();
  constructor(private readonly options: { parts?: boolean; lose?: (line: UploadLine, message: Message) => "before" | "after" | "forget" | null } = {}) {}

  async ask(message: Message): Promise<Message> {
    const lose = this.options.lose?.(this, message) ?? null;
    if (lose === "before") throw new ApiError("lost", 0);
    if (lose === "forget") { this.parts.clear(); throw new ApiError("lost", 0); }
    const answer = this.answer(message);
    if (lose === "after") throw new ApiError("lost", 0);
    return answer;
  }

  async back(): Promise<void> {}

  private answer(message: Message): Message {
    const [path, data] = [String(message["path"]), Buffer.from(String(message["data"] ?? ""), "base64")];
    this.log.push(`${message.type.split("_").pop()}${message["offset"] ?? ""}`);
    if (message.type === "read_project_file_chunk") return this.look(path, Number(message["offset"]), message["check"] === true);
    if (message.type === "upload_project_file_part") {
      if (this.options.parts === false) throw new ApiError('unknown message type "upload_project_file_part"', 400, "error");
      const [id, offset] = [String(message["upload_id"]), Number(message["offset"])];
      const known = this.parts.get(id) ?? Buffer.alloc(0);
      if (offset > known.length) throw new ApiError("the upload is not known", 400, "project_fs_action_error");
      const all = Buffer.concat([known.subarray(0, offset), data]);
      this.parts.set(id, all);
      if (message["done"]) this.make(path, all);
    } else this.make(path, data);
    return { type: "project_fs_action_result", path };
  }

  private make(path: string, bytes: Buffer): void {
    if (this.files.has(path)) throw new ApiError("a file or directory with that name already exists", 400, "project_fs_action_error");
    this.files.set(path, bytes);
  }

  private look(path: string, offset: number, check: boolean): Message {
    const bytes = this.files.get(path);
    if (!bytes) throw new ApiError("no such file or directory", 400, "project_file_chunk_error");
    return { type: "project_file_chunk", total_size: bytes.length, sha256: check ? digest(bytes.subarray(0, offset)) : null };
  }
}

const send = (line: UploadLine, bytes: Buffer, onProgress: (done: number) => void = () => undefined) =>
  upload({ line, project: "p", path: "f", file: new Blob([new Uint8Array(bytes)]), signal: new AbortController().signal, onProgress });

describe("an upload", () => {
  const [small, large] = [randomBytes(70_000), randomBytes(5 * 1024 * 1024)];

  it("is one message, or parts in order with progress", async () => {
    const line = new UploadLine();
    await send(line, small);
    expect([line.files.get("f")!.equals(small), line.log]).toEqual([true, ["file"]]);
    const [parts, told] = [new UploadLine(), [] as number[]];
    await send(parts, large, (done) => told.push(done));
    expect(parts.files.get("f")!.equals(large)).toBe(true);
    expect(told.at(-1)).toBe(large.length);
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.length).toBeGreaterThan(2);
  });

  it("is refused where the name is taken, before anything large is sent", async () => {
    const line = new UploadLine();
    await send(line, small);
    await expect(send(line, small)).rejects.toThrow("already exists");
    await expect(send(line, large)).rejects.toThrow("already exists");
    expect(line.log.filter((each) => each.startsWith("part"))).toEqual([]);
  });

  it("is done once, whatever is lost", async () => {
    for (const how of ["before", "after", "forget"] as const) {
      for (const bytes of [small, large]) {
        let turn = 0;
        const line = new UploadLine({ lose: () => { turn += 1; return turn === 1 || turn === 4 ? how : null; } });
        await send(line, bytes);
        expect([how, line.files.get("f")!.equals(bytes)]).toEqual([how, true]);
      }
    }
  });

  it("is no second file where only the last answer was lost", async () => {
    let isLost = false;
    const line = new UploadLine({ lose: (_, message) => (message["done"] && !isLost ? ((isLost = true), "after") : null) });
    await send(line, large);
    expect([line.files.get("f")!.equals(large), isLost, line.log.at(-1)]).toEqual([true, true, `chunk${large.length}`]);
  });

  it("falls back to one message where the server knows no parts, and says where that is too large", async () => {
    const line = new UploadLine({ parts: false });
    await send(line, large);
    expect(line.files.get("f")!.equals(large)).toBe(true);
    await expect(send(new UploadLine({ parts: false }), Buffer.alloc(26 * 1024 * 1024))).rejects.toThrow("up to 25 MiB");
  });
});

it("the pace of a transfer follows the connection", () => {
  const pace = new Pace(4 << 20);
  expect(pace.size).toBe(512 << 10);
  for (let i = 0; i < 9; i += 1) pace.took(10);
  expect(pace.size).toBe(4 << 20);
  pace.took(5000);
  expect(pace.size).toBe(2 << 20);
  for (let i = 0; i < 20; i += 1) pace.lost();
  expect(pace.size).toBe(64 << 10);
});
