import type { Parameters } from "../api/chat";
import { change, current } from "./talk";

type Numbered = "temperature" | "top_p" | "max_tokens" | "seed";

const NUMBERS: { name: Numbered; label: string; min: number; max: number; step: number; hint: string }[] = [
  { name: "temperature", label: "Temperature", min: 0, max: 2, step: 0.1, hint: "0 to 2" },
  { name: "top_p", label: "Top p", min: 0, max: 1, step: 0.05, hint: "0 to 1" },
  { name: "max_tokens", label: "Most tokens", min: 1, max: 1_000_000, step: 1, hint: "no limit" },
  { name: "seed", label: "Seed", min: 0, max: 2 ** 31, step: 1, hint: "by chance" },
];

const ROUTES = [
  { value: "", name: "Server's choice" },
  { value: "local-only", name: "Own machines only" },
  { value: "prefer-local", name: "Own machines first" },
  { value: "mesh", name: "All of the mesh" },
];

/** The system prompt and the parameters of this conversation. What is empty is left to the model. */
export function Settings() {
  const { system, parameters, route } = current.value;
  return (
    <section class="settings" aria-label="Settings of this conversation">
      <label class="field wide">
        <span>System prompt</span>
        <textarea rows={2} value={system} placeholder="Who the model is, and how it answers" onInput={(event) => change({ system: event.currentTarget.value })} />
      </label>
      {NUMBERS.map((each) => (
        <label key={each.name} class="field">
          <span>{each.label}</span>
          <input
            type="number" min={each.min} max={each.max} step={each.step} inputMode="decimal" placeholder={each.hint}
            value={parameters[each.name] ?? ""} onChange={(event) => setNumber(each.name, event.currentTarget)}
          />
        </label>
      ))}
      <label class="field">
        <span>Stop at</span>
        <input type="text" placeholder="no text" value={parameters.stop?.[0] ?? ""} onChange={(event) => setParameter("stop", event.currentTarget.value ? [event.currentTarget.value] : undefined)} />
      </label>
      <label class="field">
        <span>Where it may go</span>
        <select value={route} onChange={(event) => change({ route: event.currentTarget.value })}>
          {ROUTES.map(({ value, name }) => <option key={value} value={value}>{name}</option>)}
        </select>
      </label>
    </section>
  );
}

/** Takes a number if it is within its bounds; the browser says what is wrong with one that is not. */
function setNumber(name: Numbered, input: HTMLInputElement): void {
  if (input.value === "") return setParameter(name, undefined);
  if (input.validity.rangeUnderflow || input.validity.rangeOverflow || Number.isNaN(input.valueAsNumber)) {
    input.reportValidity();
    return;
  }
  setParameter(name, input.valueAsNumber);
}

function setParameter<N extends keyof Parameters>(name: N, value: Parameters[N]): void {
  change({ parameters: { ...current.value.parameters, [name]: value } });
}
