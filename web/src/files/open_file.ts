import { batch, signal } from "@preact/signals";
import { ApiError, asApiError } from "../api/errors";
import { textOf, type Message } from "../workspace/protocol";
import { DiskFile, isMissing, type Told } from "./disk";
import { draftOf, forgetDraft, keepDraft } from "./drafts";
import type { Ask } from "./explorer";
import { imageTypeOf, nameOf } from "./names";
import { sha256Of } from "./sha256";

/** What an open file is shown as. */
export type Look =
  | { is: "loading" }
  | { is: "text" }
  | { is: "image"; type: string; size: number }
  | { is: "other"; size: number; words: string }
  | { is: "failed"; words: string };

/** Two texts of one file: what was typed here, and what is on the disk. */
export interface Conflict {
  /** `null`: the file was deleted. */
  theirs: string | null;
  sha256: string | null;
}

/** How long nothing is typed before the text is kept in this browser, in milliseconds. */
const KEEP_MS = 300;

/** Pictures that are larger are not shown, only offered to be downloaded. */
const MAX_IMAGE = 8 * 1024 * 1024;

/** A file that is open. The text that is edited is the view's; here is what becomes of it. */
export class OpenFile {
  readonly path;
  readonly look = signal<Look>({ is: "loading" });
  /** The text as it is on the disk, as far as that is known. */
  readonly saved = signal("");
  /** The text that the view is to show from here on; `revision` grows each time. */
  readonly shown = signal({ text: "", revision: 0 });
  readonly unsaved = signal(false);
  /** How the file on the disk compares with the one that was edited. */
  readonly disk = signal<"same" | "changed" | "deleted">("same");
  readonly conflict = signal<Conflict | null>(null);
  readonly saving = signal(false);
  /** Why it was not saved; empty if nothing is wrong. */
  readonly trouble = signal("");
  /** The view's own state, while another file is shown. */
  session: unknown = null;
  /** The text as it is in the view. */
  private typedText: () => string = () => this.shown.value.text;
  private readonly file: DiskFile;
  private base: string | null = null;
  private version = "";
  private keeping: ReturnType<typeof setTimeout> | undefined;
  private wanted = false;
  private asText = false;
  private looking: Promise<void> | null = null;

  constructor(readonly project: string, path: string, ask: Ask) {
    this.path = signal(path);
    this.file = new DiskFile(project, () => this.path.value, ask);
  }

  get text(): string {
    return this.typedText();
  }

  /** Reads the file, and takes up what was typed and not saved. */
  async load(): Promise<void> {
    try {
      const [told, draft] = await Promise.all([this.read(), draftOf(this.project, this.path.value)]);
      this.begin(told, draft && draft.text !== told?.text ? draft : null);
      if (draft && draft.text === told?.text) void this.forgetKept();
      this.version = await this.file.look().then(({ version }) => version, () => "");
    } catch (thrown) {
      await this.cannotBeText(asApiError(thrown));
    }
  }

  /** Shows a picture that is text, as text. */
  async loadAsText(): Promise<void> {
    this.asText = true;
    await this.load();
  }

  /** What the view has now, and whether that is another text than the saved one. */
  typed(text: () => string, unsaved: boolean): void {
    this.typedText = text;
    this.unsaved.value = unsaved;
    if (this.trouble.value && !this.wanted) this.trouble.value = "";
    clearTimeout(this.keeping);
    this.keeping = setTimeout(() => void this.keep(), KEEP_MS);
  }

  /** Keeps the text in this browser until it is saved. */
  async keep(): Promise<void> {
    clearTimeout(this.keeping);
    if (this.look.value.is !== "text") return;
    if (!this.unsaved.value) return this.forgetKept();
    await keepDraft({ project: this.project, path: this.path.value, text: this.text, base: this.base, at: Date.now() });
  }

  /** Writes the text to the disk. While there is no connection it is remembered, and done afterwards. */
  async save(): Promise<void> {
    if (this.saving.value || this.look.value.is !== "text") return;
    await this.write(this.text, this.base);
  }

  /** There is a connection again. */
  connected(): void {
    if (this.look.value.is === "failed" || this.look.value.is === "loading") void this.load();
    else if (this.wanted) void this.save();
    else void this.check();
  }

  /** Something in the project has changed: perhaps this file. */
  async check(): Promise<void> {
    this.looking ??= this.lookAtDisk().finally(() => (this.looking = null));
    await this.looking;
  }

  /** Shows both texts, for the person to choose. */
  async compare(): Promise<void> {
    try {
      const told = await this.file.text();
      this.conflict.value = { theirs: told?.text ?? null, sha256: told?.sha256 ?? null };
    } catch (thrown) {
      this.trouble.value = `What is on the disk cannot be shown as text: ${asApiError(thrown).message}`;
    }
  }

  /** Writes a text in the place of the one that is on the disk, which the person has seen. */
  async settle(text: string): Promise<void> {
    const { conflict } = this;
    const base = conflict.value?.sha256 ?? null;
    conflict.value = null;
    if (text !== this.text) batch(() => { this.replace(text); this.unsaved.value = true; });
    await this.write(text, base);
  }

  /** Drops what was typed for what is on the disk. */
  takeTheirs(): void {
    const conflict = this.conflict.value;
    if (conflict?.theirs == null) return;
    this.conflict.value = null;
    this.take(conflict.theirs, conflict.sha256);
  }

  /** Drops what was typed. */
  async discard(): Promise<void> {
    clearTimeout(this.keeping);
    this.unsaved.value = false;
    await this.forgetKept();
  }

  /** The file has another path now. */
  async movedTo(path: string): Promise<void> {
    await this.forgetKept();
    this.path.value = path;
    await this.keep();
  }

  private begin(told: Told | null, draft: { text: string; base: string | null } | null): void {
    if (!told && !draft) throw new ApiError("There is no such file any more.", 404);
    batch(() => {
      this.take(told?.text ?? "", told?.sha256 ?? null);
      this.look.value = { is: "text" };
      if (!draft) return;
      this.replace(draft.text);
      this.unsaved.value = true;
      this.base = draft.base;
      this.disk.value = !told ? "deleted" : draft.base === told.sha256 ? "same" : "changed";
    });
  }

  /** What was read from the disk, or written to it, is what is edited from here on. */
  private take(text: string, sha256: string | null): void {
    batch(() => {
      this.base = sha256;
      this.saved.value = text;
      this.replace(text);
      this.unsaved.value = false;
      this.disk.value = "same";
      this.trouble.value = "";
    });
    void this.forgetKept();
  }

  /** Puts a text into the view. */
  private replace(text: string): void {
    this.typedText = () => text;
    this.shown.value = { text, revision: this.shown.value.revision + 1 };
  }

  private async write(text: string, base: string | null): Promise<void> {
    this.saving.value = true;
    try {
      await this.written(text, await this.file.write(text, base));
    } catch (thrown) {
      this.notWritten(asApiError(thrown));
    } finally {
      this.saving.value = false;
    }
  }

  /** A write whose answer was lost is a conflict with oneself. */
  private async written(text: string, answer: Message): Promise<void> {
    this.wanted = false;
    const [isSaved, mine] = [answer.type === "project_file_saved", sha256Of(text)];
    const theirs = textOf(answer["current_sha256"]);
    if (!isSaved && !theirs && this.disk.value === "deleted") return this.write(text, null);
    if (!isSaved && theirs !== mine) return this.compare();
    batch(() => {
      this.base = textOf(answer["sha256"]) || mine;
      this.saved.value = text;
      this.unsaved.value = this.text !== text;
      this.disk.value = "same";
      this.trouble.value = "";
    });
    this.version = "";
    await this.keep();
  }

  private notWritten(error: ApiError): void {
    this.wanted = error.away;
    this.trouble.value = error.away
      ? "Not saved yet: the connection is lost. It is saved when the connection is back."
      : `It was not saved: ${error.message}`;
    void this.keep();
  }

  private async lookAtDisk(): Promise<void> {
    if (this.look.value.is === "loading" || this.saving.value) return;
    try {
      const { version } = await this.file.look();
      if (version && version === this.version && this.disk.value !== "deleted") return;
      await this.readAgain();
      this.version = version;
    } catch (thrown) {
      const { away, message } = asApiError(thrown);
      if (!away && isMissing(message)) this.disk.value = "deleted";
    }
  }

  /** What nobody edits is shown as it is now; what somebody edits stays. */
  private async readAgain(): Promise<void> {
    if (this.look.value.is !== "text") return this.load();
    const told = await this.read();
    if (!told || this.saving.value) return;
    if (told.sha256 === this.base) this.disk.value = "same";
    else if (this.unsaved.value) this.disk.value = "changed";
    else this.take(told.text, told.sha256);
  }

  private async read(): Promise<Told | null> {
    if (imageTypeOf(nameOf(this.path.value)) && !this.asText) throw new ApiError("It is a picture.", 400);
    return this.file.text();
  }

  /** It is no text, or too large for one: then its size is told. Without a connection it is read later. */
  private async cannotBeText(error: ApiError): Promise<void> {
    if (error.away && error.code !== "timeout") return;
    if (error.status === 404 || error.away) return void (this.look.value = { is: "failed", words: error.message });
    try {
      const { size, version } = await this.file.look();
      const type = imageTypeOf(nameOf(this.path.value));
      this.version = version;
      this.look.value = type && size <= MAX_IMAGE ? { is: "image", type, size } : { is: "other", size, words: error.message };
    } catch (thrown) {
      this.look.value = { is: "failed", words: asApiError(thrown).message };
    }
  }

  private forgetKept(): Promise<void> {
    return forgetDraft(this.project, this.path.value);
  }
}
