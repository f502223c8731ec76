/** How browsers call themselves; the first that is found counts, since most name others, too. */
const BROWSERS = [["Firefox", /Firefox|FxiOS/], ["Edge", /Edg/], ["Opera", /OPR/], ["Chrome", /Chrom|CriOS/], ["Safari", /AppleWebKit/]] as const;

const SYSTEMS = [["iPhone", /iPhone/], ["iPad", /iPad/], ["Android", /Android/], ["Windows", /Windows/], ["macOS", /Mac OS X/], ["Linux", /Linux/]] as const;

/** A browser in two words, from what it says of itself; that itself where it is unknown. */
export function browserName(told: string): string {
  const browser = BROWSERS.find(([, mark]) => mark.test(told))?.[0];
  const system = SYSTEMS.find(([, mark]) => mark.test(told))?.[0];
  if (!browser) return told || "A browser";
  return system ? `${browser} on ${system}` : browser;
}
