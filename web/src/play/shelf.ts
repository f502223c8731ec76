import { signal } from "@preact/signals";
import { toast } from "../parts/toast";
import { openStore, type ConversationStore, type Summary } from "../storage/conversations";
import { keepDraft } from "../storage/drafts";
import { keptAs } from "../storage/place";
import type { Conversation } from "./conversation";

/** The conversations of this browser, the one that changed last first. */
export const summaries = signal<Summary[]>([]);

/** Tells other tabs that a conversation was changed: the id, or `*` for all. There is none before the shelf is open. */
let channel: BroadcastChannel | null = null;

let opened: Promise<ConversationStore> | null = null;

function store(): Promise<ConversationStore> {
  opened ??= openStore().then(({ store: found, lasting }) => {
    if (!lasting) toast("This browser keeps no conversations: they last until the tab is closed.");
    return found;
  });
  return opened;
}

/** Reads the list, and calls `onOther` when another tab has changed a conversation. */
export function openShelf(onOther: (id: string) => void): () => void {
  void relist();
  if (typeof BroadcastChannel === "undefined") return () => undefined;
  const opened = new BroadcastChannel(keptAs("conversations"));
  opened.onmessage = ({ data }) => {
    void relist();
    onOther(String(data));
  };
  channel = opened;
  return () => {
    opened.close();
    if (channel === opened) channel = null;
  };
}

async function relist(): Promise<void> {
  summaries.value = await (await store()).list();
}

/** The conversation that changed last. */
export async function latest(): Promise<Conversation | null> {
  await relist();
  const first = summaries.value[0];
  return first ? read(first.id) : null;
}

export async function read(id: string): Promise<Conversation | null> {
  return (await store()).get(id);
}

/** Keeps a conversation. A full disk is told, and loses nothing that is on the page. */
export async function keep(conversation: Conversation): Promise<void> {
  try {
    await (await store()).put(conversation);
    await changed(conversation.id);
  } catch {
    toast("The browser could not keep this conversation. Is its storage full? Export or delete old ones.", "error");
  }
}

export async function remove(id: string): Promise<void> {
  keepDraft(id, "");
  await (await store()).remove(id);
  await changed(id);
}

export async function removeAll(): Promise<void> {
  for (const { id } of summaries.value) keepDraft(id, "");
  await (await store()).clear();
  await changed("*");
}

/** All conversations in full, for an export. */
export async function readAll(): Promise<Conversation[]> {
  const found = await Promise.all(summaries.value.map(({ id }) => read(id)));
  return found.filter((each) => each !== null);
}

async function changed(id: string): Promise<void> {
  channel?.postMessage(id);
  await relist();
}
