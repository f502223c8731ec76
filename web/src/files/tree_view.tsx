import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Explorer } from "./explorer";
import { outerRow, rowNamed, stepBy, type Entry, type Row } from "./tree";
import { TreeRow } from "./tree_row";

/** The height of a line, in pixels; larger for fingers. */
const ROW = 30;
const ROW_COARSE = 42;

/** Lines that are drawn above and below what is seen. */
const MARGIN = 10;

/** How long letters that are typed belong to one name, in milliseconds. */
const TYPING_MS = 700;

export interface TreeActions {
  onOpen: (entry: Entry) => void;
  /** Shows what can be done with an entry. */
  onMenu: (entry: Entry) => void;
  onRename: (entry: Entry) => void;
  onDelete: (entry: Entry) => void;
  /** Something was dropped onto a folder: an entry of the tree, or files from elsewhere. */
  onMoveInto: (folder: string, path: string) => void;
  onDropFiles: (folder: string, data: DataTransfer) => void;
  mayWrite: boolean;
}

/** The files of a project as a tree, of which only the lines in sight are in the page. */
export function TreeView({ explorer, label, actions }: { explorer: Explorer; label: string; actions: TreeActions }) {
  const box = useRef<HTMLDivElement>(null);
  const height = useRowHeight();
  const view = useView(box);
  const [over, setOver] = useState<string | null>(null);
  const rows = explorer.rows.value;
  const active = Math.max(0, rows.findIndex((row) => pathOf(row) === explorer.active.value));
  useLayoutEffect(() => scrollTo(box.current, active * height, height), [explorer.active.value, height]);
  const first = Math.max(0, Math.floor(view.top / height) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / height) + MARGIN);
  const isDrawn = active >= first && active < last;
  const drop = dropHandlers(actions, setOver);
  return (
    <div
      ref={box} class={`tree${over === "" ? " over" : ""}`} role="tree" aria-label={label} tabIndex={0}
      aria-activedescendant={isDrawn && rows[active]?.is === "entry" ? `tree-row-${active}` : undefined}
      onKeyDown={useKeys(explorer, rows, active, actions, () => Math.max(1, Math.floor(view.height / height) - 1))}
      onFocus={() => explorer.active.value ?? focusFirst(explorer, rows)}
      {...drop("")}
    >
      <div role="presentation" class="virtual-space" style={{ height: `${rows.length * height}px` }}>
        <div role="presentation" class="tree-rows" style={{ transform: `translateY(${first * height}px)` }}>
          {rows.slice(first, last).map((row, i) => (
            <TreeRow key={row.key} row={row} id={`tree-row-${first + i}`} height={height} isActive={first + i === active && explorer.active.value !== null}
              isOver={row.is === "entry" && row.entry.kind === "dir" && over === row.entry.path} explorer={explorer} actions={actions} drop={drop} />
          ))}
        </div>
      </div>
    </div>
  );
}

function pathOf(row: Row): string {
  return row.is === "entry" ? row.entry.path : row.key;
}

function focusFirst(explorer: Explorer, rows: Row[]): void {
  if (rows[0]) explorer.active.value = pathOf(rows[0]);
}

/** Opens what a click or Enter means: a folder is expanded or collapsed, a file is shown. */
export async function openEntry(explorer: Explorer, entry: Entry, actions: TreeActions): Promise<void> {
  explorer.active.value = entry.path;
  if (entry.kind === "file") return actions.onOpen(entry);
  if (explorer.expanded.value.has(entry.path)) return explorer.collapse(entry.path);
  if (entry.kind === "dir") return explorer.expand(entry.path);
  if (!(await explorer.expandLink(entry.path))) actions.onOpen(entry);
}

/** The keys of a tree, as the ARIA pattern has them. */
function useKeys(explorer: Explorer, rows: Row[], at: number, actions: TreeActions, page: () => number) {
  const typed = useRef({ text: "", at: 0 });
  const goTo = (index: number) => rows[index] && (explorer.active.value = pathOf(rows[index]));
  return (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.altKey || event.metaKey) return;
    const row = rows[at];
    const step = stepBy(event.key, rows, at, page());
    if (step !== null) goTo(step);
    else if (row && onEntryKey(event, row, explorer, rows, at, actions, goTo)) event.preventDefault();
    else if (event.key.length === 1 && event.key !== " ") typeAhead(typed.current, event.key, rows, at, goTo);
    else return;
    event.preventDefault();
  };
}

function onEntryKey(event: KeyboardEvent, row: Row, explorer: Explorer, rows: Row[], at: number, actions: TreeActions, goTo: (index: number) => void): boolean {
  if (event.key === "ArrowLeft" && !(row.is === "entry" && row.expanded)) return goTo(outerRow(rows, at)), true;
  if (row.is !== "entry") return false;
  const { entry, expanded } = row;
  if (event.key === "ArrowLeft") explorer.collapse(entry.path);
  else if (event.key === "ArrowRight") return expanded ? goTo(at + 1) : entry.kind !== "file" && void openEntry(explorer, entry, actions), true;
  else if (event.key === "Enter" || event.key === " ") void openEntry(explorer, entry, actions);
  else if (event.key === "F2" && actions.mayWrite) actions.onRename(entry);
  else if (event.key === "Delete" && actions.mayWrite) actions.onDelete(entry);
  else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) actions.onMenu(entry);
  else return false;
  return true;
}

function typeAhead(typed: { text: string; at: number }, key: string, rows: Row[], at: number, goTo: (index: number) => void): void {
  const now = performance.now();
  typed.text = now - typed.at < TYPING_MS ? typed.text + key : key;
  typed.at = now;
  const found = rowNamed(rows, at, typed.text);
  if (found !== null) goTo(found);
}

/** What is dropped onto a folder, or beside all of them. */
export type Drop = (folder: string) => Partial<Record<"onDragOver" | "onDragLeave" | "onDrop", (event: DragEvent) => void>>;

/** The kind of data that a line of the tree is dragged as. */
export const ENTRY_DATA = "application/x-warren-entry";

function dropHandlers(actions: TreeActions, setOver: (folder: string | null) => void): Drop {
  if (!actions.mayWrite) return () => ({});
  const isOurs = (event: DragEvent) => [ENTRY_DATA, "Files"].some((type) => event.dataTransfer?.types.includes(type));
  return (folder) => ({
    onDragOver: (event) => {
      if (!isOurs(event)) return;
      event.preventDefault();
      event.stopPropagation();
      setOver(folder);
    },
    onDragLeave: () => setOver(null),
    onDrop: (event) => {
      if (!isOurs(event) || !event.dataTransfer) return;
      event.preventDefault();
      event.stopPropagation();
      setOver(null);
      const path = event.dataTransfer.getData(ENTRY_DATA);
      if (path) actions.onMoveInto(folder, path);
      else actions.onDropFiles(folder, event.dataTransfer);
    },
  });
}

function useRowHeight(): number {
  const [height] = useState(() => (matchMedia("(pointer: coarse)").matches ? ROW_COARSE : ROW));
  return height;
}

function useView(box: { current: HTMLDivElement | null }): { top: number; height: number } {
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current!;
    const read = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const watch = new ResizeObserver(read);
    watch.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);
  return view;
}

function scrollTo(element: HTMLElement | null, top: number, height: number): void {
  if (!element) return;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
}
