import { useEffect, useState } from "preact/hooks";
import { isOnlyHere } from "../api/address";
import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { hrefOf } from "../route";
import { lookAgain, ownNode, sessions } from "../workspace/hub";
import { KillButton } from "../workspace/kill";
import type { Session } from "../workspace/protocol";
import { WorkspaceTabs } from "../workspace/tabs";
import { nodeOf, stateOf, titleOf } from "../workspace/words";
import { reachOf, serversOf } from "./address";
import { NewServerDialog } from "./new_server";
import "../style/teams.css";

/** How often the sessions are asked for while this page is seen, in milliseconds: there is no news of hidden ones. */
const LOOK_MS = 3000;

/** The development servers of the workspace, and where they can be reached. */
export function PortsPage() {
  const [isStarting, setIsStarting] = useState(false);
  useEffect(followHidden, []);
  const servers = sessions.value && serversOf(sessions.value);
  return (
    <div class="page">
      <div class="page-head workspace-head">
        <h1>Workspace</h1>
        {mayWork.value && <button type="button" class="button primary" onClick={() => setIsStarting(true)}><Icon name="plus" /> Start a server</button>}
      </div>
      <WorkspaceTabs />
      {!servers && <p class="card empty muted" role="status">Asking for the sessions…</p>}
      {servers?.length === 0 && <p class="card empty muted">No development server runs. Start one here, and the port that it listens on is found by itself.</p>}
      {servers && servers.length > 0 && <ul class="card session-list" aria-label="Development servers">{servers.map((session) => <li key={session.id}><Server of={session} /></li>)}</ul>}
      <NewServerDialog open={isStarting} onClose={() => setIsStarting(false)} />
    </div>
  );
}

function followHidden(): () => void {
  const look = () => document.visibilityState === "visible" && lookAgain().catch(() => undefined);
  look();
  const timer = setInterval(look, LOOK_MS);
  return () => clearInterval(timer);
}

function Server({ of: session }: { of: Session }) {
  const { words, look } = stateOf(session, false);
  const machine = nodeOf(session) ?? "this server";
  const reach = reachOf(session, { host: location.hostname, isOnlyHere: isOnlyHere(), node: ownNode.value }, machine);
  const title = titleOf(session);
  return (
    <div class={`session-row${session.status === "exited" ? " over" : ""}`}>
      <div class="port-link">
        <Icon name="port" />
        <div class="port-words">
          <b>{title}</b>
          {reach.href && <a href={reach.href} target="_blank" rel="noopener noreferrer">{reach.href}</a>}
          <span class="muted small">{reach.words}</span>
          <span class="muted small">{machine} · {session.directory || "no directory"}</span>
        </div>
        <span class={`session-state ${look}`}><span class={`dot ${look}`} aria-hidden="true" />{words}</span>
      </div>
      <a class="icon-button" href={hrefOf({ page: "workspace", ids: [session.id] })} aria-label={`Terminal of ${title}`} title="Terminal"><Icon name="terminal" /></a>
      {mayWork.value && <KillButton of={session} />}
    </div>
  );
}
