/** What the keys do: the way through the files, and through the places that changed in the one that is shown. */
export interface Steps {
  toFile: (by: number) => void;
  toPlace: (by: number) => void;
}

/** Takes a step if a key asks for one; not while somebody types. */
export function onStepKey(event: KeyboardEvent, { toFile, toPlace }: Steps): void {
  if (event.ctrlKey || event.altKey || event.metaKey || (event.target as HTMLElement).closest("input, textarea, select")) return;
  if (event.key === "j") toFile(1);
  if (event.key === "k") toFile(-1);
  if (event.key === "n") toPlace(1);
  if (event.key === "p") toPlace(-1);
}

/** Goes to the next place that changed, or to the one before: seen from the one that has the focus, or from what is seen. */
export function stepTo(box: HTMLElement | null | undefined, by: number): void {
  const places = [...(box?.querySelectorAll<HTMLElement>("[data-change]") ?? [])];
  const at = places.indexOf(document.activeElement as HTMLElement);
  const next = at >= 0 ? places[at + by] : placeFrom(places, box?.getBoundingClientRect().top ?? 0, by);
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "center" });
}

function placeFrom(places: HTMLElement[], top: number, by: number): HTMLElement | undefined {
  const isBelow = (place: HTMLElement) => place.getBoundingClientRect().top >= top;
  return by > 0 ? places.find(isBelow) : places.filter((place) => !isBelow(place)).at(-1);
}
