import { useState } from "preact/hooks";
import * as admin from "../api/admin";
import { asApiError } from "../api/errors";
import type { ModelFacts, Worker } from "../api/types";
import { access, workers } from "../live/state";
import { lookNow } from "../live/watch";
import { bytes, count, short, span } from "../live/words";
import { Dialog } from "../parts/dialog";
import { toast } from "../parts/toast";

/** How many models of a machine are shown before the rest is asked for. */
const FEW = 8;

/** How many machines are. */
const FEW_MACHINES = 12;

/** The machines that are connected, with what they do and the buttons to steer them. */
export function Machines() {
  const [everyone, setEveryone] = useState(false);
  const all = workers.value;
  if (!all?.length) return null;
  const shown = everyone ? all : all.slice(0, FEW_MACHINES);
  return (
    <section aria-labelledby="machines-title">
      <h2 id="machines-title">Machines</h2>
      <ul class="machines">
        {shown.map((worker) => <Machine key={worker.worker_id} worker={worker} />)}
      </ul>
      {shown.length < all.length && <button type="button" class="button" onClick={() => setEveryone(true)}>Show all {all.length} machines</button>}
    </section>
  );
}

function Machine({ worker }: { worker: Worker }) {
  const state = stateOf(worker);
  return (
    <li class="card machine">
      <div class="machine-head">
        <span class={`dot ${state.tone}`} aria-hidden="true" />
        <h3 title={worker.worker_id}>{worker.worker_name || worker.worker_id}</h3>
        {access.value?.admin && <MachineButtons worker={worker} />}
      </div>
      <Load worker={worker} state={state.text} />
      <MachineModels worker={worker} />
    </li>
  );
}

function stateOf(worker: Worker): { text: string; tone: string } {
  if (worker.is_draining) return { text: "draining", tone: "so-so" };
  if (worker.resting_secs) return { text: `resting for ${span(worker.resting_secs * 1000)} after failures`, tone: "bad" };
  const where = { near: "on the network", far: "behind a relay", cloud: "cloud" }[worker.distance ?? ""];
  const what = worker.in_flight >= worker.max_concurrent ? "busy" : worker.in_flight > 0 ? "answering" : "ready";
  return { text: where ? `${what} · ${where}` : what, tone: "good" };
}

/** Slots in use. Load beyond this server's own comes from other servers of the same worker. */
function Load({ worker, state }: { worker: Worker; state: string }) {
  const share = Math.min(1, worker.in_flight / Math.max(1, worker.max_concurrent));
  const elsewhere = Math.max(0, worker.reported_load - worker.in_flight);
  return (
    <div class="load">
      <span class="bar" role="meter" aria-label="Slots in use" aria-valuemin={0} aria-valuemax={worker.max_concurrent} aria-valuenow={worker.in_flight}>
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span class="muted small">
        {state}{worker.scope !== "server" && " · in a room"} · {worker.in_flight} of {count(worker.max_concurrent, "slot")}
        {elsewhere > 0 && <> · {elsewhere} from elsewhere</>}
        {worker.speed ? <> · {short(worker.speed)} tok/s</> : null}
        {(worker.throttle ?? 100) < 100 && <> · throttled to {worker.throttle} %</>}
      </span>
    </div>
  );
}

function MachineModels({ worker }: { worker: Worker }) {
  const [all, setAll] = useState(false);
  const shown = all ? worker.models : worker.models.slice(0, FEW);
  const hidden = worker.models.length - shown.length;
  if (!worker.models.length) return <p class="muted small">It offers no model. Is its model server running?</p>;
  return (
    <ul class="chips" aria-label="Models">
      {shown.map((model) => <MachineModel key={model} worker={worker} model={model} />)}
      {hidden > 0 && <li><button type="button" class="chip" onClick={() => setAll(true)}>{hidden} more</button></li>}
    </ul>
  );
}

function MachineModel({ worker, model }: { worker: Worker; model: string }) {
  const facts = worker.model_facts?.[model];
  const steer = access.value?.admin && worker.loads_models && facts?.load && facts.load !== "loading";
  const what = facts?.load === "loaded" ? "unload" : "load";
  return (
    <li class={`chip ${facts?.load ?? ""}`} title={factsText(facts)}>
      <span>{model}</span>
      {facts?.load && facts.load !== "loaded" && <span class="muted small">{facts.load}</span>}
      {steer && (
        <button type="button" class="chip-button" aria-label={`${what} ${model}`} onClick={() => void changeModel(worker, model, what)}>
          {what}
        </button>
      )}
    </li>
  );
}

function factsText(facts: ModelFacts | undefined): string {
  const memory = facts?.memory_bytes ?? facts?.file_bytes;
  const parts = [
    facts?.load === "loaded" ? "in memory" : facts?.load,
    memory ? bytes(memory) : null,
    facts?.context_tokens ? `${short(facts.context_tokens)} tokens of context` : null,
    facts?.load_ms ? `loads in ${span(facts.load_ms)}` : null,
  ];
  return parts.filter(Boolean).join(", ");
}

async function changeModel(worker: Worker, model: string, what: "load" | "unload"): Promise<void> {
  toast(what === "load" ? `${worker.worker_name} loads ${model}…` : `${worker.worker_name} unloads ${model}…`);
  await told(admin[what](worker.worker_id, model), `${model} is ${what}ed.`);
}

/** Waits for a change, and tells what came of it. */
async function told(change: Promise<unknown>, done: string): Promise<void> {
  try {
    await change;
    toast(done);
  } catch (thrown) {
    toast(asApiError(thrown).message, "error");
  }
  lookNow();
}

function MachineButtons({ worker }: { worker: Worker }) {
  const [asking, setAsking] = useState(false);
  return (
    <span class="buttons">
      <button type="button" class="button small" onClick={() => void refreshWorker(worker)}>Refresh</button>
      <button type="button" class="button small" disabled={worker.is_draining} onClick={() => setAsking(true)}>Drain</button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={`Drain ${worker.worker_name}`} title={`Drain ${worker.worker_name}?`}>
        <p>It gets nothing new, finishes {worker.in_flight ? count(worker.in_flight, "answer") : "what it has"}, and its link is closed. A worker that still runs connects again by itself some seconds later.</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Keep it</button>
          <button type="button" class="button primary" onClick={() => { setAsking(false); void drainWorker(worker); }}>Drain</button>
        </div>
      </Dialog>
    </span>
  );
}

/** Asks a machine for its models now. */
export const refreshWorker = (worker: Worker) => told(admin.refresh(worker.worker_id), `${worker.worker_name} was asked for its models.`);

/** Drains a machine. */
export const drainWorker = (worker: Worker) => told(admin.drain(worker.worker_id), `${worker.worker_name} drains.`);
