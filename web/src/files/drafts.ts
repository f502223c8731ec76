import { keptAs } from "../storage/place";

/** The most texts that are kept; those that were typed longest ago go first. */
const MAX_DRAFTS = 100;

/** The longest text that is kept, in characters: the server takes no more than 1 MiB. */
const MAX_TEXT = 4 * 1024 * 1024;

/** A text of a file that is not on the disk yet. */
export interface Draft {
  project: string;
  path: string;
  text: string;
  /** The SHA-256 of the file that was edited; `null` if there was none. */
  base: string | null;
  at: number;
}

let opening: Promise<IDBDatabase | null> | null = null;

/** The unsaved text of a file. */
export async function draftOf(project: string, path: string): Promise<Draft | null> {
  return read((drafts) => drafts.get([project, path]) as IDBRequest<Draft | undefined>, undefined).then((draft) => draft ?? null);
}

/** The files of a project that have unsaved text. */
export async function draftedPaths(project: string): Promise<string[]> {
  const keys = await read((drafts) => drafts.getAllKeys(IDBKeyRange.bound([project], [project, []])), []);
  return keys.map((key) => String((key as [string, string])[1]));
}

/** Keeps an unsaved text in this browser. Says whether that worked. */
export async function keepDraft(draft: Draft): Promise<boolean> {
  if (draft.text.length > MAX_TEXT) return false;
  const kept = await write((drafts) => drafts.put(draft));
  void forgetOld();
  return kept;
}

export async function forgetDraft(project: string, path: string): Promise<void> {
  await write((drafts) => drafts.delete([project, path]));
}

async function forgetOld(): Promise<void> {
  const count = await read((drafts) => drafts.count(), 0);
  if (count <= MAX_DRAFTS) return;
  await write((drafts) => {
    let left = count - MAX_DRAFTS;
    const oldest = drafts.index("at").openCursor();
    oldest.onsuccess = () => {
      if (!oldest.result || left <= 0) return;
      left -= 1;
      oldest.result.delete();
      oldest.result.continue();
    };
  }, false);
}

/** A database of its own. Without one, texts are kept by the page alone. */
function database(): Promise<IDBDatabase | null> {
  opening ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open(keptAs("files"), 1);
      request.onupgradeneeded = () => request.result.createObjectStore("drafts", { keyPath: ["project", "path"] }).createIndex("at", "at");
      request.onsuccess = () => {
        request.result.onversionchange = () => { request.result.close(); opening = null; };
        resolve(request.result);
      };
      request.onerror = request.onblocked = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return opening;
}

async function read<T>(ask: (drafts: IDBObjectStore) => IDBRequest<T>, otherwise: T): Promise<T> {
  try {
    const request = ask((await database())!.transaction("drafts").objectStore("drafts"));
    return await new Promise((resolve) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(otherwise);
    });
  } catch {
    return otherwise;
  }
}

/** `isLast`: nothing follows in this transaction, so that it ends even if the page is closed now. */
async function write(act: (drafts: IDBObjectStore) => unknown, isLast = true): Promise<boolean> {
  try {
    const transaction = (await database())!.transaction("drafts", "readwrite");
    act(transaction.objectStore("drafts"));
    if (isLast) transaction.commit();
    return await new Promise((resolve) => {
      transaction.oncomplete = () => resolve(true);
      transaction.onabort = transaction.onerror = () => resolve(false);
    });
  } catch {
    return false;
  }
}
