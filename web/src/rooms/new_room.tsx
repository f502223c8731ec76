import { useState } from "preact/hooks";
import { asApiError, type ApiError } from "../api/errors";
import { createRoom } from "../api/rooms";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { keepHostToken } from "./host_tokens";
import type { Invited } from "./invitation";

interface NewRoomProps {
  open: boolean;
  onClose: () => void;
  onMade: (made: Invited) => void;
}

/** Asks what a new room is called, and makes it. */
export function NewRoomDialog({ open, onClose, onMade }: NewRoomProps) {
  return (
    <Dialog open={open} onClose={onClose} label="New room" title="New room">
      <NewRoomForm onMade={onMade} />
    </Dialog>
  );
}

function NewRoomForm({ onMade }: { onMade: (made: Invited) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [listed, setListed] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const { room, hostToken } = await createRoom({ name: name.trim(), password: password || undefined, public: listed || undefined });
      if (hostToken) keepHostToken(room.id, hostToken);
      onMade({ room, hostToken });
    } catch (thrown) {
      setError(asApiError(thrown));
    }
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={submit}>
      <label class="field"><span>Name</span><input type="text" required maxLength={128} autoFocus placeholder="Tuesday" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <label class="field"><span>Password, if the code is not enough</span><input type="password" maxLength={256} autocomplete="new-password" value={password} onInput={(event) => setPassword(event.currentTarget.value)} /></label>
      <label class="check"><input type="checkbox" checked={listed} onChange={(event) => setListed(event.currentTarget.checked)} /><span>Everybody who reaches the server sees it in the list</span></label>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy || !name.trim()}>{busy ? "Making…" : "Make the room"}</button></div>
    </form>
  );
}
