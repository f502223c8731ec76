import { hrefOf, route, WORKSPACE_TABS, type WorkspaceTab } from "../route";

const NAMES: Record<WorkspaceTab, string> = { sessions: "Sessions", teams: "Teams", ports: "Ports" };

/** The ways to the parts of the page *Workspace*. */
export function WorkspaceTabs() {
  const shown = (route.value.page === "workspace" && route.value.tab) || "sessions";
  return (
    <nav class="tabs tab-links" aria-label="Parts of the workspace">
      {WORKSPACE_TABS.map((tab) => (
        <a key={tab} href={hrefOf({ page: "workspace", ids: [], ...(tab !== "sessions" && { tab }) })} class={tab === shown ? "chosen" : undefined} aria-current={tab === shown ? "page" : undefined}>{NAMES[tab]}</a>
      ))}
    </nav>
  );
}
