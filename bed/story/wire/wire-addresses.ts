import { type Pod, networkStatuses } from '../../../api/pod.js';
import type { BedWire } from '../../node/bed-wire.js';
import { PODS } from '../../../kube/resources.js';
import type { Client } from '../../../kube/client.js';
import { untilValue } from '../../processes/wait.js';

/** Waits until a pod's interface and its network-status have exactly these addresses. @param addresses with prefix lengths */
export async function waitForWireAddresses(
  { client, wire }: { client: Client; wire: BedWire },
  pod: Pod,
  attachment: { interface: string; addresses: readonly string[] },
): Promise<void> {
  const { namespace, name } = pod.metadata;
  const wanted = [...attachment.addresses].sort();
  const bare = wanted.map((address) => address.replace(/\/.*/, '')).sort();
  await untilValue(
    `${attachment.interface} of pod ${name} to have [${wanted.join(' ')}]`,
    async () => ({
      onWire: (await wire.addressesOf(pod, attachment.interface)).sort().join(' '),
      reported: networkStatusAddresses(await client.get(PODS, { namespace, name }), attachment.interface)
        .sort()
        .join(' '),
    }),
    ({ onWire, reported }) => onWire === wanted.join(' ') && reported === bare.join(' '),
  );
}

function networkStatusAddresses(pod: Pod, interfaceName: string): string[] {
  const statuses = networkStatuses(pod) as { interface?: string; ips?: string[] }[];
  return statuses.find((status) => status.interface === interfaceName)?.ips ?? [];
}
