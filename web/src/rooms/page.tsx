import { useState } from "preact/hooks";
import { rooms, type Room } from "../api/rooms";
import { usePolled } from "../live/polled";
import { Icon } from "../parts/icon";
import { Invitation, type Invited } from "./invitation";
import { NewRoomDialog } from "./new_room";
import { RoomCard } from "./room_card";

/** How many rooms are shown before the rest is asked for. */
const FEW = 20;

/** The rooms of this server that the caller may see, and new ones. */
export function RoomsPage() {
  const { value: all, error, look } = usePolled(rooms, 5000);
  const [making, setMaking] = useState(false);
  const [invited, setInvited] = useState<Invited | null>(null);
  const onMade = (made: Invited) => {
    setMaking(false);
    setInvited(made);
    look();
  };
  return (
    <div class="page">
      <div class="page-head rooms-head">
        <h1>Rooms</h1>
        <button type="button" class="button primary" onClick={() => setMaking(true)}><Icon name="plus" /> New room</button>
      </div>
      <p class="muted">A room is shared by a code: who knows it lends models of their own machines, and asks everybody's. A friend needs nothing but a browser.</p>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message}</span></p>}
      {all?.length === 0 && <p class="card empty muted">There is no room that you may see.</p>}
      <List rooms={all ?? []} onInvite={(room) => setInvited({ room })} onChange={look} />
      <NewRoomDialog open={making} onClose={() => setMaking(false)} onMade={onMade} />
      <Invitation invited={invited} onClose={() => setInvited(null)} />
    </div>
  );
}

interface ListProps {
  rooms: Room[];
  onInvite: (room: Room) => void;
  onChange: () => void;
}

/** The newest room comes first. */
function List({ rooms: all, onInvite, onChange }: ListProps) {
  const [everyone, setEveryone] = useState(false);
  const newest = [...all].reverse();
  const shown = everyone ? newest : newest.slice(0, FEW);
  return (
    <>
      <ul class="room-list">
        {shown.map((room) => <RoomCard key={room.id} room={room} onInvite={() => onInvite(room)} onChange={onChange} />)}
      </ul>
      {shown.length < all.length && <button type="button" class="button" onClick={() => setEveryone(true)}>Show all {all.length} rooms</button>}
    </>
  );
}
