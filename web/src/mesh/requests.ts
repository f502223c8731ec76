import { part } from "../api/address";
import { call, callJson } from "../api/call";
import { ApiError, asApiError } from "../api/errors";
import { isObject } from "../workspace/protocol";
import { idOf, modelsOf, peersOf, transferOf, transfersOf, type Transfer } from "./answers";

/** Peers are asked what they pass on, which takes the server 3 s and more in a large mesh. */
const MODELS_DEADLINE_MS = 20_000;

/** The longest first line of a pull that is read, in characters. */
const MAX_LINE = 64 * 1024;

/** This machine in the mesh. The status 409 means that it takes no part in one. */
export const meshId = async (signal?: AbortSignal) => idOf(await callJson<unknown>("admin/mesh/id", { signal }));

export const meshPeers = async (signal?: AbortSignal) => peersOf(await callJson<unknown>("admin/mesh/peers", { signal }));

export const meshModels = async (signal?: AbortSignal) => modelsOf(await callJson<unknown>("admin/mesh/models", { signal, deadline: MODELS_DEADLINE_MS }));

/** What comes and goes, and what did last, the newest first. */
export const meshTransfers = async (signal?: AbortSignal) => transfersOf(await callJson<unknown>("admin/mesh/transfers", { signal }));

export const cancelTransfer = (id: string) => call(`admin/mesh/transfers/${part(id)}`, { method: "DELETE" });

/** Begins to fetch a model, and tells how it stands then. The pull goes on by itself: it is seen among the transfers. */
export async function pullModel(model: string): Promise<Transfer | null> {
  const answer = await call("admin/mesh/pull", { method: "POST", body: { model }, headers: { accept: "application/x-ndjson" } });
  if (!answer.body) return null;
  try {
    return firstStep(await firstLine(answer.body));
  } catch (thrown) {
    throw asApiError(thrown);
  }
}

function firstStep(line: string): Transfer | null {
  const value: unknown = line ? JSON.parse(line) : null;
  return isObject(value) ? transferOf(value) : null;
}

/** The first line of a stream, which is then hung up. */
async function firstLine(body: ReadableStream<Uint8Array>): Promise<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (!text.includes("\n")) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
      if (text.length > MAX_LINE) throw new ApiError("The server's answer is too long to be read.", 0);
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
  return text.split("\n", 1)[0]!;
}
