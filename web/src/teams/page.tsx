import { useState } from "preact/hooks";
import { mayWork } from "../live/state";
import { ago } from "../live/words";
import { Icon } from "../parts/icon";
import { hrefOf, route } from "../route";
import { asking } from "../workspace/hub";
import { WorkspaceTabs } from "../workspace/tabs";
import { memberName, wordsOfTeam, type Team } from "./team";
import { NewTeamDialog } from "./new_team";
import { sessionNamed } from "./members";
import { TeamView } from "./team_view";
import { teams, teamsTrouble } from "./teams";
import "../style/teams.css";

/** Teams of agents: the list of all, or the one that the address names. */
export function TeamsPage() {
  const [isMaking, setIsMaking] = useState(false);
  const id = route.value.page === "workspace" ? route.value.team : undefined;
  const team = teams.value?.find((each) => each.id === id);
  return (
    <div class="page">
      <div class="page-head workspace-head">
        <h1>Workspace</h1>
        {mayWork.value && !team && <button type="button" class="button primary" onClick={() => setIsMaking(true)}><Icon name="plus" /> New team</button>}
      </div>
      <WorkspaceTabs />
      {!teams.value && <p class="card empty muted" role="status">{teamsTrouble.value || "Asking for the teams…"}</p>}
      {teams.value && id && !team && <Gone />}
      {team ? <TeamView key={team.id} team={team} /> : teams.value && !id && <TeamList all={teams.value} />}
      <NewTeamDialog open={isMaking} onClose={() => setIsMaking(false)} />
    </div>
  );
}

function Gone() {
  return <p class="card empty muted">There is no such team any more. <a href={hrefOf({ page: "workspace", ids: [], tab: "teams" })}>All teams</a></p>;
}

function TeamList({ all }: { all: Team[] }) {
  if (!all.length) return <p class="card empty muted">There is no team. A team is a leader and its workers, agents that give each other work.</p>;
  return <ul class="card session-list" aria-label="Teams">{all.map((team) => <li key={team.id}><div class={`session-row${team.isActive ? "" : " over"}`}><TeamLink team={team} /></div></li>)}</ul>;
}

function TeamLink({ team }: { team: Team }) {
  const members = [team.leader, ...team.workers];
  const asks = members.filter((id) => asking.value.has(id)).length;
  return (
    <a class="session-link" href={hrefOf({ page: "workspace", ids: [], tab: "teams", team: team.id })}>
      <Icon name="team" />
      <span class="session-words">
        <b>{team.name}</b>
        <span class="muted small">led by {memberName(team.leader, sessionNamed(team.leader))} · {wordsOfTeam(team, members.map(sessionNamed))} · {ago(team.lastActive, Date.now())}</span>
      </span>
      {asks > 0 && <span class="session-state so-so"><span class="dot so-so" aria-hidden="true" />{asks === 1 ? "a member asks" : `${asks} members ask`} for permission</span>}
    </a>
  );
}
