import { render } from "preact";
import { App } from "./app";
import { begin } from "./begin";
import { roomCodeIn } from "./guest/code";
import { GuestPage } from "./guest/page";
import { followInstallOffer } from "./offline/install";
import { keepOffline } from "./offline/register";
import { followAddress } from "./route";
import { followTheme } from "./theme";
import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/controls.css";
import "./style/dialogs.css";
import "./style/overview.css";
import "./style/charts.css";
import "./style/tables.css";
import "./style/setup.css";
import "./style/play.css";
import "./style/conversations.css";
import "./style/composer.css";
import "./style/prose.css";
import "./style/rooms.css";

const page = document.getElementById("page")!;
const code = roomCodeIn(location.hash);
followTheme();
if (code) {
  // A guest's page asks nothing of the server but the room.
  render(<GuestPage code={code} />, page);
} else {
  void begin();
  followAddress();
  followInstallOffer();
  render(<App />, page);
  keepOffline();
}
window.addEventListener("hashchange", () => {
  if (roomCodeIn(location.hash) !== code) location.reload();
});
