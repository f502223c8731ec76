import type { Model } from "../api/types";
import { ANY_MODEL } from "../live/room";
import { models } from "../live/state";

interface ModelSelectProps {
  model: string;
  label: string;
  onChange: (model: string) => void;
}

/** A choice of model. One that is gone stays chosen, and says so. */
export function ModelSelect({ model, label, onChange }: ModelSelectProps) {
  const all = models.value ?? [];
  const there = all.some(({ id }) => id === model);
  return (
    <label class="model-select">
      <span class="visually-hidden">{label}</span>
      <select value={model} onChange={(event) => onChange(event.currentTarget.value)}>
        {model && !there && <option value={model}>{model} (not here now)</option>}
        {all.filter(canChat).map((each) => <option key={each.id} value={each.id}>{optionText(each)}</option>)}
      </select>
    </label>
  );
}

/** Models that only make embeddings answer no question. What is not known to be one is offered. */
export function canChat(model: Model): boolean {
  return !model.endpoints?.length || model.endpoints.includes("/v1/chat/completions");
}

function optionText({ id, state }: Model): string {
  if (id === ANY_MODEL) return "Any model";
  return state === "unloaded" ? `${id} (to be loaded)` : id;
}
