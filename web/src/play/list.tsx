import { signal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { VirtualList } from "../parts/virtual_list";
import { hrefOf } from "../route";
import type { Summary } from "../storage/conversations";
import { fileName, fromJson, MAX_IMPORT, saveFile, toJson } from "./export";
import { keep, readAll, removeAll, summaries } from "./shelf";
import { currentId, discard, startNew } from "./talk";
import { newOne } from "./toolbar";

/** Whether the list is shown over the page, where there is no room beside it. */
export const listShown = signal(false);

const ROW = 36;

/** The conversations of this browser. */
export function ConversationList() {
  return (
    <section class="conversations" aria-label="Conversations">
      <button type="button" class="button wide" onClick={() => { listShown.value = false; newOne(); }}><Icon name="plus" /> New conversation</button>
      {summaries.value.length > 0 && (
        <VirtualList items={summaries.value} rowHeight={ROW} keyOf={({ id }) => id} label="Conversations" row={(each) => <Row summary={each} />} />
      )}
      <ListFoot />
    </section>
  );
}

function Row({ summary }: { summary: Summary }) {
  const { id, title } = summary;
  return (
    <div class={`conversation-row ${currentId.value === id ? "here" : ""}`}>
      <a href={hrefOf({ page: "play", id })} aria-current={currentId.value === id ? "true" : undefined} title={title} onClick={() => (listShown.value = false)}>{title}</a>
      <button type="button" class="icon-button" aria-label={`Delete ${title}`} title="Delete" onClick={() => void askToDiscard(summary)}><Icon name="trash" /></button>
    </div>
  );
}

async function askToDiscard({ id, title }: Summary): Promise<void> {
  if (confirm(`Delete “${title}”? It is nowhere else.`)) await discard(id);
}

function ListFoot() {
  const file = useRef<HTMLInputElement>(null);
  const some = summaries.value.length > 0;
  return (
    <div class="list-foot">
      <span class="muted small">Kept in this browser only</span>
      <span class="buttons">
        <button type="button" class="icon-button" aria-label="Import conversations" title="Import" onClick={() => file.current?.click()}><Icon name="upload" /></button>
        <button type="button" class="icon-button" aria-label="Export all conversations" title="Export all" disabled={!some} onClick={() => void exportAll()}><Icon name="download" /></button>
        <button type="button" class="icon-button" aria-label="Delete all conversations" title="Delete all" disabled={!some} onClick={() => void discardAll()}><Icon name="trash" /></button>
      </span>
      <input ref={file} type="file" accept="application/json,.json" hidden aria-label="File of conversations" onChange={(event) => void importFrom(event.currentTarget)} />
    </div>
  );
}

/** Saves all conversations as one file. */
export async function exportAll(): Promise<void> {
  saveFile(fileName("warren-conversations", "json"), "application/json", toJson(await readAll()));
}

async function discardAll(): Promise<void> {
  if (!confirm(`Delete all ${summaries.value.length} conversations? They are nowhere else.`)) return;
  await removeAll();
  startNew();
}

async function importFrom(input: HTMLInputElement): Promise<void> {
  const file = input.files?.[0];
  input.value = "";
  if (!file) return;
  try {
    if (file.size > MAX_IMPORT) throw new Error("The file is too large: 64 MiB at most.");
    const found = fromJson(await file.text());
    for (const each of found) await keep(each);
    toast(`${found.length} conversations were imported.`);
  } catch (thrown) {
    toast(thrown instanceof Error ? thrown.message : String(thrown), "error");
  }
}
