import { useEffect, useState } from "preact/hooks";
import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { hrefOf } from "../route";
import { DeleteTeamButton } from "./delete_team";
import { InboxDialog } from "./inbox";
import { Members, sessionNamed } from "./members";
import { memberName, wordsOfTeam, type Result, type Team } from "./team";
import { results } from "./teams";
import { startWait, stopWait, waiting } from "./wait";
import { WorkDialog, type Errand } from "./work";

/** One team: its members, and what came of their work. */
export function TeamView({ team }: { team: Team }) {
  const [inbox, setInbox] = useState<string | null>(null);
  const [errand, setErrand] = useState<Errand | null>(null);
  return (
    <section class="team" aria-label={`Team ${team.name}`}>
      <header class="team-head">
        <a class="icon-button" href={hrefOf({ page: "workspace", ids: [], tab: "teams" })} aria-label="Back to the teams"><Icon name="left" /></a>
        <div class="team-words"><h2>{team.name}</h2><span class="muted small">{wordsOfTeam(team, [team.leader, ...team.workers].map(sessionNamed))}</span></div>
        {mayWork.value && <DeleteTeamButton team={team} />}
      </header>
      {team.isActive && mayWork.value && <Buttons team={team} onErrand={setErrand} />}
      {!team.isActive && <p class="muted small">Its leader has ended, so it takes no more work.</p>}
      <Members team={team} onInbox={setInbox} onMessage={(to) => setErrand({ kind: "message", to })} />
      <Results team={team} />
      <InboxDialog team={team.id} member={inbox} onClose={() => setInbox(null)} />
      <WorkDialog team={team} errand={errand} onClose={() => setErrand(null)} />
    </section>
  );
}

function Buttons({ team, onErrand }: { team: Team; onErrand: (errand: Errand) => void }) {
  return (
    <div class="team-buttons">
      <button type="button" class="button primary" onClick={() => onErrand({ kind: "assign" })}><Icon name="plus" /> Give work</button>
      <button type="button" class="button" onClick={() => onErrand({ kind: "spawn" })}>New worker</button>
      <button type="button" class="button" disabled={!team.workers.length} onClick={() => onErrand({ kind: "message", to: null })}>Message to all</button>
    </div>
  );
}

function Results({ team }: { team: Team }) {
  const own = results.value.filter((each) => each.team === team.id);
  useEffect(() => () => stopWait(), [team.id]);
  return (
    <section class="team-results" aria-label="Results">
      <h3>Results</h3>
      {mayWork.value && <Wait team={team} />}
      {!own.length && <p class="muted small">Results that come while this page is open are shown here.</p>}
      <ul>{own.map((result, at) => <li key={own.length - at} class="card"><ResultView of={result} /></li>)}</ul>
    </section>
  );
}

function Wait({ team }: { team: Team }) {
  const now = waiting.value?.team === team.id ? waiting.value : null;
  const isOver = !now || now.outcome !== "";
  const names = now?.pending.map((id) => memberName(id, sessionNamed(id))).join(", ");
  return (
    <div class="team-wait">
      {isOver
        ? <button type="button" class="button small" disabled={!team.workers.length} onClick={() => startWait(team.id)}>Wait for all results</button>
        : <button type="button" class="button small" onClick={stopWait}>Stop waiting</button>}
      <span class="muted small" role="status">{now && (now.outcome || (names ? `Waiting for ${names}…` : "Waiting…"))}</span>
      {isOver && !now?.outcome && <span class="muted small">What a wait reports is not told to the leader again.</span>}
    </div>
  );
}

function ResultView({ of: { worker, success, text } }: { of: Result }) {
  return (
    <>
      <p class="result-head"><Icon name={success ? "check" : "warn"} /><a href={hrefOf({ page: "workspace", ids: [worker] })}>{memberName(worker, sessionNamed(worker))}</a> <span class={success ? "muted" : "bad-text"}>{success ? "is done" : "has failed"}</span></p>
      <pre class="agent-pre" tabIndex={0}>{text || "It said nothing."}</pre>
    </>
  );
}
