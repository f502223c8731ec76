import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { toast } from "../parts/toast";
import { draftOf, keepDraft } from "../storage/drafts";
import { AgentField } from "../workspace/agent_field";
import { ask, nodes } from "../workspace/hub";
import type { ClientMessage } from "../workspace/protocol";
import { RequestForm } from "../workspace/request_form";
import { memberName, teamOf, type Team } from "./team";
import { put } from "./teams";
import { sessionNamed } from "./members";

/** What is done with a team: work for a new worker, a worker without work, or a message to a member (or to all workers: `null`). */
export type Errand = { kind: "assign" } | { kind: "spawn" } | { kind: "message"; to: string | null };

interface WorkProps {
  team: Team;
  errand: Errand | null;
  onClose: () => void;
}

/** Asks for what is wanted of a team. */
export function WorkDialog({ team, errand, onClose }: WorkProps) {
  const title = errand ? titleOf(errand) : "";
  return (
    <Dialog open={errand !== null} onClose={onClose} label={title} title={title}>
      {errand?.kind === "message" ? <MessageForm team={team} to={errand.to} onClose={onClose} /> : errand && <WorkerForm team={team} isIdle={errand.kind === "spawn"} onClose={onClose} />}
    </Dialog>
  );
}

function titleOf(errand: Errand): string {
  if (errand.kind === "assign") return "Work for a new worker";
  if (errand.kind === "spawn") return "New worker without work";
  return errand.to ? `Message to ${memberName(errand.to, sessionNamed(errand.to))}` : "Message to all workers";
}

/** What is asked of a new worker. */
export interface Wish {
  prompt: string;
  name: string;
  provider: string;
  node: string;
}

/** The request for a new worker, with or without work. */
export function requestFor(team: string, isIdle: boolean, { prompt, name, provider, node }: Wish): ClientMessage {
  const all = { team_id: team, provider: provider.trim() || null, node_id: node || null };
  return isIdle ? { type: "spawn_worker", name: name.trim() || null, ...all } : { type: "assign", prompt, worker_name: name.trim() || null, ...all };
}

function WorkerForm({ team, isIdle, onClose }: { team: Team; isIdle: boolean; onClose: () => void }) {
  const draft = `team.${team.id}.work`;
  const [wish, setWish] = useState<Wish>({ prompt: draftOf(draft), name: "", provider: "", node: "" });
  const say = (prompt: string) => { setWish({ ...wish, prompt }); keepDraft(draft, prompt); };
  const submit = async () => {
    const answer = await ask(requestFor(team.id, isIdle, wish), isIdle ? "worker_spawned" : "worker_assigned");
    const now = teamOf(answer["team"]);
    if (now) put(now);
    if (!isIdle) keepDraft(draft, "");
    toast(isIdle ? "The worker is there." : "The worker has its work.");
    onClose();
  };
  return (
    <RequestForm label={isIdle ? "Start it" : "Give it the work"} busyLabel="Starting…" onSubmit={submit}>
      {!isIdle && <label class="field"><span>What is to be done</span><textarea rows={5} required maxLength={1_000_000} value={wish.prompt} onInput={(event) => say(event.currentTarget.value)} /></label>}
      <div class="form-row">
        <label class="field"><span>Name</span><input type="text" maxLength={100} placeholder="none" value={wish.name} onInput={(event) => setWish({ ...wish, name: event.currentTarget.value })} /></label>
        <AgentField value={wish.provider} onChange={(provider) => setWish({ ...wish, provider })} placeholder="as the leader" />
      </div>
      {nodes.value.size > 1 && (
        <label class="field">
          <span>Machine</span>
          <select value={wish.node} onChange={(event) => setWish({ ...wish, node: event.currentTarget.value })}>
            <option value="">the leader's</option>
            {[...nodes.value].map(([id, name]) => <option key={id} value={id}>{name}</option>)}
          </select>
        </label>
      )}
    </RequestForm>
  );
}

function MessageForm({ team, to, onClose }: { team: Team; to: string | null; onClose: () => void }) {
  const draft = `team.${team.id}.message`;
  const [text, setText] = useState(() => draftOf(draft));
  const say = (words: string) => { setText(words); keepDraft(draft, words); };
  const submit = async () => {
    await ask({ type: "relay_team_message", team_id: team.id, from_session_id: team.leader, to_session_id: to, payload: text }, "team_message_sent");
    keepDraft(draft, "");
    toast("The message is sent: it becomes the next prompt.");
    onClose();
  };
  return (
    <RequestForm label="Send" busyLabel="Sending…" onSubmit={submit}>
      <p class="muted small">It is sent in the leader's name.</p>
      <label class="field"><span>Message</span><textarea rows={5} required maxLength={1_000_000} value={text} onInput={(event) => say(event.currentTarget.value)} /></label>
    </RequestForm>
  );
}
