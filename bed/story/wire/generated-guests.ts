import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { Client } from '../../../kube/client.js';
import { VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { VIRT_HANDLER } from '../../control-plane/kubevirt.js';
import type { RunningCommand, WireLocation } from '../../network/wire.js';
import { untilValue } from '../../processes/wait.js';
import { buildGeneratedGuests } from '../../holdfast/packets.js';
import type { ServedNetwork } from './served-network.js';
import { clientAs } from '../users/service-account.js';
import type { Story } from '../story.js';
import { vmiManifest } from '../vms/vm.js';

/** An annotation of the receiver of a migration between clusters: KubeVirt creates no launcher until it is told a node. */
const WITHOUT_LAUNCHER = { 'kubevirt.io/create-migration-target': 'true' };
/** Holdfast creates claims for at most 32 interfaces of a VM. */
const INTERFACES_PER_VMI = 25;

/** What the program prints: `guest/packets/guests.go`. */
export interface GuestResults {
  readonly booted: number;
  /** From the first DISCOVER to the last ACK. */
  readonly bootMs: number;
  readonly renewals: number;
  readonly answered: number;
}

/**
 * Creates VMIs with so many interfaces in all, and waits until both responders answer them. There are no launchers: 500 interfaces of
 * pods would take the machine that the test measures.
 */
export async function createGeneratedGuests(
  story: Story,
  network: ServedNetwork,
  { count, nad }: { count: number; nad: string },
): Promise<void> {
  const starts = Array.from(
    { length: Math.ceil(count / INTERFACES_PER_VMI) },
    (_, index) => index * INTERFACES_PER_VMI,
  );
  const handler = await clientAs(network.services.bed, VIRT_HANDLER);
  try {
    await Promise.all(
      starts.map(async (from) => {
        const some = Array.from({ length: Math.min(INTERFACES_PER_VMI, count - from) }, (_, index) => from + index);
        const vmi: VirtualMachineInstance = vmiManifest({
          ...story.ref(`generated-${from}`),
          networks: Object.fromEntries(some.map((index) => [`n${index}`, nad])),
          macs: Object.fromEntries(some.map((index) => [`n${index}`, generatedMac(index)])),
        });
        const metadata = { ...vmi.metadata, annotations: WITHOUT_LAUNCHER };
        await story.client.create(VIRTUAL_MACHINE_INSTANCES, { ...vmi, metadata });
        await setPhaseUnknown(story, metadata.name, handler);
      }),
    );
  } finally {
    await handler.transport.close();
  }
  await network.untilGuests(count);
}

/**
 * Sets the phase of a VMI whose node does not answer. It is the only phase with a domain in which virt-controller 1.8 leaves a VMI without a
 * launcher alone (`updateStatus` in pkg/virt-controller/watch/vmi/lifecycle.go). It would not remove finalizers either, so they go here.
 * @param handler acts as virt-handler, because virt-api silently reverts changes of a VMI's status by others
 */
async function setPhaseUnknown(story: Story, name: string, handler: Client): Promise<void> {
  const ref = story.ref(name);
  await untilValue(
    `VMI ${name} to wait for a migration`,
    () => story.client.get(VIRTUAL_MACHINE_INSTANCES, ref),
    ({ status }) => status?.phase === 'WaitingForSync',
  );
  const body = { metadata: { finalizers: null }, status: { phase: 'Unknown' } };
  await handler.patch(VIRTUAL_MACHINE_INSTANCES, ref, { type: 'merge', body });
}

/** Starts the program that sends in place of the guests, on a host of the network. */
export async function startGeneratedGuests(
  { services: { bed, wire } }: ServedNetwork,
  host: WireLocation,
  flags: readonly string[],
): Promise<RunningCommand> {
  const command = await buildGeneratedGuests(bed.dataDir);
  return wire.wire.start(host, { command, args: flags });
}

/** Waits until the program has ended. */
export async function resultsOf({ ended, output }: RunningCommand): Promise<GuestResults> {
  await ended;
  return JSON.parse(output.stdout) as GuestResults;
}

/** The MAC address of a generated guest. */
function generatedMac(index: number): string {
  const hex = (byte: number) => byte.toString(16).padStart(2, '0');
  return `02:fe:00:00:${hex(index >> 8)}:${hex(index & 0xff)}`;
}
