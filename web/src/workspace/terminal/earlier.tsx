import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { asApiError } from "../../api/errors";
import { count } from "../../live/words";
import { Dialog } from "../../parts/dialog";
import { Icon } from "../../parts/icon";
import { VirtualList } from "../../parts/virtual_list";
import { saveFile } from "../../play/export";
import { ask } from "../hub";
import type { Session } from "../protocol";
import { titleOf } from "../words";
import { found, Past } from "./history";
import { Search } from "./search";
import type { Size } from "./screen";

/** The height of a row, in pixels; the style has the same. */
const ROW = 20;

/** Closer to the top than this, in pixels, what was before is read. */
const NEAR_TOP = 40;

interface EarlierProps {
  session: Session;
  /** The size of the terminal that printed it; `null` while this is closed. */
  size: Size | null;
  onClose: () => void;
}

/** All that a session has printed, as text, the newest at the end. It is read as somebody scrolls up. */
export function EarlierDialog({ session, size, onClose }: EarlierProps) {
  return (
    <Dialog open={size !== null} onClose={onClose} label="Earlier output" title="Earlier output" class="wide-dialog earlier-dialog">
      {size && <Earlier session={session} size={size} />}
    </Dialog>
  );
}

function Earlier({ session, size }: { session: Session; size: Size }) {
  const { past, error, busy, read } = usePast(session.id, size);
  const box = useRef<HTMLDivElement>(null);
  const [words, setWords] = useState("");
  const [chosen, setChosen] = useState(0);
  const places = useMemo(() => found(past.rows, words), [past.rows, words]);
  const at = places.length - 1 - Math.min(chosen, Math.max(0, places.length - 1));
  useStill(box, past, words ? places[at] : undefined);
  const step = (by: number) => {
    // Before the first place there may be others in what was not read yet.
    if (by > 0 && chosen >= places.length - 1 && past.more) read();
    else if (places.length) setChosen((chosen + by + places.length) % places.length);
  };
  return (
    <>
      <Search words={words} place={places.length ? at + 1 : 0} of={places.length} more={past.more} onWords={(to) => { setWords(to); setChosen(0); }} onStep={step} />
      <EarlierState past={past} busy={busy} error={error} onRead={read} />
      <div ref={box} class="earlier" onScrollCapture={(event) => (event.target as HTMLElement).scrollTop < NEAR_TOP && !error && read()}>
        <VirtualList items={past.rows} rowHeight={ROW} keyOf={({ key }) => key} label="Output" row={({ text }, index) => <Marked text={text} words={words} now={index === places[at]} />} />
      </div>
      <div class="dialog-foot">
        <button type="button" class="button" disabled={!past.rows.length} onClick={() => saveFile(`${fileNameOf(session)}.txt`, "text/plain", past.text())}><Icon name="download" /> Save as a file</button>
      </div>
    </>
  );
}

/** The past of a session, whose end is read at once. */
function usePast(id: string, size: Size) {
  const past = useMemo(() => new Past(id, size, ask), [id]);
  const [, setRows] = useState(past.rows);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const reading = useRef(false);
  const read = async () => {
    if (reading.current || !past.more) return;
    reading.current = true;
    setBusy(true);
    setError("");
    await past.earlier().catch((thrown) => setError(asApiError(thrown).message));
    reading.current = false;
    setRows(past.rows);
    setBusy(false);
  };
  useEffect(() => void read(), [past]);
  return { past, error, busy, read: () => void read() };
}

/** Keeps the row in sight that was there when earlier ones come; at first that is the last one. Goes to a row that is found. */
function useStill(box: { current: HTMLDivElement | null }, { rows }: Past, place: number | undefined): void {
  const first = useRef<number | null>(null);
  const list = () => box.current?.querySelector(".virtual");
  useLayoutEffect(() => {
    const scrolled = list();
    if (!scrolled || !rows.length) return;
    if (first.current === null) scrolled.scrollTop = rows.length * ROW;
    else scrolled.scrollTop += (first.current - rows[0]!.key) * ROW;
    first.current = rows[0]!.key;
  }, [rows]);
  useLayoutEffect(() => {
    const scrolled = list();
    if (scrolled && place !== undefined) scrolled.scrollTop = place * ROW - scrolled.clientHeight / 2;
  }, [place]);
}

interface StateProps {
  past: Past;
  busy: boolean;
  error: string;
  onRead: () => void;
}

function EarlierState({ past, busy, error, onRead }: StateProps) {
  if (error) return <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span><button type="button" class="button small" onClick={onRead}>Try again</button></p>;
  return (
    <p class="earlier-state muted small" role="status">
      {busy ? "Reading…" : past.rows.length ? count(past.rows.length, "line") : "It has printed nothing."}
      {!busy && past.full && " More is not kept here."}
      {!busy && past.more && <button type="button" class="button small" onClick={onRead}>Read more</button>}
    </p>
  );
}

/** A row in which what is searched for is marked. */
function Marked({ text, words, now }: { text: string; words: string; now: boolean }) {
  const at = words ? text.toLowerCase().indexOf(words.toLowerCase()) : -1;
  if (at < 0) return <>{text}</>;
  const end = at + words.length;
  return <>{text.slice(0, at)}<mark class={now ? "now" : undefined}>{text.slice(at, end)}</mark>{text.slice(end)}</>;
}

function fileNameOf(session: Session): string {
  return titleOf(session).replace(/[^\p{L}\p{N}._-]+/gu, "-").slice(0, 80) || "output";
}
