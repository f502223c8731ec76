import { render } from "preact";
import { App } from "./app";
import { begin } from "./begin";
import { followAddress } from "./route";
import { followTheme } from "./theme";
import "./style/tokens.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/controls.css";
import "./style/overview.css";
import "./style/play.css";
import "./style/prose.css";

followTheme();
void begin();
followAddress();
render(<App />, document.getElementById("page")!);
