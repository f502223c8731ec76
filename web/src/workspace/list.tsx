import { useState } from "preact/hooks";
import { mayWork, trouble } from "../live/state";
import { ago } from "../live/words";
import { Icon } from "../parts/icon";
import { hrefOf } from "../route";
import { asking, hubState, sessions } from "./hub";
import { KillButton } from "./kill";
import { NewSessionDialog, type NewKind } from "./new_session";
import type { Session } from "./protocol";
import { kindOf, nodeOf, stateOf, titleOf } from "./words";

/** How many sessions are shown before the rest is asked for. */
const FEW = 50;

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
      {!all && <p class="card empty muted" role="status">{whileMissing()}</p>}
      {all?.length === 0 && <p class="card empty muted">There is no session. A terminal or an agent goes on when this page is closed, and is here again from any browser.</p>}
      {all && all.length > 0 && <Rows all={inNeed(all)} />}
      <NewSessionDialog kind={making} onClose={() => setMaking(null)} />
    </div>
  );
}

/** What is said before the list came. */
function whileMissing(): string {
  if (hubState.value !== "away") return "Asking for the sessions…";
  return trouble.value ? "The server cannot be reached now. The page goes on trying." : "The server answers, but not its workspace; perhaps it runs none. The page goes on trying.";
}

/** Those that ask come first. */
function inNeed(all: Session[]): Session[] {
  const asks = asking.value;
  return [...all.filter(({ id }) => asks.has(id)), ...all.filter(({ id }) => !asks.has(id))];
}

function Rows({ all }: { all: Session[] }) {
  const [everyone, setEveryone] = useState(false);
  const shown = everyone ? all : all.slice(0, FEW);
  return (
    <>
      <ul class="session-list card" aria-label="Sessions">{shown.map((session) => <Row key={session.id} of={session} />)}</ul>
      {shown.length < all.length && <button type="button" class="button" onClick={() => setEveryone(true)}>Show all {all.length} sessions</button>}
    </>
  );
}

function Row({ of: session }: { of: Session }) {
  const asks = asking.value.has(session.id);
  const { words, look } = stateOf(session, asks);
  const node = nodeOf(session);
  return (
    <li class={`session-row${session.status === "exited" ? " over" : ""}`}>
      <a class="session-link" href={hrefOf({ page: "workspace", ids: [session.id] })}>
        <Icon name={session.kind === "agent" ? "chat" : "terminal"} />
        <span class="session-words">
          <b>{titleOf(session)}</b>
          <span class="muted small">{kindOf(session)}{node && ` · ${node}`} · {session.directory || "no directory"} · {ago(session.lastActive, Date.now())}</span>
        </span>
        <span class={`session-state ${look}`}><span class={`dot ${look}`} aria-hidden="true" />{words}</span>
      </a>
      {mayWork.value && <KillButton of={session} />}
    </li>
  );
}
