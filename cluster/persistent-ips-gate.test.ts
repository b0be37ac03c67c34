import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { KubeVirt } from '../api/kubevirt.js';
import { NAMESPACE_WATCH } from './watch-specs.js';
import {
  createPersistentIPsGate,
  gateFromFlags,
  gateFromKubeVirt,
  isNamespaceServed,
  tellChanges,
} from './persistent-ips-gate.js';

const NO_GATES = {
  ...{ persistentIPs: false, primaryUserDefinedNetwork: false, nodeBlocks: false, publishCapacity: false },
  stickyMAC: false,
};

function both(first: () => void, second: () => void): () => void {
  return () => {
    first();
    second();
  };
}

function kubevirt(featureGates?: string[]): KubeVirt {
  const configuration = { developerConfiguration: featureGates === undefined ? {} : { featureGates } };
  return { metadata: { name: 'kubevirt', namespace: 'kubevirt' }, spec: { configuration } };
}

/** @param second of its creation */
function created(object: KubeVirt, second: number): KubeVirt {
  return { ...object, metadata: { ...object.metadata, creationTimestamp: `2026-01-01T00:00:0${second}Z` } };
}

describe('the gate PersistentIPs', () => {
  it('has the value of the flag', () => {
    expect(gateFromFlags({ persistentIPs: true }).isOpen()).to.equal(true);
    expect(gateFromFlags({ persistentIPs: false }).isOpen()).to.equal(false);
  });

  const cases: { name: string; given: KubeVirt[]; expect: boolean }[] = [
    { name: 'is open where KubeVirt lists it', given: [kubevirt(['Snapshot', 'PersistentIPs'])], expect: true },
    { name: 'is closed where KubeVirt lists others', given: [kubevirt(['Snapshot'])], expect: false },
    { name: 'is closed where KubeVirt lists none', given: [kubevirt()], expect: false },
    { name: 'is closed where KubeVirt says nothing', given: [{ metadata: { name: 'kubevirt' } }], expect: false },
    { name: 'is closed where there is no KubeVirt', given: [], expect: false },
    {
      name: 'is not opened by a KubeVirt object that a tenant creates later',
      given: [created(kubevirt(['PersistentIPs']), 9), created(kubevirt(), 1)],
      expect: false,
    },
    {
      name: 'is not closed by one either',
      given: [created(kubevirt(), 9), created(kubevirt(['PersistentIPs']), 1)],
      expect: true,
    },
  ];
  for (const { name, given, expect: wanted } of cases) {
    it(name, () => expect(gateFromKubeVirt({ list: () => given }).isOpen()).to.equal(wanted));
  }

  it('reports only when it opens or closes', () => {
    const objects = [kubevirt()];
    const gate = gateFromKubeVirt({ list: () => objects });
    const told: boolean[] = [];
    const change = tellChanges(gate, () => told.push(gate.isOpen()));
    for (const featureGates of [['Snapshot'], ['PersistentIPs'], ['PersistentIPs', 'Snapshot'], []]) {
      objects[0] = kubevirt(featureGates);
      change();
    }
    expect(told).to.deep.equal([true, false]);
  });

  it('is closed until the watches that it needs have listed', () => {
    const objects: KubeVirt[] = [];
    let change: () => void = () => undefined;
    let synced: () => void = () => undefined;
    const needed = { hasSynced: false, onSynced: (handler: () => void) => (synced = handler) };
    let isNeeded = () => false;
    const informers = {
      get: () => ({
        cache: { list: () => objects },
        onChange: (handler: () => void) => (change = both(change, handler)),
      }),
      getWhile: (_watched: object, need: () => boolean) => {
        isNeeded = need;
        return needed;
      },
      update: () => undefined,
    };
    const told: boolean[] = [];
    const config = { featureGates: NO_GATES, featureGatesFromKubevirt: true };
    const gate = createPersistentIPsGate(config, informers as never, () => told.push(gate.isOpen()));
    gate.informer(NAMESPACE_WATCH);
    expect(isNeeded()).to.equal(false);
    objects[0] = kubevirt(['PersistentIPs']);
    change();
    expect([isNeeded(), gate.isOpen()]).to.deep.equal([true, false]);
    needed.hasSynced = true;
    synced();
    expect([gate.isOpen(), told]).to.deep.equal([true, [true]]);
  });

  it('serves no namespace that the admission webhook excludes', async () => {
    const served = (namespace: string, persistentIPs = true) =>
      isNamespaceServed(namespace, gateFromFlags({ persistentIPs }), 'holdfast-system');
    expect(served('vms')).to.equal(true);
    expect(served('vms', false)).to.equal(false);
    const manifest = await readFile(
      new URL('../manifests/base/claims/webhook/mutating-webhook.yaml', import.meta.url),
      'utf8',
    );
    const [, excluded = ''] = /operator: NotIn\s+values: \[(.*)\]/.exec(manifest) ?? [];
    expect(excluded.split(', ').map((namespace) => [namespace, served(namespace)])).to.deep.equal([
      ['kube-system', false],
      ['holdfast-system', false],
    ]);
  });

  it('follows KubeVirt', () => {
    const objects = [kubevirt()];
    const gate = gateFromKubeVirt({ list: () => objects });
    objects[0] = kubevirt(['PersistentIPs']);
    expect(gate.isOpen()).to.equal(true);
  });
});
