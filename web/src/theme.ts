import { effect, signal } from "@preact/signals";
import { choiceOf, choose } from "./storage/choices";

/** Light, dark, or as the system is set. */
export type Theme = "light" | "dark" | "system";

/** The theme that was chosen. */
export const theme = signal<Theme>(themeOf(choiceOf("theme")));

function themeOf(text: string | null): Theme {
  return text === "light" || text === "dark" ? text : "system";
}

/** Applies the theme from here on. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
}

export function setTheme(to: Theme): void {
  choose("theme", to === "system" ? null : to);
  theme.value = to;
}

/** The theme after this one, for a button that turns through all. */
export function nextTheme(now: Theme): Theme {
  return now === "system" ? "light" : now === "light" ? "dark" : "system";
}
