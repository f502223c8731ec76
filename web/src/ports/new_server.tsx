import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { choiceOf } from "../storage/choices";
import { draftOf, keepDraft } from "../storage/drafts";
import { ask, nodes } from "../workspace/hub";
import { PlaceFields, placeOf, type Place } from "../workspace/place_fields";
import type { ClientMessage } from "../workspace/protocol";
import { RequestForm } from "../workspace/request_form";
import { TAG } from "./address";

/** The command line is kept until it was started. */
const DRAFT = "dev-server";

/** The request for a development server that a shell starts. */
export function requestFor(command: string, name: string, place: Place, node: string): ClientMessage {
  const what = { mode: "pty" as const, tags: [TAG], extra_args: ["sh", "-c", command.trim()] };
  return { type: "new_session", ...what, name: name.trim() || null, ...placeOf(place), node_id: node || null };
}

/** Asks for a command line, and starts it as a development server. */
export function NewServerDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return <Dialog open={open} onClose={onClose} label="Start a development server" title="Start a development server"><Form onClose={onClose} /></Dialog>;
}

function Form({ onClose }: { onClose: () => void }) {
  const [command, setCommand] = useState(() => draftOf(DRAFT));
  const [name, setName] = useState("");
  const [node, setNode] = useState("");
  const [place, setPlace] = useState<Place>({ project: "", directory: choiceOf("directory") ?? "" });
  const say = (words: string) => { setCommand(words); keepDraft(DRAFT, words); };
  const submit = async () => {
    await ask(requestFor(command, name, place, node), "session_created");
    keepDraft(DRAFT, "");
    onClose();
  };
  return (
    <RequestForm label="Start it" busyLabel="Starting…" onSubmit={submit}>
      <label class="field"><span>Command</span><input type="text" required maxLength={4096} placeholder="npm run dev" autocapitalize="off" spellcheck={false} value={command} onInput={(event) => say(event.currentTarget.value)} /></label>
      <PlaceFields place={place} onChange={setPlace} />
      <div class="form-row">
        <label class="field"><span>Name</span><input type="text" maxLength={100} placeholder="none" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        {nodes.value.size > 1 && <label class="field"><span>Machine</span><select value={node} onChange={(event) => setNode(event.currentTarget.value)}><option value="">this server</option>{[...nodes.value].map(([id, each]) => <option key={id} value={id}>{each}</option>)}</select></label>}
      </div>
    </RequestForm>
  );
}
