import type { Session } from "../workspace/protocol";

/** The tag of development servers. */
export const TAG = "dev-server";

/** Where a development server can be reached from here, and when that works. */
export interface Reach {
  /** Its address; `null` where none is known. */
  href: string | null;
  words: string;
}

/** What is known of the place from which this page came. */
export interface Here {
  /** The name or number by which the browser reaches the server. */
  host: string;
  /** Whether that is this machine's own. */
  isOnlyHere: boolean;
  /** The node that serves the page; `null` without a cluster. */
  node: string | null;
}

/** The sessions that are development servers; those that run come first. */
export function serversOf(sessions: Session[]): Session[] {
  return sessions.filter(({ tags }) => tags.includes(TAG));
}

/** Where a session's port can be reached. `machine` is the name of the node that runs it. */
export function reachOf({ port, status, node }: Session, here: Here, machine: string): Reach {
  if (status === "exited") return { href: null, words: "It has ended." };
  if (port === null) return { href: null, words: "It does not listen yet, as far as is known. The port is found once it does." };
  if (node !== null && node !== here.node) return { href: null, words: `Port ${port} of ${machine}. Its address is not known here: open it by the name that you reach that machine by.` };
  const href = `http://${here.host}:${port}/`;
  if (here.isOnlyHere) return { href, words: "Works in a browser on the machine that runs the server." };
  return { href, words: `Works if the program listens on all addresses (0.0.0.0). One that listens on 127.0.0.1 only is reached from ${machine} alone.` };
}
