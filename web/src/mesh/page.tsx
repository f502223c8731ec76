import { useEffect, useMemo, useRef } from "preact/hooks";
import type { ApiError } from "../api/errors";
import { usePolled } from "../live/polled";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { MeshModels } from "./models";
import { NoMesh } from "./no_mesh";
import { Peers } from "./peers";
import { meshId, meshModels, meshPeers, meshTransfers } from "./requests";
import { Self } from "./self";
import { isOver, type Transfer } from "./answers";
import { Transfers } from "./transfers";
import { namesOf } from "./words";
import "../style/mesh.css";

/** How often each is looked at, in milliseconds. Each look at the models asks every peer. */
const ID_MS = 10_000;
const PEERS_MS = 3000;
const MODELS_MS = 15_000;
const TRANSFERS_MS = 1000;

/** The machines that found each other: this one, its peers, their models, and what is on its way. */
export function MeshPage() {
  const { value: self, error } = usePolled(meshId, ID_MS);
  return (
    <div class="page mesh">
      <h1>Mesh</h1>
      {error?.status === 409 ? <NoMesh /> : <Trouble error={error} shown={self !== null} />}
      {!self && !error && <p class="card empty muted" role="status">Looking at the mesh…</p>}
      {self && error?.status !== 409 && <><Self of={self} /><Others /></>}
    </div>
  );
}

function Others() {
  const { value: peers, error: noPeers } = usePolled(meshPeers, PEERS_MS);
  const { value: models, error: noModels, look } = usePolled(meshModels, MODELS_MS);
  const { value: transfers, error: noTransfers, look: lookAtTransfers } = usePolled(meshTransfers, TRANSFERS_MS);
  const names = useMemo(() => namesOf(peers?.peers ?? []), [peers]);
  useEnds(transfers ?? [], look);
  return (
    <>
      <Trouble error={noPeers ?? noModels ?? noTransfers} shown />
      <Transfers all={transfers ?? []} names={names} onChange={lookAtTransfers} />
      <Peers all={peers} />
      <MeshModels all={models} names={names} coming={coming(transfers ?? [])} onPull={lookAtTransfers} />
    </>
  );
}

/** The models that are on their way to here. */
function coming(transfers: Transfer[]): ReadonlySet<string> {
  return new Set(transfers.filter((each) => !each.outgoing && !isOver(each)).map(({ model }) => model));
}

/** Tells of each transfer to here that ended since the last look, and calls `onEnd`. */
function useEnds(transfers: Transfer[], onEnd: () => void): void {
  const running = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const ended = transfers.filter((each) => isOver(each) && running.current.has(each.id));
    running.current = new Set(transfers.filter((each) => !each.outgoing && !isOver(each)).map(({ id }) => id));
    ended.forEach(tellEnd);
    if (ended.length) onEnd();
  }, [transfers]);
}

function tellEnd({ model, state, detail }: Transfer): void {
  if (state === "done") toast(`${model} is here.`);
  else if (state === "failed") toast(`${model} did not come: ${detail || "no reason was given"}`, "error");
}

function Trouble({ error, shown }: { error: ApiError | null; shown: boolean }) {
  if (!error) return null;
  return <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message} {shown && "What is shown is from before. "}The page goes on trying.</span></p>;
}
