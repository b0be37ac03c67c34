import { expect } from 'chai';
import { Client } from '../../../kube/client.js';
import { VIRTUAL_MACHINES } from '../../../kube/resources.js';
import { MemoryTransport } from '../../../kube/testing/memory-transport.js';
import { vmManifest, waitGone } from './vm.js';

const REF = { namespace: 'vms', name: 'web' };

describe('A wait for the end of a VM', () => {
  const api = new MemoryTransport();

  it('says what holds the VM', async () => {
    const vm = vmManifest({ ...REF, networks: {} });
    const finalizers = ['kubevirt.io/virtualMachineControllerFinalize'];
    api.tracker.put(VIRTUAL_MACHINES, { ...vm, metadata: { ...vm.metadata, finalizers } });
    const failure: unknown = await waitGone(new Client(api), REF, 10).catch((error: unknown) => error);
    expect(String(failure)).to.match(
      /waited 10 ms for VM web to be gone.*"kind":"VM".*virtualMachineControllerFinalize/,
    );
  });

  it('ends when it is gone', async () => {
    api.tracker.remove(VIRTUAL_MACHINES, REF);
    await waitGone(new Client(api), REF, 10);
  });
});
