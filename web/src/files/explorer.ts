import { batch, computed, signal } from "@preact/signals";
import { asApiError } from "../api/errors";
import type { Link } from "../workspace/link";
import { keepPaths, keptPaths } from "./kept";
import { isWithin, movedPath, parentOf } from "./names";
import { partOf, rowsOf, type Entry, type Folder } from "./tree";

/** Asks the server for something. */
export type Ask = Link["ask"];

/** The least pause between two looks at all folders, and how much longer than a look it is. */
const PAUSE_MS = 400;
const PAUSE_PER_LOOK = 2;

/** The most folders that are read again after a change. */
const MAX_EXPANDED = 300;

/** A project's folders, as far as somebody has looked into them. */
export class Explorer {
  readonly folders = signal<ReadonlyMap<string, Folder>>(new Map());
  readonly expanded;
  /** The path of the line that keys act on. */
  readonly active = signal<string | null>(null);
  readonly rows;
  private reading = new Map<string, Promise<void>>();
  private looking = false;
  private again = false;
  private ended = false;

  constructor(readonly project: string, private readonly ask: Ask) {
    this.expanded = signal<ReadonlySet<string>>(new Set(keptPaths("expanded", project)));
    this.rows = computed(() => rowsOf(this.folders.value, this.expanded.value));
  }

  /** The entry of a path, if its folder was read. */
  entry(path: string): Entry | null {
    return this.folders.value.get(parentOf(path))?.entries.find((each) => each.path === path) ?? null;
  }

  expand(path: string): void {
    this.keep(new Set([...this.expanded.value, path].slice(-MAX_EXPANDED)));
    void this.read(path);
  }

  collapse(path: string): void {
    this.keep(new Set([...this.expanded.value].filter((each) => each !== path)));
  }

  /** Expands a link if it leads to a folder; says whether it does. */
  async expandLink(path: string): Promise<boolean> {
    await this.read(path);
    if (this.folders.value.get(path)?.error) {
      this.forget(path);
      return false;
    }
    this.expand(path);
    return true;
  }

  /** Shows a path: the folders around it are expanded, and it is the active line. */
  async reveal(path: string): Promise<void> {
    const around: string[] = [];
    for (let folder = parentOf(path); folder; folder = parentOf(folder)) around.unshift(folder);
    this.keep(new Set([...this.expanded.value, ...around]));
    await Promise.all(["", ...around].map((folder) => this.read(folder)));
    this.active.value = path;
  }

  /** Reads the next part of a large folder. */
  async readMore(path: string): Promise<void> {
    const folder = this.folders.value.get(path);
    if (folder?.next) await this.readOnce(path, folder.parts + 1, { ...folder });
  }

  /** Reads a folder again, as far as it was read. */
  async read(path: string): Promise<void> {
    await this.readOnce(path, this.folders.value.get(path)?.parts ?? 1);
  }

  /** Something has changed: all folders that are seen are read again, but not all the time. */
  refresh(): void {
    this.again = true;
    if (!this.looking) void this.look();
  }

  /** Whatever is under way is of no interest any more. */
  end(): void {
    this.ended = true;
  }

  /** An entry has another path now. */
  moved(from: string, to: string): void {
    this.keep(new Set([...this.expanded.value].map((path) => movedPath(path, from, to))));
    this.forget(from);
  }

  private async look(): Promise<void> {
    this.looking = true;
    while (this.again && !this.ended) {
      this.again = false;
      const began = performance.now();
      for (const path of this.seen()) await this.read(path);
      await new Promise((resolve) => setTimeout(resolve, Math.max(PAUSE_MS, (performance.now() - began) * PAUSE_PER_LOOK)));
    }
    this.looking = false;
  }

  /** The folders whose entries are lines now, outer ones first. */
  private seen(): string[] {
    const isSeen = (path: string) => path === "" || this.isShown(path);
    return ["", ...this.expanded.value].filter(isSeen).sort((a, b) => a.length - b.length);
  }

  /** Whether all folders around an expanded one are expanded, too. */
  private isShown(path: string): boolean {
    for (let folder = parentOf(path); folder; folder = parentOf(folder)) if (!this.expanded.value.has(folder)) return false;
    return true;
  }

  /** Each folder is read once at a time. */
  private async readOnce(path: string, parts: number, known?: Folder): Promise<void> {
    while (this.reading.has(path)) await this.reading.get(path);
    const work = this.readParts(path, parts, known).finally(() => this.reading.delete(path));
    this.reading.set(path, work);
    await work;
  }

  private async readParts(path: string, parts: number, known?: Folder): Promise<void> {
    try {
      const folder = known ?? { entries: [], next: null, parts: 0, error: "" };
      do await this.readPart(path, folder); while (folder.next && folder.parts < parts);
      this.put(path, folder);
    } catch (thrown) {
      this.failed(path, asApiError(thrown));
    }
  }

  /** The root is `.`: errors of the watch have no path. */
  private async readPart(path: string, folder: Folder): Promise<void> {
    const answer = await this.ask({ type: "list_project_files", project_id: this.project, path: path || ".", after: folder.next ?? "" }, "project_file_list");
    const { entries, next } = partOf(answer);
    folder.entries = folder.entries.length ? folder.entries.concat(entries) : entries;
    folder.next = entries.length ? next : null;
    folder.parts += 1;
  }

  /** What was read stays while the server is away; a folder that is gone is forgotten. */
  private failed(path: string, { away, message }: { away: boolean; message: string }): void {
    const known = this.folders.value.get(path);
    if (away && known && !known.error) return;
    const isGone = !away && path !== "" && !this.entry(path);
    if (isGone) return batch(() => { this.collapse(path); this.forget(path); });
    this.put(path, { entries: [], next: null, parts: 1, error: message });
  }

  private put(path: string, folder: Folder): void {
    if (!this.ended) this.folders.value = new Map(this.folders.value).set(path, folder);
  }

  private forget(path: string): void {
    this.folders.value = new Map([...this.folders.value].filter(([each]) => !isWithin(each, path)));
  }

  private keep(expanded: ReadonlySet<string>): void {
    this.expanded.value = expanded;
    keepPaths("expanded", this.project, expanded);
  }
}
