import { useEffect } from "preact/hooks";
import { access } from "../live/state";
import { Later } from "../parts/later";
import { route } from "../route";
import { followWorkspace, hubState, refusal, retryWorkspace, sessions } from "./hub";
import { SessionList } from "./list";
import { NoAccess, Refused } from "./no_entry";
import { Pane } from "./pane";
import "../style/workspace.css";
import "../style/agent.css";

const teamsPage = () => import("../teams/page").then(({ TeamsPage }) => TeamsPage);
const portsPage = () => import("../ports/page").then(({ PortsPage }) => PortsPage);

/** Terminals and agents: the list of all, or those that are opened. */
export function WorkspacePage() {
  const may = access.value?.workspace ?? "no";
  useEffect(() => {
    if (may === "perhaps") followWorkspace();
  }, [may]);
  if (may === "no") return <NoAccess title="Workspace" of="workspace" why="Terminals and agents are for those who are signed in, since they may do whatever the server's user may." />;
  if (hubState.value === "refused") return <Refused title="Workspace" why={`The workspace did not let this page in${refusal.value ? `: ${refusal.value}` : "."}`} onRetry={retryWorkspace} />;
  const { ids, tab } = route.value.page === "workspace" ? route.value : { ids: [] };
  if (tab === "teams") return <Later of={teamsPage} props={{}} />;
  if (tab === "ports") return <Later of={portsPage} props={{}} />;
  if (!ids.length) return <SessionList />;
  if (!sessions.value) return <p class="entering" role="status">Looking for the session…</p>;
  return <div class="panes">{ids.map((id, at) => <Pane key={id} id={id} others={ids.filter((_, i) => i !== at)} />)}</div>;
}
