import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows that are drawn above and below what is seen. */
const MARGIN = 8;

interface VirtualListProps<T> {
  items: T[];
  /** Every row is as high, in pixels. */
  rowHeight: number;
  keyOf: (item: T) => string | number;
  row: (item: T, index: number) => ComponentChildren;
  label: string;
  class?: string;
  role?: "list" | "rowgroup";
}

/** A list of any length of which only the rows in sight are in the page. */
export function VirtualList<T>({ items, rowHeight, keyOf, row, label, class: name = "", role = "list" }: VirtualListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const read = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const watch = new ResizeObserver(read);
    watch.observe(element);
    element.addEventListener("scroll", read, { passive: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", read);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - MARGIN);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + MARGIN);
  return (
    <div ref={box} class={`virtual ${name}`} role={role} aria-label={label} tabIndex={0}>
      <div role="presentation" class="virtual-space" style={{ height: `${items.length * rowHeight}px` }}>
        <div role="presentation" class="virtual-rows" style={{ transform: `translateY(${first * rowHeight}px)` }}>
          {items.slice(first, last).map((item, i) => (
            <div
              key={keyOf(item)} class="virtual-row" style={{ height: `${rowHeight}px` }}
              role={role === "list" ? "listitem" : "row"}
              aria-setsize={role === "list" ? items.length : undefined}
              aria-posinset={role === "list" ? first + i + 1 : undefined}
              aria-rowindex={role === "rowgroup" ? first + i + 2 : undefined}
            >
              {row(item, first + i)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
