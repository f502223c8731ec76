import { signal } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import { access, mayWork, trouble } from "../live/state";
import { ago, count } from "../live/words";
import { Icon } from "../parts/icon";
import { VirtualList } from "../parts/virtual_list";
import { hrefOf } from "../route";
import { AdoptDialog } from "./adopt";
import { chosen, type Wanted } from "./filter";
import { asking, hubState, sessions } from "./hub";
import { KillButton } from "./kill";
import { MoreButton } from "./more";
import { NewSessionDialog, type NewKind } from "./new_session";
import type { Session } from "./protocol";
import { WorkspaceTabs } from "./tabs";
import { kindOf, nodeOf, stateOf, titleOf } from "./words";
import "../style/sessions.css";

/** More sessions than this are put in a list of its own height. */
const MANY = 50;

/** The height of a row there, in pixels; where the window is narrow rows have two lines. */
const [ROW, NARROW_ROW] = [57, 84];

/** What somebody wants to see; it stays while a session is looked at. */
const wanted = signal<Wanted>({ words: "", hidden: false });

/** The sessions of all nodes. */
export function SessionList() {
  const [making, setMaking] = useState<NewKind | null>(null);
  const all = sessions.value;
  return (
    <div class="page">
      <div class="page-head workspace-head">
        <h1>Workspace</h1>
        {mayWork.value && <button type="button" class="button" onClick={() => setMaking("agent")}><Icon name="plus" /> New agent</button>}
        {mayWork.value && <button type="button" class="button primary" onClick={() => setMaking("terminal")}><Icon name="plus" /> New terminal</button>}
      </div>
      <WorkspaceTabs />
      {!all && <p class="card empty muted" role="status">{whileMissing()}</p>}
      {all && <Chosen all={all} />}
      <NewSessionDialog kind={making} onClose={() => setMaking(null)} />
    </div>
  );
}

/** What is said before the list came. */
function whileMissing(): string {
  if (hubState.value !== "away") return "Asking for the sessions…";
  return trouble.value ? "The server cannot be reached now. The page goes on trying." : "The server answers, but not its workspace; perhaps it runs none. The page goes on trying.";
}

/** The sessions that somebody wants to see. */
function Chosen({ all }: { all: Session[] }) {
  const shown = useMemo(() => chosen(all, wanted.value, asking.value), [all, wanted.value, asking.value]);
  return (
    <section class="session-part" aria-label="All sessions">
      <Tools all={all} shown={shown.length} />
      {shown.length > 0 && <Rows all={shown} />}
      {!shown.length && <p class="card empty muted">{wanted.value.words ? "No session matches." : "There is no session. A terminal or an agent goes on when this page is closed, and is here again from any browser."}</p>}
    </section>
  );
}

function Tools({ all, shown }: { all: Session[]; shown: number }) {
  const [adopting, setAdopting] = useState(false);
  const { words, hidden } = wanted.value;
  const hasHidden = hidden || all.some((each) => each.hidden);
  const mayAdopt = mayWork.value && access.value?.admin;
  if (!all.length && !mayAdopt) return null;
  return (
    <div class="session-tools">
      {all.length > 0 && <input type="search" class="filter" placeholder="Filter" aria-label="Filter sessions" maxLength={200} value={words} onInput={(event) => (wanted.value = { words: event.currentTarget.value, hidden })} />}
      {hasHidden && <label class="check"><input type="checkbox" checked={hidden} onChange={(event) => (wanted.value = { words, hidden: event.currentTarget.checked })} /> Hidden ones</label>}
      {all.length > 0 && <span class="muted small session-count" role="status">{count(shown, "session")}</span>}
      {mayAdopt && <button type="button" class="button small session-adopt" onClick={() => setAdopting(true)}>Adopt a process</button>}
      <AdoptDialog open={adopting} onClose={() => setAdopting(false)} />
    </div>
  );
}

function Rows({ all }: { all: Session[] }) {
  if (all.length <= MANY) return <ul class="session-list card" aria-label="Sessions">{all.map((session) => <li key={session.id}><Row of={session} /></li>)}</ul>;
  const height = matchMedia("(max-width: 560px)").matches ? NARROW_ROW : ROW;
  return (
    <div class="card rows">
      <VirtualList items={all} rowHeight={height} keyOf={({ id }) => id} row={(session) => <Row of={session} />} label="Sessions" class="sessions-long" />
    </div>
  );
}

function Row({ of: session }: { of: Session }) {
  const asks = asking.value.has(session.id);
  const { words, look } = stateOf(session, asks);
  const node = nodeOf(session);
  return (
    <div class={`session-row${session.status === "exited" ? " over" : ""}`}>
      <a class="session-link" href={hrefOf({ page: "workspace", ids: [session.id] })}>
        <Icon name={session.kind === "agent" ? "chat" : "terminal"} />
        <span class="session-words">
          <b>{titleOf(session)}</b>
          <span class="muted small">{kindOf(session)}{node && ` · ${node}`} · {session.directory || "no directory"} · {ago(session.lastActive, Date.now())}</span>
        </span>
        <span class={`session-state ${look}`}><span class={`dot ${look}`} aria-hidden="true" />{words}</span>
      </a>
      {mayWork.value && <MoreButton of={session} />}
      {mayWork.value && <KillButton of={session} />}
    </div>
  );
}
