import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { bytes } from "../live/words";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { VirtualList } from "../parts/virtual_list";
import { pullModel } from "./requests";
import type { MeshModel } from "./answers";
import { placesOf, type Names } from "./words";

/** More models than this are put in a list of fixed height, whose rows are as high, in pixels. */
const MANY = 12;
const ROW = 64;

interface ModelsProps {
  all: MeshModel[] | null;
  names: Names;
  /** The models that are on their way to here. */
  coming: ReadonlySet<string>;
  onPull: () => void;
}

/** The models that the machines have, and a button to fetch what another passes on. */
export function MeshModels({ all, names, coming, onPull }: ModelsProps) {
  const [typed, setTyped] = useState("");
  const models = all ?? [];
  const shown = models.filter(({ id }) => id.toLowerCase().includes(typed.trim().toLowerCase()));
  const row = (model: MeshModel) => <ModelRow model={model} names={names} comes={coming.has(model.id)} onPull={onPull} />;
  return (
    <section aria-labelledby="mesh-models-title">
      <div class="section-head">
        <h2 id="mesh-models-title">Models</h2>
        {models.length > MANY && <input type="search" class="filter" aria-label="Filter models" placeholder="Name" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />}
      </div>
      <div class="card rows">
        {!all && <p class="empty muted" role="status">Asking the peers for their models…</p>}
        {all && !models.length && <p class="empty muted">Nobody has a model. Machines pass on those of Ollama, LM Studio and the cache of Hugging Face, and the folders of <code>--mesh-models DIR</code>.</p>}
        {models.length > 0 && !shown.length && <p class="empty muted" role="status">No model is called that.</p>}
        {shown.length > MANY && <VirtualList items={shown} rowHeight={ROW} keyOf={({ id }) => id} row={row} label="Models of the mesh" class="models-long" />}
        {shown.length > 0 && shown.length <= MANY && <ul aria-label="Models of the mesh">{shown.map((model) => <li key={model.id}>{row(model)}</li>)}</ul>}
      </div>
    </section>
  );
}

interface RowProps {
  model: MeshModel;
  names: Names;
  comes: boolean;
  onPull: () => void;
}

function ModelRow({ model, names, comes, onPull }: RowProps) {
  return (
    <div class="mesh-model-row">
      <span class="model-name">
        <b>{model.id}</b>
        <span class="muted small">{[model.bytes === null ? "" : bytes(model.bytes), placesOf(model, names)].filter(Boolean).join(" · ")}</span>
      </span>
      {model.filesHere && <span class="chip loaded"><span>here</span></span>}
      {!model.filesHere && model.offeredBy.length > 0 && <PullButton model={model.id} comes={comes} onPull={onPull} />}
    </div>
  );
}

function PullButton({ model, comes, onPull }: { model: string; comes: boolean; onPull: () => void }) {
  const [asked, setAsked] = useState(false);
  const pull = async () => {
    setAsked(true);
    try {
      const step = await pullModel(model);
      toast(step?.state === "done" ? `${model} is here already.` : `${model} is on its way.`);
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    setAsked(false);
    onPull();
  };
  return <button type="button" class="button small" aria-label={`${comes ? "On its way:" : "Pull"} ${model}`} disabled={asked || comes} onClick={() => void pull()}><Icon name="download" /> {comes ? "On its way" : "Pull"}</button>;
}
