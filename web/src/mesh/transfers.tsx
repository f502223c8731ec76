import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { toast } from "../parts/toast";
import { cancelTransfer } from "./requests";
import { isOver, type Transfer } from "./answers";
import { progressOf, shareOf, type Names } from "./words";

/** So many are shown before the rest is asked for. */
const FEW = 10;

interface TransfersProps {
  all: Transfer[];
  names: Names;
  onChange: () => void;
}

/** Models that come and go, and those that did last. */
export function Transfers({ all, names, onChange }: TransfersProps) {
  const [everyone, setEveryone] = useState(false);
  if (!all.length) return null;
  const sorted = [...all.filter((each) => !isOver(each)), ...all.filter(isOver)];
  const shown = everyone ? sorted : sorted.slice(0, FEW);
  return (
    <section aria-labelledby="transfers-title">
      <h2 id="transfers-title">Transfers</h2>
      <ul class="card rows" aria-label="Transfers">
        {shown.map((each) => <TransferRow key={each.id} of={each} names={names} onChange={onChange} />)}
      </ul>
      {shown.length < all.length && <button type="button" class="button" onClick={() => setEveryone(true)}>Show all {all.length} transfers</button>}
    </section>
  );
}

function TransferRow({ of: transfer, names, onChange }: { of: Transfer; names: Names; onChange: () => void }) {
  const { model, outgoing, state, detail } = transfer;
  const over = isOver(transfer);
  return (
    <li class="mesh-transfer">
      <div class="transfer-head">
        <b>{model}</b>
        <span class="muted small">{outgoing ? "goes to a peer" : "comes to this machine"}</span>
        {!over && <CancelButton of={transfer} onChange={onChange} />}
      </div>
      {!over && <Bar of={transfer} />}
      <p class={`small ${state === "failed" ? "bad-text" : "muted"}`}>{progressOf(transfer, names).join(" · ")}{detail && (state === "done" ? ` · in ${detail}` : `: ${detail}`)}</p>
    </li>
  );
}

function Bar({ of: transfer }: { of: Transfer }) {
  const share = shareOf(transfer);
  const per = share === null ? undefined : Math.floor(share * 100);
  return (
    <span class="bar" role="progressbar" aria-label={`Progress of ${transfer.model}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={per}>
      <span style={{ width: `${per ?? 0}%` }} />
    </span>
  );
}

/** A pull that was cancelled keeps what came, and goes on from there when it is asked for again. */
function CancelButton({ of: { id, model, outgoing }, onChange }: { of: Transfer; onChange: () => void }) {
  const [asking, setAsking] = useState(false);
  const cancel = async () => {
    setAsking(false);
    try {
      await cancelTransfer(id);
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    onChange();
  };
  return (
    <>
      <button type="button" class="button small" aria-label={`Cancel the transfer of ${model}`} onClick={() => setAsking(true)}>Cancel</button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={`Cancel the transfer of ${model}`} title="Cancel the transfer?">
        <p class="wrapping">{outgoing ? `The peer gets no more of ${model}, and may ask again.` : `${model} does not come now. What came is kept: a new pull goes on from there.`}</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Let it go on</button>
          <button type="button" class="button primary" onClick={() => void cancel()}>Cancel it</button>
        </div>
      </Dialog>
    </>
  );
}
