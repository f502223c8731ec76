import type { Conversation } from "../play/conversation";
import { keptAs } from "./place";

/** What the list of conversations shows of each. */
export interface Summary {
  id: string;
  title: string;
  updated: number;
}

const VERSION = 1;

/** Conversations in this browser. The server keeps none. */
export interface ConversationStore {
  /** All, the one that changed last first. */
  list(): Promise<Summary[]>;
  get(id: string): Promise<Conversation | null>;
  put(conversation: Conversation): Promise<void>;
  remove(id: string): Promise<void>;
  clear(): Promise<void>;
}

/** The browser's store; one in memory where the browser forbids storage. `lasting` says which. */
export async function openStore(): Promise<{ store: ConversationStore; lasting: boolean }> {
  try {
    return { store: new IndexedStore(await openDatabase()), lasting: true };
  } catch {
    return { store: new MemoryStore(), lasting: false };
  }
}

/** The server's own page has had the plain name since there was only that. */
function databaseName(): string {
  const name = keptAs("conversations");
  return name === "warren.conversations" ? "warren" : name;
}

function openDatabase(): Promise<IDBDatabase> {
  const opening = indexedDB.open(databaseName(), VERSION);
  opening.onupgradeneeded = () => {
    opening.result.createObjectStore("conversations", { keyPath: "id" });
    opening.result.createObjectStore("summaries", { keyPath: "id" });
  };
  return new Promise((resolve, reject) => {
    opening.onsuccess = () => {
      // Another tab with a newer page may change the database; this one then lets go of it.
      opening.result.onversionchange = () => opening.result.close();
      resolve(opening.result);
    };
    opening.onerror = () => reject(opening.error);
    opening.onblocked = () => reject(new Error("Another tab holds an older database."));
  });
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function endOf(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

export class IndexedStore implements ConversationStore {
  constructor(private readonly database: IDBDatabase) {}

  async list(): Promise<Summary[]> {
    const store = this.database.transaction("summaries").objectStore("summaries");
    return byTime((await resultOf(store.getAll())) as Summary[]);
  }

  async get(id: string): Promise<Conversation | null> {
    const store = this.database.transaction("conversations").objectStore("conversations");
    return ((await resultOf(store.get(id))) as Conversation | undefined) ?? null;
  }

  put(conversation: Conversation): Promise<void> {
    return this.change((conversations, summaries) => {
      conversations.put(conversation);
      summaries.put(summaryOf(conversation));
    });
  }

  remove(id: string): Promise<void> {
    return this.change((conversations, summaries) => {
      conversations.delete(id);
      summaries.delete(id);
    });
  }

  clear(): Promise<void> {
    return this.change((conversations, summaries) => {
      conversations.clear();
      summaries.clear();
    });
  }

  private change(act: (conversations: IDBObjectStore, summaries: IDBObjectStore) => void): Promise<void> {
    const transaction = this.database.transaction(["conversations", "summaries"], "readwrite");
    act(transaction.objectStore("conversations"), transaction.objectStore("summaries"));
    return endOf(transaction);
  }
}

class MemoryStore implements ConversationStore {
  private readonly all = new Map<string, Conversation>();

  async list() {
    return byTime([...this.all.values()].map(summaryOf));
  }

  async get(id: string) {
    return this.all.get(id) ?? null;
  }

  async put(conversation: Conversation) {
    this.all.set(conversation.id, conversation);
  }

  async remove(id: string) {
    this.all.delete(id);
  }

  async clear() {
    this.all.clear();
  }
}

function summaryOf({ id, title, updated }: Conversation): Summary {
  return { id, title, updated };
}

function byTime(summaries: Summary[]): Summary[] {
  return summaries.sort((a, b) => b.updated - a.updated);
}
