import { useEffect } from "preact/hooks";
import { AdminPage } from "./admin/page";
import { Frame } from "./frame/frame";
import { SignInPage } from "./frame/sign_in";
import { access, entering } from "./live/state";
import { Overview } from "./overview/overview";
import { Palette } from "./palette/palette";
import { PlayPage } from "./play/page";
import { openShelf } from "./play/shelf";
import { reload } from "./play/talk";
import { Toasts } from "./parts/toast";
import { RoomsPage } from "./rooms/page";
import { Later } from "./parts/later";
import { route, type PageName } from "./route";

/** Most visits need no workspace: its page is loaded when it is opened. */
const workspacePage = () => import("./workspace/page").then(({ WorkspacePage }) => WorkspacePage);

const TITLES: Record<PageName, string> = { overview: "Overview", play: "Playground", rooms: "Rooms", workspace: "Workspace", admin: "Administration" };

/** The whole page. */
export function App() {
  const page = route.value.page;
  useEffect(() => {
    document.title = `${TITLES[page]} · Warren`;
  }, [page]);
  return (
    <>
      {access.value ? <Inside page={page} /> : <Outside />}
      <Toasts />
    </>
  );
}

function Inside({ page }: { page: PageName }) {
  useEffect(() => openShelf((id) => void reload(id)), []);
  return (
    <>
      <Frame><Page page={page} /></Frame>
      <Palette />
    </>
  );
}

/** Who may not administer and opens the address of administration sees the overview, which says how to. */
function Page({ page }: { page: PageName }) {
  if (page === "play") return <PlayPage />;
  if (page === "rooms") return <RoomsPage />;
  if (page === "workspace") return <Later of={workspacePage} props={{}} />;
  return page === "admin" && access.value?.admin ? <AdminPage /> : <Overview />;
}

function Outside() {
  return entering.value ? <p class="entering" role="status">Looking for the server…</p> : <SignInPage />;
}
