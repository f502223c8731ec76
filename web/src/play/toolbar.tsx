import { models } from "../live/state";
import { Icon, type IconName } from "../parts/icon";
import { go } from "../route";
import { ModelSelect } from "./model_select";
import { listShown } from "./list";
import { currentLanes, setModel, setSecond, startNew } from "./talk";

interface ToolbarProps {
  settings: boolean;
  onSettings: () => void;
  onExamples: () => void;
}

/** What is asked, and how. */
export function Toolbar({ settings, onSettings, onExamples }: ToolbarProps) {
  const lanes = currentLanes.value;
  const two = lanes.length > 1;
  return (
    <div class="toolbar" role="toolbar" aria-label="Conversation">
      <Tool icon="list" name="Conversations" onClick={() => (listShown.value = true)} class="narrow-only" />
      <div class="lane-models">
        {lanes.map((model, lane) => (
          <ModelSelect key={lane} model={model} label={two ? `Model ${lane + 1}` : "Model"} onChange={(id) => setModel(lane, id)} />
        ))}
      </div>
      <Tool icon="columns" name={two ? "One model only" : "Compare with a second model"} pressed={two} onClick={() => setSecond(two ? null : otherModel(lanes[0]))} />
      <Tool icon="sliders" name="Settings of this conversation" pressed={settings} onClick={onSettings} />
      <Tool icon="code" name="Show as code" onClick={onExamples} />
      <Tool icon="plus" name="New conversation" onClick={newOne} class="narrow-only" />
    </div>
  );
}

interface ToolProps {
  icon: IconName;
  name: string;
  onClick: () => void;
  pressed?: boolean;
  class?: string;
}

function Tool({ icon, name, onClick, pressed, class: extra = "" }: ToolProps) {
  return (
    <button type="button" class={`icon-button ${extra}`} aria-label={name} title={name} aria-pressed={pressed} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** Begins a new conversation and shows it. */
export function newOne(): void {
  startNew();
  go({ page: "play", id: null });
  requestAnimationFrame(() => document.getElementById("question")?.focus());
}

/** Another model than the first; the same one where there is no other. */
function otherModel(first: string | undefined): string {
  const all = models.value ?? [];
  return all.find(({ id }) => id !== first)?.id ?? first ?? "";
}
