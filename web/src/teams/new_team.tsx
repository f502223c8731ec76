import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { go } from "../route";
import { choiceOf, choose } from "../storage/choices";
import { ask } from "../workspace/hub";
import { AgentField } from "../workspace/agent_field";
import { PlaceFields, placeOf } from "../workspace/place_fields";
import { RequestForm } from "../workspace/request_form";
import { teamOf } from "./team";
import { put } from "./teams";

/** Asks what a new team is to be, makes it, and shows it. */
export function NewTeamDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return <Dialog open={open} onClose={onClose} label="New team" title="New team"><Form onClose={onClose} /></Dialog>;
}

function Form({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [place, setPlace] = useState({ project: "", directory: choiceOf("directory") ?? "" });
  const [provider, setProvider] = useState(choiceOf("provider") ?? "claude");
  const [model, setModel] = useState("");
  const submit = async () => {
    const answer = await ask({ type: "create_team", name: name.trim(), ...placeOf(place), provider: provider.trim(), model: model.trim() || null }, "team_created");
    choose("provider", provider.trim());
    const team = teamOf(answer["team"]);
    if (team) put(team);
    onClose();
    if (team) go({ page: "workspace", ids: [], tab: "teams", team: team.id });
  };
  return (
    <RequestForm label="Make it" busyLabel="Starting its leader…" onSubmit={submit}>
      <p class="muted small">A team begins with its leader, an agent. It gives work to workers, and so can you.</p>
      <label class="field"><span>Name</span><input type="text" required maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <PlaceFields place={place} onChange={setPlace} />
      <div class="form-row">
        <AgentField value={provider} onChange={setProvider} isRequired />
        <label class="field"><span>Model</span><input type="text" maxLength={100} placeholder="the agent's own choice" autocapitalize="off" spellcheck={false} value={model} onInput={(event) => setModel(event.currentTarget.value)} /></label>
      </div>
    </RequestForm>
  );
}
