// The browser and the place to work in of a file of tests, from its beginning to its end.
import { after } from "node:test";
import { startPlace } from "./workspace.mjs";

export const [browser, place] = await startPlace();

after(async () => {
  await browser.close();
  await place.remove();
});
