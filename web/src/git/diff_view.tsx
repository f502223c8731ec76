import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { count } from "../live/words";
import type { FileDiff, Line } from "./patch";
import { firstLines, linesOf, MAX_SHOWN, rowsOf, type Row, type Shown } from "./rows";
import { visible } from "./visible";
import "../style/git.css";

/** So many lines are drawn at first, and so many more for each click. */
const STEP = 2000;

interface DiffProps {
  files: FileDiff[];
  /** What screen readers call it. */
  label: string;
  /** Whether what was and what is stand side by side. */
  sideBySide?: boolean;
}

/** What changed in files. All of it is text of others. */
export function DiffView({ files, label, sideBySide = false }: DiffProps) {
  const [most, setMost] = useState(STEP);
  const all = linesOf(files);
  let left = most;
  return (
    <div class="diff">
      {files.map((file, at) => {
        const drawn = Math.max(0, left);
        left -= linesOf([file]);
        return drawn > 0 && <FileView key={at} file={file} label={label} sideBySide={sideBySide} most={drawn} isNamed={files.length > 1} />;
      })}
      {most < all && <button type="button" class="button small diff-more" onClick={() => setMost(most + STEP)}>Show more: {(all - most).toLocaleString("en")} of {count(all, "line")} are left</button>}
    </div>
  );
}

interface FileProps {
  file: FileDiff;
  label: string;
  sideBySide: boolean;
  most: number;
  isNamed: boolean;
}

const FileView = memo(({ file, label, sideBySide, most, isNamed }: FileProps) => {
  const rows = rowsOf(firstLines(file.hunks, most), sideBySide);
  const keepsCr = isMixed(file);
  const columns = columnsOf(file, sideBySide);
  return (
    <>
      {isNamed && <h3 class="diff-name">{visible(file.name)}</h3>}
      {file.notes.map((note, at) => <p key={at} class="diff-note small muted">{visible(note)}</p>)}
      {rows.length > 0 && (
        <table class={`diff-table ${columns}`} aria-label={label}>
          <Head columns={columns} />
          <tbody>{rows.map((row, at) => <RowView key={at} row={row} columns={columns} keepsCr={keepsCr} />)}</tbody>
        </table>
      )}
    </>
  );
});

/** Side by side; one under the other; and that with one number for each line, or none, where no others are known. */
type Columns = "beside" | "unified" | "single" | "plain";

function columnsOf({ hunks }: FileDiff, sideBySide: boolean): Columns {
  if (sideBySide) return "beside";
  const hasNumbers = (of: "before" | "now") => hunks.some(({ lines }) => lines.some((line) => line[of] !== null));
  const [before, now] = [hasNumbers("before"), hasNumbers("now")];
  return before && now ? "unified" : before || now ? "single" : "plain";
}

/** Whether some lines end with a carriage return, and others do not. */
function isMixed({ hunks }: FileDiff): boolean {
  const ends = new Set(hunks.flatMap(({ lines }) => lines.map(({ text }) => text.endsWith("\r"))));
  return ends.size > 1;
}

/** What the columns are, for screen readers: the page shows it by their places. */
const HEADS: Record<Columns, [name: string, kind: "number" | "text"][]> = {
  beside: [["Line before", "number"], ["Before", "text"], ["Line now", "number"], ["Now", "text"]],
  unified: [["Line before", "number"], ["Line now", "number"], ["Text", "text"]],
  single: [["Line", "number"], ["Text", "text"]],
  plain: [["Text", "text"]],
};

function Head({ columns }: { columns: Columns }) {
  const heads = HEADS[columns];
  return (
    <>
      <colgroup>{heads.map(([name, kind]) => <col key={name} class={`diff-col-${kind}`} />)}</colgroup>
      <thead><tr>{heads.map(([name]) => <th key={name} scope="col"><span class="visually-hidden">{name}</span></th>)}</tr></thead>
    </>
  );
}

interface RowProps {
  row: Row;
  columns: Columns;
  /** Whether carriage returns at the ends of lines are shown. */
  keepsCr: boolean;
}

function RowView({ row, columns, keepsCr }: RowProps) {
  if (row.kind === "heading") return <tr class="diff-heading"><td colSpan={HEADS[columns].length}>⋯ {visible(row.text)}</td></tr>;
  const { left, right, isFirst } = row;
  const mark = isFirst ? { "data-change": "", tabIndex: -1 } : {};
  if (columns === "beside") return <tr {...mark}><Side shown={left} number={left?.line.before} keepsCr={keepsCr} /><Side shown={right} number={right?.line.now} keepsCr={keepsCr} /></tr>;
  const shown = right ?? left!;
  return (
    <tr {...mark}>
      {columns === "unified" && <Number of={shown.line} number={left && shown.line.before} />}
      {columns === "unified" && <Number of={shown.line} number={right && shown.line.now} />}
      {columns === "single" && <Number of={shown.line} number={shown.line.now ?? shown.line.before} />}
      <Text shown={shown} keepsCr={keepsCr} />
    </tr>
  );
}

function Side({ shown, number, keepsCr }: { shown: Shown | null; number: number | null | undefined; keepsCr: boolean }) {
  if (!shown) return <><td class="diff-number nothing" /><td class="diff-text nothing" /></>;
  return <><Number of={shown.line} number={number} /><Text shown={shown} keepsCr={keepsCr} /></>;
}

function Number({ of: { kind }, number }: { of: Line; number: number | null | undefined }) {
  return <td class={`diff-number ${kind}`}>{number}</td>;
}

const SIGNS = { same: "", added: "+", removed: "−" };

function Text({ shown: { line, pieces }, keepsCr }: { shown: Shown; keepsCr: boolean }) {
  const over = line.text.length - MAX_SHOWN;
  const shown = over > 0 ? [{ text: line.text.slice(0, MAX_SHOWN), isChanged: false }] : pieces;
  const words = (text: string, isLast: boolean) => visible(isLast && !keepsCr ? text.replace(/\r$/, "") : text);
  return (
    <td class={`diff-text ${line.kind}${line.isConflict ? " conflict" : ""}`}>
      {line.kind !== "same" && <span class="diff-sign">{SIGNS[line.kind]}</span>}
      <code>{shown.map(({ text, isChanged }, at) => (isChanged ? <mark key={at}>{words(text, at === shown.length - 1)}</mark> : words(text, at === shown.length - 1)))}</code>
      {over > 0 && <span class="diff-remark"> … {over.toLocaleString("en")} more characters</span>}
      {line.isUnended && <span class="diff-remark"> no newline at the end</span>}
    </td>
  );
}
