import type { Model } from "../api/types";
import { access, models } from "../live/state";
import { bytes, short } from "../live/words";
import { go } from "../route";
import { setModel, startNew } from "../play/talk";
import { Icon } from "../parts/icon";
import { VirtualList } from "../parts/virtual_list";

/** More models than this are put in a list of fixed height. */
const MANY = 12;
const ROW = 52;

/** The models that can be asked, whatever machine has them. */
export function Models() {
  const all = models.value ?? [];
  return (
    <section aria-labelledby="models-title">
      <h2 id="models-title">Models</h2>
      <div class="card rows">
        {all.length > MANY ? (
          <VirtualList items={all} rowHeight={ROW} keyOf={({ id }) => id} row={(model) => <ModelRow model={model} />} label="Models" class="models-long" />
        ) : (
          <ul>{all.map((model) => <li key={model.id}><ModelRow model={model} /></li>)}</ul>
        )}
      </div>
    </section>
  );
}

function ModelRow({ model }: { model: Model }) {
  return (
    <div class="model-row">
      <span class={`dot ${model.state === "unloaded" ? "so-so" : "good"}`} aria-hidden="true" />
      <span class="model-name">
        <b>{model.id}</b>
        <span class="muted small">{detailsOf(model).join(" · ")}</span>
      </span>
      {access.value?.models && (
        <button type="button" class="button small" aria-label={`Chat with ${model.id}`} onClick={() => chatWith(model.id)}>
          <Icon name="chat" /> Chat
        </button>
      )}
    </div>
  );
}

/** What is known of a model, in a few words. */
export function detailsOf(model: Model): string[] {
  const parts = [
    model.arch,
    model.parameters ? `${short(model.parameters)} parameters` : null,
    model.quantization,
    model.size ? bytes(model.size) : null,
    model.context_length ? `${short(model.context_length)} tokens` : null,
    model.state && model.state !== "loaded" ? model.state : null,
    model.machines?.length ? `on ${model.machines.slice(0, 3).join(", ")}${model.machines.length > 3 ? " …" : ""}` : null,
  ];
  return parts.filter((part): part is string => !!part);
}

/** Opens the playground with a model. */
export function chatWith(model: string): void {
  startNew();
  setModel(0, model);
  go({ page: "play", id: null });
}
