/** The paths of all icons, drawn with a line of 1.6 in a square of 20. */
const PATHS = {
  overview: "M3 11h5V3H3zM12 17h5V9h-5zM3 17h5v-3H3zM12 6h5V3h-5z",
  chat: "M3 4.5h14v9.5H9.5L6 17v-3H3z",
  search: "M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.5 13.5 17 17",
  plus: "M10 4v12M4 10h12",
  send: "M10 16V4M5 9l5-5 5 5",
  stop: "M5.5 5.5h9v9h-9z",
  copy: "M7 7h9v9H7zM13 7V4H4v9h3",
  check: "M4 10.5 8 14.5 16 6",
  close: "M5 5l10 10M15 5 5 15",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6",
  edit: "M4 16l.8-3.5L13 4.3l2.7 2.7-8.2 8.2z",
  again: "M16 10a6 6 0 1 1-2-4.5M16 3v3.5h-3.5",
  sliders: "M4 6h6M14 6h2M4 14h2M10 14h6M12 4v4M8 12v4",
  columns: "M3.5 4h5.5v12H3.5zM11 4h5.5v12H11z",
  code: "M7 6l-4 4 4 4M13 6l4 4-4 4",
  image: "M3 4h14v12H3zM3 13l4-4 4 4 2.5-2.5L17 14M13 7.5h.01",
  menu: "M3 6h14M3 10h14M3 14h14",
  list: "M3 5h14M3 10h14M3 15h9",
  sun: "M10 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10 2v2M10 16v2M2 10h2M16 10h2M4.4 4.4l1.4 1.4M14.2 14.2l1.4 1.4M4.4 15.6l1.4-1.4M14.2 5.8l1.4-1.4",
  moon: "M16 12A6.5 6.5 0 0 1 8 4a6.5 6.5 0 1 0 8 8z",
  screen: "M3 4h14v9H3zM7 17h6M10 13v4",
  leave: "M8 4H4v12h4M8 10h9M14 7l3 3-3 3",
  key: "M12.5 10.5a3.5 3.5 0 1 0-3-3L3 14v3h3v-2h2v-2h2z",
  down: "M5 8l5 5 5-5",
  up: "M5 12l5-5 5 5",
  download: "M10 3v10M6 9.5l4 4 4-4M4 17h12",
  upload: "M10 14V4M6 7.5l4-4 4 4M4 17h12",
  pause: "M7 5v10M13 5v10",
  warn: "M10 3.5 17.5 16h-15zM10 8v4M10 14h.01",
  room: "M4 17V4l8-1.5v15zM12 5h4v12M2 17h16M9 10h.01",
  phone: "M6 2.5h8v15H6zM9 15h2",
  shield: "M10 2.5 16.5 5v4.5c0 4-2.8 6.7-6.5 8-3.7-1.3-6.5-4-6.5-8V5z",
  link: "M8.5 11.5a3 3 0 0 0 4.3 0l3-3a3 3 0 0 0-4.3-4.3l-1 1M11.5 8.5a3 3 0 0 0-4.3 0l-3 3a3 3 0 0 0 4.3 4.3l1-1",
  terminal: "M3 4h14v12H3zM6 8l2.5 2L6 12M10.5 12.5h3.5",
  left: "M12 5l-5 5 5 5",
  folder: "M3 16V4.5h5l1.5 2H17V16z",
  folderOpen: "M3 16V4.5h5l1.5 2H16V9M3 16l2-7h13l-2 7z",
  file: "M5 2.5h6.5L15 6v11.5H5zM11 2.5V6.5h4",
  right: "M8 5l5 5-5 5",
  more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
  save: "M3.5 3.5H14l2.5 2.5v10.5h-13zM6.5 3.5v4h6v-4M6 16.5v-5h8v5",
  branch: "M6 7v6M6 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM14 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM14 9c0 3-4 2.5-7 4.5",
  team: "M7 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 16.5c0-3 2-4.5 5-4.5s5 1.5 5 4.5M13 4a2.7 2.7 0 0 1 0 5.3M14.5 12.2c2.2.5 3.5 2 3.5 4.3",
  port: "M6 3v4M14 3v4M4 7h12v3a6 6 0 0 1-12 0zM10 16v2",
  mesh: "M10 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM4 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM16 17a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 5.7 5 13.2M11 5.7l4 7.5M6 15h8",
  inbox: "M3 11.5 5.5 4h9l2.5 7.5v5H3zM3 11.5h4l1 2h4l1-2h4",
  bell: "M5 14V9a5 5 0 0 1 10 0v5l1.5 1.5h-13zM8.5 17.5h3",
  undo: "M7 4 3.5 7.5 7 11M3.5 7.5H12a4.5 4.5 0 0 1 0 9H8",
  redo: "M13 4l3.5 3.5L13 11M16.5 7.5H8a4.5 4.5 0 0 0 0 9h4",
  wrap: "M3 5h14M3 10h11a3 3 0 0 1 0 6h-3M13 13.5 10.5 16l2.5 2.5M3 15h4",
  machine: "M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01",
} as const;

export type IconName = keyof typeof PATHS;

/** An icon. It says nothing to screen readers: its button or text does. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
