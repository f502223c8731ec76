import { useEffect } from "preact/hooks";
import { Frame } from "./frame/frame";
import { SignInPage } from "./frame/sign_in";
import { access, entering } from "./live/state";
import { followNotices } from "./notify/follow";
import { titled, unseen } from "./notify/unseen";
import { Overview } from "./overview/overview";
import { Palette } from "./palette/palette";
import { PlayPage } from "./play/page";
import { openShelf } from "./play/shelf";
import { reload } from "./play/talk";
import { Toasts } from "./parts/toast";
import { RoomsPage } from "./rooms/page";
import { Later } from "./parts/later";
import { route, type PageName } from "./route";

/** Most visits need none of these: they are loaded when they are opened. */
const workspacePage = () => import("./workspace/page").then(({ WorkspacePage }) => WorkspacePage);
const filesPage = () => import("./files/page").then(({ FilesPage }) => FilesPage);
const meshPage = () => import("./mesh/page").then(({ MeshPage }) => MeshPage);
const adminPage = () => import("./admin/page").then(({ AdminPage }) => AdminPage);

const TITLES: Record<PageName, string> = { overview: "Overview", play: "Playground", rooms: "Rooms", workspace: "Workspace", files: "Files", mesh: "Mesh", admin: "Administration" };

/** The whole page. */
export function App() {
  const page = route.value.page;
  useEffect(() => {
    document.title = titled(`${TITLES[page]} · Warren`);
  }, [page, unseen.value]);
  return (
    <>
      {access.value ? <Inside page={page} /> : <Outside />}
      <Toasts />
    </>
  );
}

function Inside({ page }: { page: PageName }) {
  useEffect(() => openShelf((id) => void reload(id)), []);
  useEffect(followNotices, []);
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
  if (page === "files") return <Later of={filesPage} props={{}} />;
  if (page === "mesh" && access.value?.admin) return <Later of={meshPage} props={{}} />;
  return page === "admin" && access.value?.admin ? <Later of={adminPage} props={{}} /> : <Overview />;
}

function Outside() {
  return entering.value ? <p class="entering" role="status">Looking for the server…</p> : <SignInPage />;
}
