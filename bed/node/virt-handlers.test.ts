import { pino } from 'pino';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { until } from '../processes/wait.js';
import { Switches } from '../switches.js';
import { KUBELET_PODS } from './pod.js';
import type { GuestNetworks } from './sandbox-networks.js';
import { VirtHandlers } from './virt-handlers.js';
import { type Vmi, type VmiPhase, VMIS } from './vmi/virtual-machine-instance.js';

const NODE = 'node-1';
const VMI = { namespace: 'vms', name: 'web' };
const UID = 'uid-of-web';
const SCHEDULED: Vmi = { metadata: { ...VMI, uid: UID }, status: { phase: 'Scheduled', nodeName: NODE } };

const NO_GUESTS: GuestNetworks = {
  followGuest: () => Promise.resolve(),
  interfacesOfGuest: () => Promise.resolve(undefined),
  detachGuest: () => Promise.resolve(),
  attachGuest: () => Promise.resolve(),
};

describe('The simulated virt-handlers', () => {
  let api: MemoryTransport;
  let handlers: VirtHandlers;

  beforeEach(async () => {
    api = new MemoryTransport();
    api.before = ({ path, query = {}, signal }) =>
      path.endsWith('/pods') && query.watch !== undefined ? abortOf(signal) : undefined; // no event of a pod arrives
    const client = new Client(api);
    handlers = new VirtHandlers({
      client,
      handlerClient: client,
      switches: new Switches(),
      guests: NO_GUESTS,
      isNodeUp: () => true,
      startErrorOf: () => undefined,
      clock: systemClock,
      log: pino({ enabled: false }),
    });
    await handlers.start();
    handlers.work();
  });
  afterEach(() => handlers.stop());

  /** virt-handler writes the whole object. */
  function waitForPhase(phase: VmiPhase): Promise<unknown> {
    const written = () =>
      api.requests.flatMap(({ method, body }) => (method === 'PUT' ? [(body as Vmi).status?.phase] : []));
    return until(`the VMI to be ${phase}`, () => written().includes(phase), { timeoutMs: 5_000 });
  }

  it('start a guest although the event of its launcher is late', async () => {
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: VMI.name, uid: UID };
    const ownerReferences = [{ ...owner, controller: true }];
    const labels = { 'kubevirt.io/created-by': UID };
    const metadata = { namespace: 'vms', name: 'virt-launcher-web', labels, ownerReferences };
    api.tracker.put(KUBELET_PODS, { metadata, spec: { nodeName: NODE }, status: { phase: 'Running' } });
    api.tracker.put(VMIS, SCHEDULED);
    await waitForPhase('Running');
  });

  it('end a guest whose launcher does not exist', async () => {
    api.tracker.put(VMIS, SCHEDULED);
    await waitForPhase('Succeeded');
  });
});

function abortOf(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('aborted'))));
}
