import { useEffect } from "preact/hooks";
import { bytes } from "../live/words";
import { Icon, type IconName } from "../parts/icon";
import type { Explorer } from "./explorer";
import { canBeNamed, imageTypeOf, parentOf, shownName } from "./names";
import type { Entry, Row } from "./tree";
import { ENTRY_DATA, openEntry, type Drop, type TreeActions } from "./tree_view";

/** How far each level is set in, in pixels. */
const INDENT = 16;

interface RowProps {
  row: Row;
  id: string;
  height: number;
  isActive: boolean;
  isOver: boolean;
  explorer: Explorer;
  actions: TreeActions;
  drop: Drop;
}

/** One line of the tree. */
export function TreeRow(props: RowProps) {
  const { row } = props;
  if (row.is === "entry") return <EntryRow {...props} row={row} />;
  if (row.is === "more") return <MoreRow {...props} folder={row.folder} />;
  return (
    <div role="presentation" class={`tree-row note${row.failed ? " bad-text" : ""}`} style={setIn(row, props.height)}>
      <span>{row.words}</span>
    </div>
  );
}

function EntryRow({ row, id, height, isActive, isOver, explorer, actions, drop }: RowProps & { row: Extract<Row, { is: "entry" }> }) {
  const { entry, expanded } = row;
  const name = shownName(entry.name);
  return (
    <div
      id={id} role="treeitem" class={`tree-row${isActive ? " active" : ""}${isOver ? " over" : ""}`} style={setIn(row, height)}
      aria-level={row.level} aria-posinset={row.position} aria-setsize={row.count} aria-expanded={expanded ?? undefined} aria-selected={isActive}
      aria-label={labelOf(entry)} title={canBeNamed(entry.path) ? name : "This name is not text on the disk. Rename it in a terminal to open it here."}
      draggable={actions.mayWrite && canBeNamed(entry.path)} onDragStart={(event) => event.dataTransfer?.setData(ENTRY_DATA, entry.path)}
      onClick={() => void openEntry(explorer, entry, actions)}
      onContextMenu={(event) => { event.preventDefault(); explorer.active.value = entry.path; actions.onMenu(entry); }}
      {...drop(entry.kind === "dir" ? entry.path : parentOf(entry.path))}
    >
      <span class={`tree-twist${expanded ? " open" : ""}`} aria-hidden="true">{expanded !== null && <Icon name="right" />}</span>
      <Icon name={iconOf(entry, expanded)} />
      <bdi class={`tree-name${canBeNamed(entry.path) ? "" : " muted"}`}>{name}</bdi>
      {entry.kind === "file" && <span class="tree-size muted" aria-hidden="true" data-size={bytes(entry.size)} />}
      <button type="button" class="tree-more" tabIndex={-1} aria-label={`More for ${name}`} title="More" onClick={(event) => { event.stopPropagation(); explorer.active.value = entry.path; actions.onMenu(entry); }}>
        <Icon name="more" />
      </button>
    </div>
  );
}

/** The rest of a large folder comes when it is in sight. */
function MoreRow({ row, folder, height, explorer }: RowProps & { folder: string }) {
  useEffect(() => void explorer.readMore(folder), [folder, explorer.folders.value.get(folder)?.parts]);
  return <div role="presentation" class="tree-row note" style={setIn(row, height)}><span>More is coming…</span></div>;
}

function setIn({ level }: Row, height: number) {
  return { height: `${height}px`, paddingLeft: `${6 + (level - 1) * INDENT}px` };
}

function labelOf(entry: Entry): string {
  const kind = entry.kind === "dir" ? "folder" : entry.kind === "symlink" ? "link" : bytes(entry.size);
  return `${shownName(entry.name)}, ${kind}`;
}

function iconOf(entry: Entry, expanded: boolean | null): IconName {
  if (entry.kind === "symlink") return "link";
  if (entry.kind === "dir") return expanded ? "folderOpen" : "folder";
  return imageTypeOf(entry.name) ? "image" : "file";
}
