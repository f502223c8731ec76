import { computed, effect, signal, untracked } from "@preact/signals";
import { access } from "../live/state";
import { askProjects, changes, isConnected } from "./connection";
import { draftedPaths } from "./drafts";
import { keepPaths, keptPaths } from "./kept";
import { isWithin, movedPath } from "./names";
import { OpenFile } from "./open_file";

/** The most files that are open at the same time. */
export const MAX_OPEN = 20;

/** The files of a project that are open. */
export class OpenFiles {
  readonly files = signal<OpenFile[]>([]);
  readonly shown = signal<OpenFile | null>(null);
  readonly unsaved = computed(() => this.files.value.filter(({ unsaved }) => unsaved.value));
  private readonly stops: (() => void)[];

  constructor(readonly project: string) {
    this.stops = [this.followDisk(), this.followConnection(), this.warn()];
    void this.openAgain();
  }

  /** Opens a file, or shows it if it is open. `false`: too many are open, and all of them have unsaved text. */
  open(path: string): boolean {
    const known = this.files.value.find((file) => file.path.value === path);
    if (known) {
      this.show(known);
      return true;
    }
    if (!this.makeRoom()) return false;
    this.show(this.add(path));
    return true;
  }

  show(file: OpenFile | null): void {
    this.shown.value = file;
    this.remember();
  }

  /** Closes a file. What was typed in it is dropped: who calls this has asked. */
  close(file: OpenFile): void {
    const at = this.files.value.indexOf(file);
    const left = this.files.value.filter((each) => each !== file);
    void file.discard();
    this.files.value = left;
    if (this.shown.value === file) this.shown.value = left[Math.min(at, left.length - 1)] ?? null;
    this.remember();
  }

  /** An entry was moved. */
  moved(from: string, to: string): void {
    for (const file of this.within(from)) void file.movedTo(movedPath(file.path.value, from, to));
    this.remember();
  }

  /** The open files that an entry is, or has in it. */
  within(path: string): OpenFile[] {
    return this.files.value.filter((file) => isWithin(file.path.value, path));
  }

  /** An entry was deleted: what has no unsaved text is closed. */
  deleted(path: string): void {
    this.within(path).forEach((file) => (file.unsaved.value ? (file.disk.value = "deleted") : this.close(file)));
  }

  /** Keeps all unsaved texts, and follows nothing any more. */
  end(): void {
    this.stops.forEach((stop) => stop());
    void this.keep();
  }

  /** Keeps all unsaved texts in this browser now. */
  async keep(): Promise<void> {
    await Promise.all(this.files.value.map((file) => file.keep()));
  }

  private add(path: string): OpenFile {
    const file = new OpenFile(this.project, path, askProjects);
    this.files.value = [...this.files.value, file];
    void file.load();
    return file;
  }

  /** Closes the file that was opened first and has nothing unsaved, if there are too many. */
  private makeRoom(): boolean {
    if (this.files.value.length < MAX_OPEN) return true;
    const oldest = this.files.value.find(({ unsaved }) => !unsaved.value);
    if (oldest) this.close(oldest);
    return Boolean(oldest);
  }

  /** What was open before, and what has unsaved text. The first of the remembered paths is the one that was shown. */
  private async openAgain(): Promise<void> {
    const [shown, ...paths] = keptPaths("open", this.project);
    const all = [...new Set([...paths, ...(await draftedPaths(this.project))])].slice(0, MAX_OPEN);
    const missing = all.filter((path) => !this.files.value.some((file) => file.path.value === path));
    missing.slice(0, MAX_OPEN - this.files.value.length).forEach((path) => this.add(path));
    if (!this.shown.value) this.shown.value = this.files.value.find((file) => file.path.value === shown) ?? null;
    this.remember();
  }

  private remember(): void {
    keepPaths("open", this.project, [this.shown.value?.path.value ?? "", ...this.files.value.map((file) => file.path.value)]);
  }

  private followDisk(): () => void {
    return effect(() => {
      const { project, count } = changes.value;
      if (count && project === this.project) untracked(() => this.files.value.forEach((file) => void file.check()));
    });
  }

  private followConnection(): () => void {
    return effect(() => {
      if (isConnected.value) untracked(() => this.files.value.forEach((file) => file.connected()));
    });
  }

  /** Whoever closes the page with unsaved text is asked; and what was typed last is kept. */
  private warn(): () => void {
    const onHide = () => void this.keep();
    const onLeave = (event: BeforeUnloadEvent) => {
      onHide();
      if (this.unsaved.peek().length) event.preventDefault();
    };
    window.addEventListener("beforeunload", onLeave);
    window.addEventListener("pagehide", onHide);
    document.addEventListener("visibilitychange", onHide);
    return () => {
      window.removeEventListener("beforeunload", onLeave);
      window.removeEventListener("pagehide", onHide);
      document.removeEventListener("visibilitychange", onHide);
    };
  }
}

let current: OpenFiles | null = null;

/** The open files of a project. Those of the one before are kept in this browser, and opened again with it. */
export function openFilesOf(project: string): OpenFiles {
  if (current?.project === project) return current;
  current?.end();
  current = new OpenFiles(project);
  return current;
}

effect(() => {
  if (!access.value) untracked(forgetOpenFiles);
});

function forgetOpenFiles(): void {
  current?.end();
  current = null;
}
