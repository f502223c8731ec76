import type { ComponentChildren } from "preact";
import { leave } from "../begin";
import { access, health, newVersion, trouble } from "../live/state";
import { Icon, type IconName } from "../parts/icon";
import { openPalette } from "../palette/open";
import { ConversationList } from "../play/list";
import { NoticesDialog, openNotices } from "../notify/dialog";
import { hrefOf, route, type Route } from "../route";
import { nextTheme, setTheme, theme } from "../theme";
import { asking } from "../workspace/hub";
import { Brand } from "./brand";
import { openOnPhone, PhoneDialog } from "./phone_dialog";
import { openSignIn, SignInDialog } from "./sign_in_dialog";

interface PageLink {
  to: Route;
  icon: IconName;
  name: string;
}

const PAGES: PageLink[] = [
  { to: { page: "overview" }, icon: "overview", name: "Overview" },
  { to: { page: "play", id: null }, icon: "chat", name: "Playground" },
  { to: { page: "rooms" }, icon: "room", name: "Rooms" },
  { to: { page: "workspace", ids: [] }, icon: "terminal", name: "Workspace" },
];

/** Where there is room for them. */
const FILES: PageLink = { to: { page: "files", project: null }, icon: "folder", name: "Files" };
const OF_ADMINISTRATORS: PageLink[] = [
  { to: { page: "mesh" }, icon: "mesh", name: "Mesh" },
  { to: { page: "admin" }, icon: "shield", name: "Administration" },
];

/** What is around every page: the way to the others, the server's state, and messages about it. */
export function Frame({ children }: { children: ComponentChildren }) {
  return (
    <div class="frame">
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header class="side">
        <div class="side-head">
          <Brand />
          <span class="buttons">
            <button type="button" class="icon-button" aria-label="Notifications" title="Notifications" onClick={openNotices}><Icon name="bell" /></button>
            <PaletteButton />
          </span>
        </div>
        <Pages all />
        {route.value.page === "play" && <div class="side-list"><ConversationList /></div>}
        <Foot />
      </header>
      <main id="main" tabIndex={-1}>
        <Banners />
        {children}
      </main>
      <div class="bottom"><Pages /><PaletteButton named /></div>
      <SignInDialog />
      <PhoneDialog />
      <NoticesDialog />
    </div>
  );
}

/** The address has the page behind `#`, so a plain link into the page would leave it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** At the foot of a phone there is room for a few; the palette has all. */
function Pages({ all = false }: { all?: boolean }) {
  const shown = all ? [...PAGES, FILES, ...(access.value?.admin ? OF_ADMINISTRATORS : [])] : PAGES;
  return (
    <nav class="pages" aria-label="Pages">
      {shown.map(({ to, icon, name }) => (
        <a key={name} href={hrefOf(to)} aria-current={route.value.page === to.page ? "page" : undefined}>
          <Icon name={icon} />
          <span>{name}</span>
          {to.page === "workspace" && <Asking />}
        </a>
      ))}
    </nav>
  );
}

/** How many agents ask for permission. */
function Asking() {
  const count = asking.value.size;
  if (!count) return null;
  return <span class="badge"><span aria-hidden="true">{count}</span><span class="visually-hidden">, {count === 1 ? "an agent asks" : `${count} agents ask`} for permission</span></span>;
}

function PaletteButton({ named = false }: { named?: boolean }) {
  return (
    <button type="button" class={named ? "pages-button" : "icon-button"} onClick={() => openPalette()} aria-label={named ? "More: commands" : "Commands"} title="Commands (Ctrl K)">
      <Icon name={named ? "menu" : "search"} />
      {named && <span aria-hidden="true">More</span>}
    </button>
  );
}

function Foot() {
  const { icon, label } = { system: { icon: "screen", label: "as the system" }, light: { icon: "sun", label: "light" }, dark: { icon: "moon", label: "dark" } }[theme.value] as { icon: IconName; label: string };
  return (
    <div class="side-foot">
      <ServerState />
      <button type="button" class="icon-button" aria-label={`Theme: ${label}`} title={`Theme: ${label}`} onClick={() => setTheme(nextTheme(theme.value))}>
        <Icon name={icon} />
      </button>
      <button type="button" class="icon-button" aria-label="Open on a phone" title="Open on a phone" onClick={openOnPhone}><Icon name="phone" /></button>
      {access.value?.by === "open"
        ? <button type="button" class="icon-button" aria-label="Sign in" title="Sign in" onClick={openSignIn}><Icon name="key" /></button>
        : <button type="button" class="icon-button" aria-label="Sign out" title={`Sign out${access.value?.name ? ` (${access.value.name})` : ""}`} onClick={() => void leave()}><Icon name="leave" /></button>}
    </div>
  );
}

function ServerState() {
  const away = trouble.value !== null;
  const status = away ? "away" : (health.value?.status ?? "…");
  return (
    <span class="server-state" title={health.value?.degraded ?? location.host}>
      <span class={`dot ${away ? "bad" : status === "ok" ? "good" : "so-so"}`} aria-hidden="true" />
      <span class="server-name">{location.hostname}</span>
      <span class="muted">{status === "ok" ? health.value?.version : status}</span>
    </span>
  );
}

function Banners() {
  return (
    <div class="banners" role="status">
      {trouble.value && (
        <p class="banner bad"><Icon name="warn" /><span>{trouble.value.message} Nothing you typed is lost; the page goes on when it is back.</span></p>
      )}
      {!trouble.value && health.value?.status === "draining" && (
        <p class="banner"><Icon name="pause" /><span>The server is stopping: it finishes what runs, and takes nothing new.</span></p>
      )}
      {!trouble.value && health.value?.degraded && (
        <p class="banner bad"><Icon name="warn" /><span>The server is degraded: {health.value.degraded}</span></p>
      )}
      {newVersion.value && (
        <p class="banner">
          <Icon name="again" />
          <span>The server now runs version {newVersion.value}.</span>
          <button type="button" class="button small" onClick={() => location.reload()}>Reload the page</button>
        </p>
      )}
    </div>
  );
}
