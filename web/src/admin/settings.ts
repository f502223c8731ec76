import type { Setting } from "./answers";

/** Settings that belong together: those of one table of the file. */
export interface Group {
  name: string;
  settings: Setting[];
}

/** The name of the group of those that stand in no table. */
const OF_NO_TABLE = "server";

/** The longest value that is shown, in characters. */
const MAX_VALUE = 2000;

/** The settings that are asked for, by what stands before the first dot of their names. */
export function groupsOf(settings: Setting[], typed: string, differing: boolean): Group[] {
  const wanted = typed.trim().toLowerCase();
  const groups = new Map<string, Setting[]>();
  for (const setting of settings) {
    if (differing && setting.source === "default") continue;
    if (wanted && !`${setting.name} ${shownValue(setting).words}`.toLowerCase().includes(wanted)) continue;
    const name = groupOf(setting);
    groups.set(name, [...(groups.get(name) ?? []), setting]);
  }
  return [...groups].map(([name, within]) => ({ name, settings: within })).sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}

const rank = ({ name }: Group) => (name === OF_NO_TABLE ? 0 : 1);

function groupOf({ name }: Setting): string {
  return name.includes(".") ? name.split(".", 1)[0]! : OF_NO_TABLE;
}

/** What a setting is set to; `plain`: these are words about it. */
export function shownValue({ value, secret }: Setting): { words: string; plain: boolean } {
  if (secret) return { words: "set, and secret", plain: true };
  if (value === null) return { words: "not set", plain: true };
  const words = typeof value === "string" ? value || '""' : JSON.stringify(value);
  return { words: words.slice(0, MAX_VALUE), plain: false };
}

/** How a setting was set. */
export function sourceWords(source: Setting["source"]): string {
  return { default: "the default", file: "by the file", environment: "by the environment", flag: "by a flag" }[source];
}
