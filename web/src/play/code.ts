import type { ChatRequest } from "../api/chat";

/** A request in the words of a program. */
export interface Example {
  name: string;
  language: string;
  text: string;
}

/** A longer data URL is cut in examples, in characters. */
const MAX_URL = 64;

/** The same request for a terminal, Python and JavaScript. The key is never in it. */
export function examplesOf(request: ChatRequest, base: string): Example[] {
  const body = { model: request.model, messages: request.messages, ...set(request.parameters), stream: true };
  return [
    { name: "curl", language: "sh", text: curl(body, base, request.route) },
    { name: "Python", language: "python", text: python(body, base, request.route) },
    { name: "JavaScript", language: "js", text: javascript(body, base, request.route) },
  ];
}

function set(parameters: ChatRequest["parameters"]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined));
}

function json(value: unknown): string {
  return JSON.stringify(value, (_, inner) => (typeof inner === "string" && inner.startsWith("data:") ? `${inner.slice(0, MAX_URL)}…` : inner), 2);
}

function curl(body: unknown, base: string, route?: string): string {
  const lines = [
    `curl -N ${quoted(`${base}/chat/completions`)}`,
    `-H "authorization: Bearer $WARREN_KEY"`,
    `-H 'content-type: application/json'`,
    ...(route ? [`-H ${quoted(`x-warren-route: ${route}`)}`] : []),
    `-d ${quoted(json(body))}`,
  ];
  return lines.join(" \\\n  ");
}

/** A text in a shell's single quotes, in which nothing else has a meaning. */
export function quoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}

function python(body: Record<string, unknown>, base: string, route?: string): string {
  const headers = route ? `\n    extra_headers={"x-warren-route": ${JSON.stringify(route)}},` : "";
  const lines = Object.entries(body).map(([name, value]) => `    ${name}=${indented(pythonOf(json(value)))},`);
  return `import os
from openai import OpenAI

client = OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ.get("WARREN_KEY", "none"))
stream = client.chat.completions.create(
${lines.join("\n")}${headers}
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
`;
}

/** JSON as Python has it. Only the words outside of strings differ. */
export function pythonOf(text: string): string {
  const words: Record<string, string> = { true: "True", false: "False", null: "None" };
  return text.replace(/"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g, (found) => words[found] ?? found);
}

function indented(text: string): string {
  return text.replace(/\n/g, "\n    ");
}

function javascript(body: unknown, base: string, route?: string): string {
  const headers = route ? `, { headers: { "x-warren-route": ${JSON.stringify(route)} } }` : "";
  return `import OpenAI from "openai";

const client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: process.env.WARREN_KEY ?? "none" });
const stream = await client.chat.completions.create(${json(body)}${headers});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
}
`;
}
