import { useEffect } from "preact/hooks";
import { Frame } from "./frame/frame";
import { SignInPage } from "./frame/sign_in";
import { access, entering } from "./live/state";
import { Overview } from "./overview/overview";
import { Palette } from "./palette/palette";
import { PlayPage } from "./play/page";
import { openShelf } from "./play/shelf";
import { reload } from "./play/talk";
import { Toasts } from "./parts/toast";
import { route } from "./route";

const TITLES = { overview: "Overview", play: "Playground" };

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

function Inside({ page }: { page: "overview" | "play" }) {
  useEffect(() => openShelf((id) => void reload(id)), []);
  return (
    <>
      <Frame>{page === "overview" ? <Overview /> : <PlayPage />}</Frame>
      <Palette />
    </>
  );
}

function Outside() {
  return entering.value ? <p class="entering" role="status">Looking for the server…</p> : <SignInPage />;
}
