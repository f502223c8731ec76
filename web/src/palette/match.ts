/** How well a text fits what was typed; 0 when it does not. All letters must come, in their order. */
export function fit(text: string, typed: string): number {
  const wanted = typed.toLowerCase().replace(/\s+/g, "");
  if (!wanted) return 1;
  const inText = text.toLowerCase();
  const whole = inText.indexOf(typed.toLowerCase().trim());
  if (whole >= 0) return 1000 - whole + (isStart(inText, whole) ? 500 : 0);
  let score = 1;
  let at = 0;
  for (const letter of wanted) {
    const found = inText.indexOf(letter, at);
    if (found < 0) return 0;
    score += isStart(inText, found) ? 10 : found === at ? 5 : 1;
    at = found + letter.length;
  }
  return score;
}

function isStart(text: string, at: number): boolean {
  return at === 0 || !/[a-z0-9]/.test(text[at - 1]!);
}

/** The best fitting ones, the best first; as they are where nothing is typed. */
export function best<T extends { name: string }>(all: T[], typed: string, most: number): T[] {
  if (!typed.trim()) return all.slice(0, most);
  return all
    .map((each) => ({ each, score: fit(each.name, typed) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, most)
    .map(({ each }) => each);
}
