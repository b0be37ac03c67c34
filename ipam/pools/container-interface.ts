import { EventReason } from '../../api/names.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { MAX_READ_NADS, type NadEvent } from './requested-pools.js';

/** Only the bridge plugin has the setting. OpenShift's has another name. */
const BRIDGES: readonly string[] = ['bridge', 'cnv-bridge'];

const MESSAGE =
  'The kernel of launchers uses the interface of the guest, too: set disableContainerInterface: true in the config of the bridge plugin. ' +
  'Otherwise it can draw the traffic of the guest to the target of a live migration, and takes an IPv6 address from router advertisements';

/** Returns a warning for each NAD of VMs whose launchers speak on the network beside their guests. @param nads on which a pool serves guests */
export function containerInterfaceEvents(nads: readonly ParsedNad[]): NadEvent[] {
  return nads
    .filter(
      ({ config, delivery }) =>
        config.ok &&
        config.network.allowPersistentIPs &&
        delivery.kind === 'guest' &&
        BRIDGES.includes(delivery.plugin) &&
        !delivery.disablesContainerInterface,
    )
    .slice(0, MAX_READ_NADS)
    .map((nad) => ({ nad, reason: EventReason.ContainerInterfaceEnabled, message: MESSAGE }));
}
