import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { KubeVirt } from '../api/kubevirt.js';
import { gateFromFlags, gateFromKubeVirt, isNamespaceServed, onGateChange } from './persistent-ips-gate.js';

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
    let change: () => void = () => undefined;
    onGateChange(gate, { onChange: (handler) => (change = handler) }, () => told.push(gate.isOpen()));
    for (const featureGates of [['Snapshot'], ['PersistentIPs'], ['PersistentIPs', 'Snapshot'], []]) {
      objects[0] = kubevirt(featureGates);
      change();
    }
    expect(told).to.deep.equal([true, false]);
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
