import { useEffect, useMemo, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { closeRoom, type Room } from "../api/rooms";
import { guestAddress, passwordOf } from "../guest/code";
import { LenderList } from "../guest/lenders";
import { PasswordForm } from "../guest/password";
import { RoomWatch, type Happening } from "../live/room";
import { count } from "../live/words";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { hostTokenOf } from "./host_tokens";

interface RoomCardProps {
  room: Room;
  onInvite: () => void;
  onChange: () => void;
}

/** A room; who is there and what happens is looked at once somebody asks for it. */
export function RoomCard({ room, onInvite, onChange }: RoomCardProps) {
  const [open, setOpen] = useState(false);
  const code = room.spokenCode ?? room.code;
  return (
    <li class="card room">
      <div class="room-head">
        <div class="room-name">
          <h2>{room.name}</h2>
          <span class="muted small">
            {code} · {count(room.participantCount ?? 0, "machine")}
            {room.passwordProtected && " · with a password"}{room.public && " · listed for everybody"}
          </span>
        </div>
        <span class="buttons">
          <button type="button" class="button small" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Show less" : "Show"}</button>
          <button type="button" class="button small" onClick={onInvite}>Invite</button>
          <a class="button small" href={guestAddress("", room.code)} target="_blank" rel="noopener">Ask</a>
        </span>
      </div>
      {open && <Live room={room} onChange={onChange} />}
    </li>
  );
}

/** The room's own code opens it: its password is asked for like a guest's. */
function Live({ room, onChange }: { room: Room; onChange: () => void }) {
  const watch = useMemo(() => new RoomWatch({ code: room.code, password: passwordOf(room.code) }), [room.code]);
  useEffect(() => {
    watch.start();
    return () => watch.stop();
  }, [watch]);
  if (watch.standing.value === "password") return <div class="room-live"><PasswordForm watch={watch} /></div>;
  return (
    <div class="room-live">
      {watch.error.value && <p class="notice error" role="alert"><Icon name="warn" /><span>{watch.error.value.message}</span></p>}
      <LenderList lenders={watch.lenders.value} />
      <Activity happenings={watch.happenings.value} />
      <CloseButton room={room} onChange={onChange} />
    </div>
  );
}

function Activity({ happenings }: { happenings: Happening[] }) {
  if (!happenings.length) return <p class="muted small">What happens in the room is shown here from now on.</p>;
  return (
    <ol class="happenings" aria-label="What happens" tabIndex={0}>
      {happenings.map(({ n, at, text, bad }) => (
        <li key={n} class={bad ? "bad-text" : undefined}><time class="muted">{new Date(at).toLocaleTimeString()}</time> {text}</li>
      ))}
    </ol>
  );
}

function CloseButton({ room, onChange }: { room: Room; onChange: () => void }) {
  const [asking, setAsking] = useState(false);
  const close = async () => {
    setAsking(false);
    try {
      await closeRoom(room.code, hostTokenOf(room.id));
      toast(`${room.name} is closed.`);
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    onChange();
  };
  return (
    <div class="dialog-foot">
      <button type="button" class="button small" onClick={() => setAsking(true)}>Close the room</button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={`Close ${room.name}`} title={`Close ${room.name}?`}>
        <p>Its codes open nothing any more, its machines are let go, and answers that are under way end.</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Keep it</button>
          <button type="button" class="button primary" onClick={() => void close()}>Close it</button>
        </div>
      </Dialog>
    </div>
  );
}
