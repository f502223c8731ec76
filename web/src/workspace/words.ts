import { asApiError } from "../api/errors";
import { toast } from "../parts/toast";
import { nodes } from "./hub";
import type { Session } from "./protocol";

/** What a session is called. */
export function titleOf({ name, program, id }: Session): string {
  return name || `${program.split("/").pop()} ${id.slice(0, 4)}`;
}

/** What a session is. */
export function kindOf({ kind, program }: Session): string {
  if (kind === "agent") return program;
  return kind === "adopted" ? "adopted process" : "terminal";
}

/** What a session does now, and how that looks. */
export function stateOf(session: Session, asks: boolean): { words: string; look: "good" | "so-so" | "bad" | "" } {
  if (asks) return { words: "asks for permission", look: "so-so" };
  if (!session.reachable) return { words: "its machine is away", look: "bad" };
  if (session.status === "exited") return { words: session.exitCode ? `ended with ${session.exitCode}` : "ended", look: "" };
  if (session.status === "idle") return { words: "waits for a prompt", look: "good" };
  return { words: session.kind === "agent" ? "works" : session.status === "detached" ? "runs, nobody looks" : "runs", look: "good" };
}

/** The name of the node of a session; `null` without a cluster. */
export function nodeOf({ node }: Session): string | null {
  return node === null ? null : (nodes.value.get(node) ?? node.slice(0, 8));
}

/** Shows why something did not work. */
export function tell(thrown: unknown): void {
  toast(asApiError(thrown).message, "error");
}
