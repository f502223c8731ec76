import { batch } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Room } from "../api/rooms";
import { ANY_MODEL, modelsIn, type RoomWatch } from "../live/room";
import { models, trouble } from "../live/state";
import { Icon } from "../parts/icon";
import { Composer } from "../play/composer";
import { useEscape } from "../play/escape";
import { ModelSelect } from "../play/model_select";
import { latest, openShelf } from "../play/shelf";
import { askIn, current, currentId, currentLanes, discard, hasBegun, open, reload, setModel, startNew } from "../play/talk";
import { Thread } from "../play/thread";
import { keepIn } from "../storage/place";
import { Lenders, LendersButton } from "./lenders";

/** The conversation of a guest with the models of a room. */
export function GuestChat({ watch }: { watch: RoomWatch }) {
  const room = watch.room.value!;
  const ready = useConversation(watch, room);
  const [lenders, setLenders] = useState(false);
  useModels(watch);
  useEscape();
  if (!ready) return null;
  return (
    <main class="play guest">
      <div class="toolbar guest-head">
        <span class="guest-room"><Icon name="room" /><h1>{room.name}</h1></span>
        {models.value?.length ? <ModelSelect model={currentLanes.value[0] ?? ANY_MODEL} label="Model" onChange={(id) => setModel(0, id)} /> : null}
        <LendersButton watch={watch} onClick={() => setLenders(true)} />
        <NewButton />
      </div>
      <Notice watch={watch} />
      <Thread welcome={<Welcome />} />
      {watch.standing.value !== "gone" && <Composer waiting={waitingFor(watch)} />}
      <Lenders watch={watch} open={lenders} onClose={() => setLenders(false)} />
    </main>
  );
}

/** The conversation of this room that was held last, apart from all others that this browser keeps. */
function useConversation(watch: RoomWatch, room: Room): boolean {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    keepIn(`room.${room.id}`);
    askIn(watch.entry);
    startNew();
    const close = openShelf((id) => void reload(id));
    void latest().then(async (last) => {
      if (last) await open(last.id);
      setReady(true);
    });
    return close;
  }, []);
  return ready;
}

/** What the playground's parts know of the server is here what is known of the room. */
function useModels(watch: RoomWatch): void {
  const found = modelsIn(watch.lenders.value);
  const error = watch.error.value;
  useEffect(() => {
    batch(() => {
      models.value = found;
      trouble.value = error?.away ? error : null;
    });
    const lane = current.value.lanes[0];
    if (found.length && !found.some(({ id }) => id === lane)) setModel(0, ANY_MODEL);
  }, [watch.lenders.value, error, currentId.value]);
}

function waitingFor(watch: RoomWatch): string | null {
  return watch.lenders.value.length ? null : "Nobody lends a model now";
}

function NewButton() {
  const id = currentId.value;
  const begin = () => {
    if (confirm("Begin again? What was said here is nowhere else, and is deleted.")) void discard(id);
  };
  return <button type="button" class="icon-button" aria-label="Begin again" title="Begin again" disabled={!hasBegun.value} onClick={begin}><Icon name="plus" /></button>;
}

function Welcome() {
  return (
    <>
      <h2>Ask a model</h2>
      <p class="muted">What you write goes to the machine in this room that answers, and is kept in this browser only.</p>
    </>
  );
}

/** What keeps questions from being answered. */
function Notice({ watch }: { watch: RoomWatch }) {
  const gone = watch.standing.value === "gone";
  return (
    <div class="banners" role="status">
      {gone && <p class="banner bad"><Icon name="warn" /><span>This room was closed. What was said stays here; ask the person who invited you for another room.</span></p>}
      {!gone && watch.error.value && <p class="banner bad"><Icon name="warn" /><span>{watch.error.value.message} The page goes on by itself.</span></p>}
      {!gone && !watch.error.value && !watch.lenders.value.length && (
        <p class="banner"><span class="spinner" aria-hidden="true" /><span>Nobody lends a model in this room now. This page changes by itself as soon as somebody does.</span></p>
      )}
    </div>
  );
}
