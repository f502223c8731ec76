import type { Used } from "./events";

/** What turns used, in words. */
export function usedWords({ input, output, cost }: Used): string {
  const number = (value: number) => value.toLocaleString("en");
  const dollars = cost === null ? "" : `, $${cost.toFixed(cost < 1 ? 4 : 2)}`;
  return `${number(input)} tokens read, ${number(output)} written${dollars}`;
}
