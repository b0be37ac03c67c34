import { isIPv4 } from 'node:net';
import { addressTextsOf } from '../../api/ipam-claim.js';
import { describeValue, nameFirst } from '../../api/json.js';
import type { KubeVirt } from '../../api/kubevirt.js';
import { joinKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { isForVmNetwork, isOwnedBy } from '../../api/vm-claims.js';
import { installedKubeVirt } from '../../cluster/kubevirt-controller.js';
import type { ObservedWorkload, OwnerNetwork } from './plan/observed-workload.js';
import type { WorkloadEvent } from './plan/action.js';

/**
 * The first minor version of KubeVirt 1 whose DHCP server knows the guest's MAC address after a live migration (kubevirt#16697). The branches of 1.6,
 * 1.7 and 1.8 do not have it.
 */
const CORRECTED_MINOR = 9;
const KUBEVIRT_1 = /^v?1\.(\d{1,3})\./;
/** How many interfaces a message names. */
const MAX_NAMED = 4;

/**
 * Finds guests that lose their IPv4 address when they reboot: in the target of a live migration, KubeVirt's DHCP server answers only the MAC address of
 * the target's own interface, unless the spec has one (kubevirt#16696).
 */
export class DHCPAfterMigration {
  readonly #kubevirts: { list(): readonly KubeVirt[] };
  /** The UID of the VMI that was reported, by its key. A VM that starts again has another one. */
  readonly #reported = new Map<string, string>();

  constructor(kubevirts: { list(): readonly KubeVirt[] }) {
    this.#kubevirts = kubevirts;
  }

  /** @returns an event, once for each VMI */
  take(observed: ObservedWorkload): WorkloadEvent | undefined {
    const { namespace, name, vm, vmi } = observed;
    const key = joinKey(namespace, name);
    if (vmi === undefined || vmi.hasEnded) {
      this.#reported.delete(key);
      return undefined;
    }
    const { uid = '' } = vmi.metadata;
    if (!vmi.hasMigrated || this.#reported.get(key) === uid) return undefined;
    const minor = this.#affectedMinor();
    const affected = [...vmi.spec.servedNetworks.values()].filter((network) => isAffected(network, observed));
    if (minor === undefined || affected.length === 0) return undefined;
    this.#reported.set(key, uid);
    const regarding = vm === undefined ? 'vmi' : 'vm';
    return { reason: EventReason.DHCPLostAfterMigration, message: messageOf(affected, minor), regarding };
  }

  /** @returns the minor version of the installed KubeVirt, if it has the defect. Products with versions of their own are unknown */
  #affectedMinor(): number | undefined {
    const { observedKubeVirtVersion = '' } = installedKubeVirt(this.#kubevirts.list())?.status ?? {};
    const minor = Number(KUBEVIRT_1.exec(observedKubeVirtVersion)?.[1] ?? Number.NaN);
    return minor < CORRECTED_MINOR ? minor : undefined;
  }
}

function messageOf(affected: readonly OwnerNetwork[], minor: number): string {
  const names = affected.map(({ name }) => describeValue(name));
  return (
    `The VM has migrated without a macAddress for ${nameFirst(names, MAX_NAMED)}: KubeVirt 1.${minor} no longer answers DHCP requests of the guest, ` +
    `which therefore has no IPv4 address after a reboot. Stop and start the VM instead of rebooting its guest. KubeVirt 1.${CORRECTED_MINOR} answers`
  );
}

/** KubeVirt's DHCP server has the IPv4 address of the launcher's interface, so there is none on a network without IPAM. */
function isAffected({ name, nadKey, isPrimary }: OwnerNetwork, { vmi, networks, claims }: ObservedWorkload): boolean {
  const vmInterface = vmi?.spec.interfaces.get(name);
  if (vmi === undefined || vmInterface?.bridge === undefined || isPrimary === true) return false;
  const nad = networks.get(nadKey);
  if ((vmInterface.macAddress ?? '') !== '' || nad?.found !== true || nad.delivery.kind === 'guest') return false;
  return claims.some(
    (claim) =>
      isOwnedBy(claim, vmi.owner) && isForVmNetwork(claim, vmi.owner.name, name) && addressTextsOf(claim).some(isIPv4),
  );
}
