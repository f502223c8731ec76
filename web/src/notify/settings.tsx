import { useState } from "preact/hooks";
import { access } from "../live/state";
import { want, wanted, wantsAny, type NoticeKind, type Wish } from "./choices";
import { chime } from "./sound";

const NAMES: Record<NoticeKind, string> = {
  asks: "an agent asks for permission",
  turns: "an agent has ended its turn",
  rooms: "somebody leaves a room",
  transfers: "a model has come from the mesh",
};

/** What the browser lets the page do. */
type Permission = "granted" | "denied" | "default" | "missing";

function permissionNow(): Permission {
  return typeof Notification === "undefined" || !window.isSecureContext ? "missing" : Notification.permission;
}

/** What the person wants to be told of, and how that can be. */
export function NoticeSettings() {
  const [permission, setPermission] = useState(permissionNow());
  const ask = async () => {
    if (permissionNow() === "default") await Notification.requestPermission().catch(() => undefined);
    setPermission(permissionNow());
  };
  const change = (wish: Wish, on: boolean) => {
    want(wish, on);
    if (wish === "sound" && on) chime();
    else if (on) void ask();
  };
  return (
    <>
      <fieldset class="scopes">
        <legend>Tell me when</legend>
        {possible().map((kind) => <Switch key={kind} wish={kind} name={NAMES[kind]} onChange={change} />)}
      </fieldset>
      <Switch wish="sound" name="with a sound" onChange={change} />
      <p class="muted small" role="status">{wordsFor(permission)}</p>
      {permission === "default" && wantsAny() && <div class="dialog-foot"><button type="button" class="button" onClick={() => void ask()}>Ask the browser</button></div>}
      <p class="muted small">Nothing is sent to anybody else for this: it works while the page is open somewhere in this browser, also in the background. What you look at is not told.</p>
    </>
  );
}

/** What can come to pass for this person. */
function possible(): NoticeKind[] {
  const may = access.value;
  const kinds: NoticeKind[] = may?.workspace === "no" ? [] : ["asks", "turns"];
  return [...kinds, "rooms", ...(may?.admin ? (["transfers"] as const) : [])];
}

interface SwitchProps {
  wish: Wish;
  name: string;
  onChange: (wish: Wish, on: boolean) => void;
}

function Switch({ wish, name, onChange }: SwitchProps) {
  return (
    <label class="check">
      <input type="checkbox" checked={wanted.value.has(wish)} onChange={(event) => onChange(wish, event.currentTarget.checked)} />
      <span>{name}</span>
    </label>
  );
}

const IN_PAGE = "Notices are shown in the page, and counted in the window's title.";

function wordsFor(permission: Permission): string {
  const words: Record<Permission, string> = {
    granted: "While you are elsewhere, the system shows the notices.",
    default: `The browser has not been asked yet whether the system may show notices. ${IN_PAGE}`,
    denied: `The browser does not let this page show notices by the system; its settings for this site change that. ${IN_PAGE}`,
    missing: `The system shows notices only of pages with https, or at localhost, and not in every browser. ${IN_PAGE}`,
  };
  return words[permission];
}
