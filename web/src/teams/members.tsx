import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { hrefOf } from "../route";
import { asking, sessions } from "../workspace/hub";
import type { Session } from "../workspace/protocol";
import { nodeOf } from "../workspace/words";
import { memberName, memberState, type Team } from "./team";

/** The session with this id, as far as it is known. */
export function sessionNamed(id: string): Session | undefined {
  return sessions.value?.find((each) => each.id === id);
}

interface MembersProps {
  team: Team;
  onInbox: (member: string) => void;
  onMessage: (member: string) => void;
}

/** The members of a team: its leader first. */
export function Members({ team, onInbox, onMessage }: MembersProps) {
  return (
    <ul class="card session-list" aria-label="Members">
      {[team.leader, ...team.workers].map((id) => <li key={id}><Member id={id} isLeader={id === team.leader} isActive={team.isActive} onInbox={onInbox} onMessage={onMessage} /></li>)}
    </ul>
  );
}

interface MemberProps {
  id: string;
  isLeader: boolean;
  isActive: boolean;
  onInbox: (member: string) => void;
  onMessage: (member: string) => void;
}

function Member({ id, isLeader, isActive, onInbox, onMessage }: MemberProps) {
  const session = sessionNamed(id);
  const name = memberName(id, session);
  const { words, look } = memberState(session, asking.value.has(id));
  const about = [isLeader ? "leader" : "worker", session?.program, session && nodeOf(session)].filter(Boolean).join(" · ");
  return (
    <div class="session-row">
      <a class="session-link" href={hrefOf({ page: "workspace", ids: [id] })}>
        <Icon name={isLeader ? "team" : "chat"} />
        <span class="session-words"><b>{name}</b><span class="muted small">{about}</span></span>
        <span class={`session-state ${look}`}><span class={`dot ${look}`} aria-hidden="true" />{words}</span>
      </a>
      {!isLeader && isActive && mayWork.value && <button type="button" class="icon-button" aria-label={`Message to ${name}`} title="Message" onClick={() => onMessage(id)}><Icon name="send" /></button>}
      <button type="button" class="icon-button" aria-label={`Inbox of ${name}`} title="Inbox" onClick={() => onInbox(id)}><Icon name="inbox" /></button>
    </div>
  );
}
