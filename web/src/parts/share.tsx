import { isOnlyHere } from "../api/address";
import { CopyButton } from "./copy";
import { Icon } from "./icon";
import { QrCode } from "./qr";

/** An address to give to another device: to scan, and to copy. */
export function Share({ address, what }: { address: string; what: string }) {
  return (
    <div class="share">
      {isOnlyHere() ? <OnlyHere /> : <QrCode text={address} label={`QR code of the ${what}`} />}
      <div class="share-address">
        <code>{address}</code>
        <CopyButton text={address} what={what} />
      </div>
    </div>
  );
}

/** Nobody else's telephone reaches this machine's own address, so there is nothing to scan. */
function OnlyHere() {
  return (
    <p class="notice warn">
      <Icon name="warn" />
      <span>You opened this page at <b>{location.hostname}</b>, which only this machine reaches. Open it at the machine's address in the network, and there is a QR code here. The server must listen there: <code>warren up --listen 0.0.0.0:9178</code></span>
    </p>
  );
}
