import { effect } from "@preact/signals";
import { basePath } from "../api/address";
import { ApiError } from "../api/errors";
import { participants, rooms, type Participant, type Room } from "../api/rooms";
import { passwordOf } from "../guest/code";
import { Poll } from "../live/poll";
import { access } from "../live/state";
import { meshTransfers } from "../mesh/requests";
import { asking, sessions } from "../workspace/hub";
import { wanted, type NoticeKind } from "./choices";
import { AgentNews, RoomNews, TransferNews, type Lenders } from "./news";
import type { Notice } from "./notice";
import { seen, show } from "./show";
import { isLookedAt } from "./sight";
import { Tabs, type Channel } from "./tabs";

/** How often rooms and transfers are looked at, also whether there is a mesh by now; and how many rooms, the newest. */
const ROOMS_MS = 10_000;
const TRANSFERS_MS = 5000;
const ALONE_MS = 60_000;
const MAX_ROOMS = 8;

/** Gives the notices that are wanted, until the returned function is called. */
export function watch(): () => void {
  const tabs = new Tabs(channel(), crypto.getRandomValues(new Uint32Array(2)).join("-"), isLookedAt);
  const give = (notices: Notice[]) => notices.filter(({ kind }) => wanted.value.has(kind)).forEach((notice) => void claim(tabs, notice));
  const stops = [watchAgents(give, (keys) => tabs.forget(keys)), watchWhileWanted("rooms", () => lookAtRooms(give)), watchWhileWanted("transfers", () => lookAtTransfers(give)), watchSight()];
  return () => {
    stops.forEach((stop) => stop());
    tabs.close();
  };
}

async function claim(tabs: Tabs, notice: Notice): Promise<void> {
  if (await tabs.claims(notice.key, notice.href)) await show(notice);
}

function channel(): Channel | null {
  return typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`warren.notices:${basePath()}`);
}

function watchSight(): () => void {
  window.addEventListener("focus", seen);
  document.addEventListener("visibilitychange", seen);
  return () => {
    window.removeEventListener("focus", seen);
    document.removeEventListener("visibilitychange", seen);
  };
}

/** The list is gone while the page is signed out: then all begins anew. */
function watchAgents(give: (notices: Notice[]) => void, forget: (keys: string[]) => void): () => void {
  let news = new AgentNews();
  return effect(() => {
    if (!sessions.value) return void (news = new AgentNews());
    give(news.take({ sessions: sessions.value, asking: asking.value }));
    forget(news.over);
  });
}

/** Looks while this kind is wanted, also while the page is hidden. */
function watchWhileWanted(kind: NoticeKind, poll: () => Poll | null): () => void {
  let running: Poll | null = null;
  const stop = effect(() => {
    running?.stop();
    running = access.value && wanted.value.has(kind) ? poll() : null;
    running?.start();
  });
  return () => {
    stop();
    running?.stop();
  };
}

function lookAtTransfers(give: (notices: Notice[]) => void): Poll | null {
  if (!access.value?.admin) return null;
  const news = new TransferNews();
  let hasMesh = true;
  const look = async (signal: AbortSignal) => {
    const transfers = await meshTransfers(signal).catch((thrown) => noneIfAlone(thrown));
    hasMesh = transfers !== null;
    if (transfers) give(news.take(transfers));
  };
  return new Poll({ look, every: () => (hasMesh ? TRANSFERS_MS : ALONE_MS), whileHidden: true });
}

/** `null` for the refusal of a server that takes no part in a mesh. */
function noneIfAlone(thrown: unknown): null {
  if (thrown instanceof ApiError && thrown.status === 409) return null;
  throw thrown;
}

function lookAtRooms(give: (notices: Notice[]) => void): Poll {
  const news = new RoomNews();
  const look = async (signal: AbortSignal) => {
    const newest = (await rooms(signal)).slice(-MAX_ROOMS);
    const seen = await Promise.all(newest.map((room) => lendersOf(room, signal)));
    give(news.take(seen.filter((each) => each !== null)));
  };
  return new Poll({ look, every: () => ROOMS_MS, whileHidden: true });
}

/** Who lends in a room; `null` where its password is not known, or it is closed by now. */
async function lendersOf(room: Room, signal: AbortSignal): Promise<Lenders | null> {
  const password = passwordOf(room.code);
  if (room.passwordProtected && password === null) return null;
  const all = await participants({ code: room.code, password }, signal).catch(() => null);
  return all && { room, present: new Map(all.filter(isHere).map(({ id, nickname }) => [id, nickname])) };
}

const isHere = ({ status }: Participant) => status !== "offline";
