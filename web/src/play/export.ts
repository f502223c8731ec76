import type { Answer, Conversation, Turn } from "./conversation";
import { freshId } from "./conversation";

/** The form of exported conversations; a number that this page does not know is refused. */
const FORM = 1;

/** The longest file that is read, in bytes. */
export const MAX_IMPORT = 64 * 1024 * 1024;

/** Conversations as the text of a file that `fromJson` reads. */
export function toJson(conversations: Conversation[]): string {
  return JSON.stringify({ form: "warren-conversations", version: FORM, conversations }, null, 1);
}

/** The conversations in a file, under new ids. It throws an `Error` that says what is wrong. */
export function fromJson(text: string): Conversation[] {
  let value: { form?: unknown; version?: unknown; conversations?: unknown };
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("The file is no JSON.");
  }
  if (value?.form !== "warren-conversations" || !Array.isArray(value.conversations)) {
    throw new Error("The file has no conversations of this page.");
  }
  if (value.version !== FORM) throw new Error("The file was written by a newer page. Update the server.");
  return value.conversations.map(conversationFrom);
}

type Loose = Record<string, unknown>;

function conversationFrom(value: unknown): Conversation {
  const from = objectOf(value);
  return {
    id: freshId(),
    title: textOf(from["title"]) || "Imported",
    created: numberOf(from["created"]) ?? Date.now(),
    updated: numberOf(from["updated"]) ?? Date.now(),
    system: textOf(from["system"]),
    parameters: objectOf(from["parameters"]),
    route: textOf(from["route"]),
    lanes: lanesFrom(from["lanes"]),
    turns: listOf(from["turns"]).map(turnFrom),
  };
}

function lanesFrom(value: unknown): string[] {
  const lanes = listOf(value).map(textOf).slice(0, 2);
  return lanes.length ? lanes : [""];
}

function turnFrom(value: unknown): Turn {
  const from = objectOf(value);
  const pictures = listOf(from["pictures"]).map(objectOf);
  return {
    id: freshId(),
    text: textOf(from["text"]),
    pictures: pictures.map((each) => ({ url: textOf(each["url"]), name: textOf(each["name"]) })).filter(isPicture),
    answers: listOf(from["answers"]).map(answerFrom).slice(0, 2),
  };
}

/** Only pictures within the file: an address of somewhere else would be asked when it is shown. */
function isPicture({ url }: { url: string }): boolean {
  return /^data:image\/(png|jpeg|webp|gif);base64,/.test(url);
}

function answerFrom(value: unknown): Answer {
  const from = objectOf(value);
  const error = from["error"] ? objectOf(from["error"]) : null;
  return {
    model: textOf(from["model"]),
    state: from["state"] === "done" || from["state"] === "failed" ? from["state"] : "stopped",
    text: textOf(from["text"]),
    thought: textOf(from["thought"]),
    why: null,
    error: error && { message: textOf(error["message"]), advice: textOf(error["advice"]) || null },
    firstMs: numberOf(from["firstMs"]),
    totalMs: numberOf(from["totalMs"]),
    prompt: numberOf(from["prompt"]),
    completion: numberOf(from["completion"]),
    pieces: numberOf(from["pieces"]) ?? 0,
    finish: textOf(from["finish"]) || null,
    requestId: textOf(from["requestId"]) || null,
  };
}

const objectOf = (value: unknown): Loose => (value && typeof value === "object" && !Array.isArray(value) ? (value as Loose) : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const numberOf = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

/** A conversation as a text to read. */
export function toMarkdown(conversation: Conversation): string {
  const parts = [`# ${conversation.title}`];
  if (conversation.system.trim()) parts.push(`> ${conversation.system.trim().replace(/\n/g, "\n> ")}`);
  for (const turn of conversation.turns) {
    parts.push(`## You\n\n${turn.text || "(a picture)"}`);
    for (const answer of turn.answers) parts.push(`## ${answer.model}\n\n${answer.text || "(no answer)"}`);
  }
  return `${parts.join("\n\n")}\n`;
}

/** Gives the person a file. */
export function saveFile(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A title as the name of a file. */
export function fileName(title: string, ending: string): string {
  const plain = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${plain || "conversation"}.${ending}`;
}
