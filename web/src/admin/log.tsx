import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { usePolled } from "../live/polled";
import { LEVELS, logLines, type Level } from "./requests";
import type { LogLine } from "./answers";

/** So many lines are asked for at first, and at most. */
const STEP = 200;
const MOST = 2000;

/** How often the log is looked at, in milliseconds, and how often if that is much. */
const QUICK_MS = 3000;
const SLOW_MS = 15_000;

/** Closer to the end than this, in pixels, the log follows what comes. */
const NEAR_END = 40;

const NAMES: Record<Level, string> = { error: "errors", warn: "warnings and errors", info: "what happens", debug: "what helps to find faults", trace: "every step" };

/** The newest lines of the server's log. */
export function LogPart({ onLines }: { onLines: (lines: LogLine[]) => void }) {
  const [level, setLevel] = useState<Level>("info");
  const [limit, setLimit] = useState(STEP);
  const { value: lines, error } = usePolled((signal) => logLines(limit, level, signal), limit > STEP ? SLOW_MS : QUICK_MS, [level, limit]);
  useEffect(() => onLines(lines ?? []), [lines]);
  return (
    <section aria-labelledby="log-title">
      <div class="section-head">
        <h2 id="log-title">Newest lines of the log</h2>
        <label class="log-level"><span class="visually-hidden">Level</span><select value={level} onChange={(event) => setLevel(event.currentTarget.value as Level)}>{LEVELS.map((each) => <option key={each} value={each}>{NAMES[each]}</option>)}</select></label>
      </div>
      {error && <p class="card empty" role="alert">{error.status === 404 ? "This server does not show its log." : error.message}</p>}
      {!error && !lines && <p class="card empty muted" role="status">Reading the log…</p>}
      {!error && lines?.length === 0 && <p class="card empty muted">The server keeps no line of this level. What it writes at all is set by <code>--log</code>.</p>}
      {lines && lines.length > 0 && <Lines lines={lines} />}
      {lines && lines.length >= limit && limit < MOST && <button type="button" class="button" onClick={() => setLimit(Math.min(MOST, limit * 4))}>Show older lines</button>}
    </section>
  );
}

/** Keeps the end in sight, unless the person has scrolled away from it. */
function Lines({ lines }: { lines: LogLine[] }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const read = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  useLayoutEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  return (
    <div ref={box} class="card log" tabIndex={0} role="region" aria-label="Lines of the log" onScroll={read}>
      {lines.map(({ n, level, text }) => <p key={n} class={`log-line ${level}`}>{text}</p>)}
    </div>
  );
}
