import { signal } from "@preact/signals";
import { Dialog } from "../parts/dialog";
import { Later } from "../parts/later";

const shown = signal(false);

const settings = () => import("./settings").then(({ NoticeSettings }) => NoticeSettings);

/** Asks what the person wants to be told of. */
export function openNotices(): void {
  shown.value = true;
}

export function NoticesDialog() {
  return (
    <Dialog open={shown.value} onClose={() => (shown.value = false)} label="Notifications" title="Notifications">
      <Later of={settings} props={{}} />
    </Dialog>
  );
}
