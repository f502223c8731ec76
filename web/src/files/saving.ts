import type { Sink } from "./download";

/** How long the address of a saved file is kept for the browser, in milliseconds. */
const ADDRESS_MS = 60_000;

interface WritableFile {
  write(data: Uint8Array<ArrayBuffer> | { type: "seek"; position: number } | { type: "truncate"; size: number }): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

type PickSave = (options: { suggestedName: string }) => Promise<{ createWritable(): Promise<WritableFile> }>;

/** Where a file is saved: where the person says, if the browser can write there; else with other downloads. `null`: they changed their mind. */
export async function sinkFor(name: string): Promise<Sink | null> {
  const pick = (window as unknown as { showSaveFilePicker?: PickSave }).showSaveFilePicker;
  if (!pick || !isSecureContext) return new GatheringSink(name);
  try {
    const handle = await pick.call(window, { suggestedName: name });
    return new DiskSink(await handle.createWritable());
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "AbortError") return null;
    return new GatheringSink(name);
  }
}

/** Writes to the disk as the bytes come. */
class DiskSink implements Sink {
  constructor(private readonly file: WritableFile) {}

  write(bytes: Uint8Array<ArrayBuffer>) {
    return this.file.write(bytes);
  }

  async restart() {
    await this.file.write({ type: "truncate", size: 0 });
    await this.file.write({ type: "seek", position: 0 });
  }

  finish() {
    return this.file.close();
  }

  abort() {
    return this.file.abort();
  }
}

/** Gathers pieces that the browser may keep outside of memory, and saves all of them in the end. */
class GatheringSink implements Sink {
  private pieces: Blob[] = [];

  constructor(private readonly name: string) {}

  async write(bytes: Uint8Array<ArrayBuffer>) {
    this.pieces.push(new Blob([bytes]));
  }

  async restart() {
    this.pieces = [];
  }

  async finish() {
    const address = URL.createObjectURL(new Blob(this.pieces, { type: "application/octet-stream" }));
    const link = Object.assign(document.createElement("a"), { href: address, download: this.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), ADDRESS_MS);
  }

  async abort() {
    this.pieces = [];
  }
}
