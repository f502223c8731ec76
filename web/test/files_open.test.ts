import { createHash } from "node:crypto";
import "fake-indexeddb/auto";
import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/errors";
import { draftedPaths, draftOf, forgetDraft, keepDraft } from "../src/files/drafts";
import { OpenFile } from "../src/files/open_file";
import type { Message } from "../src/workspace/protocol";

const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

describe("an open file", () => {
  const sha = (text: string) => digest(Buffer.from(text));

  /** A server with one text. */
  class Disk {
    text: string | null = "one\n";
    lost = false;
    changes = 0;
    ask = async (message: Message): Promise<Message> => {
      if (this.lost) throw new ApiError("lost", 0);
      if (message.type === "write_project_file") return this.write(message);
      if (this.text === null) throw new ApiError("no such file or directory", 400);
      if (message.type === "read_project_file") return { type: "project_file_content", content: this.text, sha256: sha(this.text) };
      return { type: "project_file_chunk", total_size: this.text.length, version: { file: "1", changed: sha(this.text), settled: true } };
    };

    private write(message: Message): Message {
      const base = message["base_sha256"];
      const current = this.text === null ? null : sha(this.text);
      if (base !== null && base !== current) return { type: "project_file_write_conflict", current_sha256: current };
      this.text = String(message["content"]);
      return { type: "project_file_saved", sha256: sha(this.text) };
    }
  }

  async function opened(path: string): Promise<{ disk: Disk; file: OpenFile }> {
    const disk = new Disk();
    const file = new OpenFile("p", path, disk.ask);
    await file.load();
    return { disk, file };
  }

  it("is saved, and read again while nobody edits it", async () => {
    const { disk, file } = await opened("a");
    file.typed(() => "two\n", true);
    await file.save();
    expect([disk.text, file.unsaved.value, file.saved.value]).toEqual(["two\n", false, "two\n"]);
    disk.text = "three\n";
    await file.check();
    expect([file.text, file.unsaved.value]).toEqual(["three\n", false]);
  });

  it("that two have changed waits for a choice", async () => {
    const { disk, file } = await opened("b");
    file.typed(() => "mine\n", true);
    disk.text = "theirs\n";
    await file.check();
    expect([file.disk.value, file.text]).toEqual(["changed", "mine\n"]);
    await file.save();
    expect([disk.text, file.conflict.value]).toEqual(["theirs\n", { theirs: "theirs\n", sha256: sha("theirs\n") }]);
    disk.text = "later\n";
    await file.settle("mine\n");
    expect([disk.text, file.conflict.value?.theirs]).toEqual(["later\n", "later\n"]);
    await file.settle("merged\n");
    expect([disk.text, file.text, file.disk.value, file.conflict.value]).toEqual(["merged\n", "merged\n", "same", null]);
    file.typed(() => "more\n", true);
    disk.text = "theirs again\n";
    await file.save();
    file.takeTheirs();
    expect([file.text, file.unsaved.value, disk.text]).toEqual(["theirs again\n", false, "theirs again\n"]);
  });

  it("that was deleted is made again once that is known", async () => {
    const { disk, file } = await opened("c");
    file.typed(() => "mine\n", true);
    disk.text = null;
    await file.save();
    expect([disk.text, file.conflict.value]).toEqual([null, { theirs: null, sha256: null }]);
    file.conflict.value = null;
    await file.check();
    expect(file.disk.value).toBe("deleted");
    await file.save();
    expect([disk.text, file.disk.value]).toEqual(["mine\n", "same"]);
  });

  it("is saved when the connection is back, and a lost answer is no conflict", async () => {
    const { disk, file } = await opened("d");
    file.typed(() => "mine\n", true);
    disk.lost = true;
    await file.save();
    expect([file.trouble.value !== "", (await draftOf("p", "d"))?.text]).toEqual([true, "mine\n"]);
    disk.lost = false;
    disk.text = "mine\n";
    file.connected();
    await expect.poll(() => file.unsaved.value).toBe(false);
    expect([file.trouble.value, file.conflict.value]).toEqual(["", null]);
    await expect.poll(() => draftOf("p", "d")).toBeNull();
  });

  it("has what was typed before, also if the disk has another text now", async () => {
    await keepDraft({ project: "p", path: "e", text: "typed\n", base: sha("one\n"), at: 1 });
    await keepDraft({ project: "p", path: "f", text: "typed\n", base: sha("older\n"), at: 1 });
    const [same, other] = [await opened("e"), await opened("f")];
    expect([same.file.text, same.file.unsaved.value, same.file.disk.value]).toEqual(["typed\n", true, "same"]);
    expect([other.file.text, other.file.disk.value]).toEqual(["typed\n", "changed"]);
    await other.file.save();
    expect([other.disk.text, other.file.conflict.value?.theirs]).toEqual(["one\n", "one\n"]);
  });
});

it("drafts are kept apart, and the oldest are forgotten", async () => {
  for (let at = 0; at < 110; at += 1) await keepDraft({ project: "many", path: `f${at}`, text: "x", base: null, at: at + 10 });
  await expect.poll(async () => (await draftedPaths("many")).includes("f0")).toBe(false);
  expect((await draftedPaths("many")).includes("f109")).toBe(true);
  await forgetDraft("many", "f109");
  expect(await draftOf("many", "f109")).toBeNull();
  expect(await draftedPaths("other")).toEqual([]);
});
