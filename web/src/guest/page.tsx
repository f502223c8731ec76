import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Brand } from "../frame/brand";
import { RoomWatch } from "../live/room";
import { Icon } from "../parts/icon";
import { Toasts } from "../parts/toast";
import { GuestChat } from "./chat";
import { keepPassword, passwordOf } from "./code";
import { PasswordForm } from "./password";

/** What a guest of a room sees: the room, and nothing else of the server. */
export function GuestPage({ code }: { code: string }) {
  const watch = useMemo(() => new RoomWatch({ code, password: passwordOf(code) }, () => keepPassword(code, null)), [code]);
  useEffect(() => {
    watch.start();
    return () => watch.stop();
  }, [watch]);
  const name = watch.room.value?.name;
  useEffect(() => {
    document.title = name ? `${name} · Warren` : "Warren";
  }, [name]);
  return (
    <>
      <Inside watch={watch} />
      <Toasts />
    </>
  );
}

/** Who was in stays with what was said, whatever becomes of the room. */
function Inside({ watch }: { watch: RoomWatch }) {
  const [wasIn, setWasIn] = useState(false);
  const standing = watch.standing.value;
  const name = watch.room.value?.name;
  useEffect(() => {
    if (standing !== "open") return;
    keepPassword(watch.entry.code, watch.entry.password);
    setWasIn(true);
  }, [standing]);
  if (standing === "password") return <Door><h1>{name ?? "This room"}</h1><PasswordForm watch={watch} /></Door>;
  if (standing === "open" || wasIn) return <GuestChat watch={watch} />;
  return <Door>{standing === "gone" ? <NoRoom /> : <Entering watch={watch} />}</Door>;
}

function Door({ children }: { children: ComponentChildren }) {
  return (
    <main class="sign-in-page">
      <div class="card sign-in"><Brand />{children}</div>
    </main>
  );
}

function NoRoom() {
  return (
    <div role="status">
      <h1>There is no such room</h1>
      <p>It was closed, or the code is not quite right. Ask the person who invited you for the link.</p>
      <button type="button" class="button" onClick={() => location.reload()}>Look again</button>
    </div>
  );
}

function Entering({ watch }: { watch: RoomWatch }) {
  const error = watch.error.value;
  if (!error) return <p role="status">Looking for the room…</p>;
  return (
    <div role="status">
      <h1>{error.away ? "The server is away" : "The room cannot be entered now"}</h1>
      <p class="notice error"><Icon name="warn" /><span>{error.message} {error.status === 429 && error.advice}</span></p>
      <p class="muted small">The page looks again by itself.</p>
    </div>
  );
}
