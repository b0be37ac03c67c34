import { expect } from 'chai';
import type { KubeletPod } from '../node/pod.js';
import type { Vmi } from '../node/vmi/virtual-machine-instance.js';
import { Launchers } from './launchers.js';
import type { RealNode } from './real-node.js';

const VMI = { namespace: 'vms', name: 'web', uid: 'uid-of-web' };
const OWNER = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'web',
  uid: VMI.uid,
  controller: true,
};
const LAUNCHER: KubeletPod = {
  metadata: { namespace: 'vms', name: 'virt-launcher-web', ownerReferences: [OWNER] },
  spec: { nodeName: 'node-1' },
};

function ended(metadata: object = {}): Vmi {
  return { metadata: { ...VMI, ...metadata }, status: { phase: 'Succeeded', nodeName: 'node-1' } };
}

/** Of a VMI that has been migrated from node-1. */
function migrated(): Vmi {
  const migrationState = { completed: true, sourcePod: LAUNCHER.metadata.name, targetPod: 'virt-launcher-target' };
  return { metadata: VMI, status: { phase: 'Running', nodeName: 'node-2', migrationState } };
}

describe('Launchers on real nodes', () => {
  const killed: string[] = [];
  const scripts: string[] = [];
  const node = {
    name: 'node-1',
    isOn: true,
    containers: () => Promise.resolve(['compute']),
    killContainer: (id: string) => Promise.resolve(killed.push(id)),
    runInPod: (pod: KubeletPod, ...command: string[]) =>
      Promise.resolve(scripts.push(`${pod.metadata.name}: ${command.at(-1) ?? ''}`)),
  } as unknown as RealNode;

  beforeEach(() => {
    killed.splice(0);
    scripts.splice(0);
  });

  it('end with a guest that shuts down', async () => {
    await new Launchers([node]).followGuest(ended(), LAUNCHER);
    expect(killed).to.deep.equal(['compute']);
  });

  it('are left to kubelet if their VMI is being deleted', async () => {
    await new Launchers([node]).followGuest(ended({ deletionTimestamp: '2026-11-28T12:30:00Z' }), LAUNCHER);
    expect(killed).to.be.empty;
  });

  it('do not answer for a guest that has moved to another node', async () => {
    await new Launchers([node]).detachGuest(LAUNCHER, migrated());
    expect(scripts).to.have.length(1);
    expect(scripts[0]).to.match(/^virt-launcher-web: [^]*ip link set "\$interface" down/);
  });

  it('keep their interfaces up as targets of a migration', async () => {
    const target = { ...LAUNCHER, metadata: { ...LAUNCHER.metadata, name: 'virt-launcher-target' } };
    await new Launchers([node]).detachGuest(target, migrated());
    expect(scripts).to.be.empty;
  });
});
