import { hrefOf } from "../route";
import type { Session } from "../workspace/protocol";
import { isOver, type Transfer } from "../mesh/answers";
import type { Notice } from "./notice";

/** What is known of agents: the sessions, and the ids of those that ask. */
export interface Agents {
  sessions: Session[];
  asking: ReadonlySet<string>;
}

/** Those who lend models in a room now. */
export interface Lenders {
  room: { id: string; name: string };
  /** Names by ids. */
  present: ReadonlyMap<string, string>;
}

/** Finds what is new of agents. What was so when it first looked is not news. */
export class AgentNews {
  private asked: ReadonlySet<string> | null = null;
  private running: ReadonlySet<string> = new Set();

  /** The keys of notices of questions that were answered by the last look: the same agent may ask again. */
  over: string[] = [];

  take({ sessions, asking }: Agents): Notice[] {
    const { asked, running } = this;
    this.asked = new Set(asking);
    this.running = new Set(sessions.filter(isAtWork).map(({ id }) => id));
    this.over = [...(asked ?? [])].filter((id) => !asking.has(id)).map(askKey);
    if (!asked) return [];
    return sessions.flatMap((session) => {
      if (asking.has(session.id) && !asked.has(session.id)) return [asks(session)];
      return running.has(session.id) && hasEnded(session) ? [turnEnded(session)] : [];
    });
  }
}

const isAtWork = ({ kind, status }: Session) => kind === "agent" && status === "running";
const hasEnded = ({ status, hidden }: Session) => !hidden && (status === "idle" || status === "exited");

const askKey = (id: string) => `asks/${id}`;

function asks(session: Session): Notice {
  return { key: askKey(session.id), kind: "asks", title: `${nameOf(session)} asks for permission`, body: session.directory, href: placeOf(session) };
}

function turnEnded(session: Session): Notice {
  const over = session.status === "exited";
  const title = over ? `${nameOf(session)} has ended` : `${nameOf(session)} has ended its turn`;
  return { key: `turn/${session.id}/${session.lastSeq}`, kind: "turns", title, body: session.directory, href: placeOf(session) };
}

const nameOf = ({ name, program, id }: Session) => name || `${program.split("/").pop()} ${id.slice(0, 4)}`;
const placeOf = ({ id }: Session) => hrefOf({ page: "workspace", ids: [id] });

/** Finds who left a room. A room that is closed is left by nobody. */
export class RoomNews {
  private before = new Map<string, Lenders>();

  take(rooms: Lenders[]): Notice[] {
    const before = this.before;
    this.before = new Map(rooms.map((each) => [each.room.id, each]));
    return rooms.flatMap(({ room, present }) => [...(before.get(room.id)?.present ?? [])].filter(([id]) => !present.has(id)).map(([id, name]) => gone(room, id, name)));
  }
}

function gone(room: Lenders["room"], id: string, name: string): Notice {
  return { key: `room/${room.id}/${id}`, kind: "rooms", title: `${name} left ${room.name}`, body: "Nobody is asked there by that machine any more.", href: hrefOf({ page: "rooms" }) };
}

/** Finds which models came, or did not. */
export class TransferNews {
  private over: ReadonlySet<string> | null = null;

  take(transfers: Transfer[]): Notice[] {
    const before = this.over;
    const ended = transfers.filter((each) => !each.outgoing && isOver(each));
    this.over = new Set(ended.map(({ id }) => id));
    return before ? ended.filter(({ id, state }) => !before.has(id) && state !== "cancelled").map(arrived) : [];
  }
}

function arrived({ id, model, state, detail }: Transfer): Notice {
  const title = state === "done" ? `${model} is here` : `${model} did not come`;
  return { key: `transfer/${id}`, kind: "transfers", title, body: detail, href: hrefOf({ page: "mesh" }) };
}
