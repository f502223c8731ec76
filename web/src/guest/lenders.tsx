import { serverAddress } from "../api/address";
import type { Participant } from "../api/rooms";
import type { RoomWatch } from "../live/room";
import { count } from "../live/words";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";

/** How many lend models in the room, and the way to the list of them. */
export function LendersButton({ watch, onClick }: { watch: RoomWatch; onClick: () => void }) {
  const number = watch.lenders.value.length;
  return (
    <button type="button" class="button small" aria-haspopup="dialog" aria-label={`Who lends models: ${count(number, "machine")}`} onClick={onClick}>
      <Icon name="machine" /> {number}
    </button>
  );
}

/** Who lends which model in the room, as it changes. */
export function Lenders({ watch, open, onClose }: { watch: RoomWatch; open: boolean; onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} label="Who lends models" title="Who lends models">
      <LenderList lenders={watch.lenders.value} />
      <p class="muted small">Lend one yourself: <code>warren room join {watch.entry.code} --server {serverAddress()}</code></p>
    </Dialog>
  );
}

/** Participants with their models. */
export function LenderList({ lenders }: { lenders: Participant[] }) {
  if (!lenders.length) return <p class="muted">Nobody lends a model now.</p>;
  return (
    <ul class="lenders" aria-label="Who lends models">
      {lenders.map(({ id, nickname, model, models, status }) => (
        <li key={id}>
          <span class={`dot ${status === "busy" ? "so-so" : "good"}`} aria-hidden="true" />
          <b>{nickname}</b>
          <span class="lender-models">{[...new Set([model, ...(models ?? [])])].join(", ")}</span>
          <span class="muted small">{status === "busy" ? "busy" : "ready"}</span>
        </li>
      ))}
    </ul>
  );
}
