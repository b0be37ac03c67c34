import { expect } from 'chai';
import { dhcpNetworksOf, severalDefaultRoutes } from './default-routes.js';
import { type VmInterface, type VmNetwork, type VmVolume, secondaryNetworks } from '../kubevirt.js';
import type { Delivery } from './nad-guests.js';

const DELIVERIES: Readonly<Record<string, Delivery>> = {
  'vms/routed': { kind: 'cni', bringsDefaultRoute: true },
  'vms/other': { kind: 'cni', bringsDefaultRoute: true },
  'vms/plain': { kind: 'cni' },
  'vms/flat': { kind: 'guest', plugin: 'bridge', disablesContainerInterface: false },
};
const POD: VmNetwork = { name: 'default', pod: {} };
const ROUTED = attached('data', 'routed');

function attached(name: string, networkName: string): VmNetwork {
  return { name, multus: { networkName } };
}

interface Case {
  readonly title: string;
  readonly networks: VmNetwork[];
  readonly interfaces?: VmInterface[];
  readonly volumes?: VmVolume[];
  readonly wanted?: string;
  /** The networks that the message names; none: there is no problem. */
  readonly expect: string[];
}

describe('default routes by DHCP', () => {
  const cases: Case[] = [
    { title: 'are one on the pod network', networks: [POD, attached('data', 'plain')], expect: [] },
    { title: 'are one on a NAD without the pod network', networks: [ROUTED], expect: [] },
    {
      title: 'are two on the pod network and on a NAD that has one',
      networks: [ROUTED, POD],
      expect: ['default', 'data'],
    },
    {
      title: 'are two on two NADs that have one',
      networks: [ROUTED, attached('more', 'vms/other')],
      expect: ['data', 'more'],
    },
    {
      title: 'are two if a network replaces the pod network',
      networks: [{ name: 'first', multus: { networkName: 'plain', default: true } }, ROUTED],
      expect: ['first', 'data'],
    },
    {
      title: 'are one on a layer-2 network beside the pod network',
      networks: [POD, attached('data', 'flat')],
      expect: [],
    },
    {
      title: 'are two if the annotation names a layer-2 network beside the pod network',
      networks: [POD, attached('data', 'flat')],
      wanted: 'data',
      expect: ['default', 'data'],
    },
    {
      title: 'are one if the annotation names a NAD that has none',
      networks: [POD, attached('data', 'plain')],
      wanted: 'data',
      expect: [],
    },
    { title: 'are unknown on a NAD that does not exist', networks: [POD, attached('data', 'nowhere')], expect: [] },
    {
      title: 'are one beside an SR-IOV device, which has no DHCP of KubeVirt',
      networks: [POD, ROUTED],
      interfaces: [{ name: 'data', sriov: {} }],
      expect: [],
    },
    {
      title: 'are not counted for binding plugins',
      networks: [POD, ROUTED],
      interfaces: [{ name: 'default', binding: { name: 'passt' } }],
      expect: [],
    },
    {
      title: 'are one while an interface is unplugged',
      networks: [POD, ROUTED],
      interfaces: [{ name: 'data', state: 'absent' }],
      expect: [],
    },
    {
      title: 'are the business of cloud-init if it has network data',
      networks: [POD, ROUTED],
      volumes: [{ cloudInitNoCloud: { networkDataSecretRef: { name: 'vm1' } } }],
      expect: [],
    },
    {
      title: 'are two if cloud-init has only user data',
      networks: [POD, ROUTED],
      volumes: [{ cloudInitNoCloud: {} }],
      expect: ['default', 'data'],
    },
  ];
  for (const { title, networks, interfaces = [], volumes = [], wanted, expect: names } of cases) {
    it(title, () => {
      const spec = { networks, domain: { devices: { interfaces } }, volumes };
      const found = severalDefaultRoutes(
        dhcpNetworksOf(spec, secondaryNetworks(spec, 'vms')),
        wanted,
        (key) => DELIVERIES[key],
      );
      expect(found?.networks ?? []).to.deep.equal(names);
      for (const name of found?.networks ?? []) expect(found?.message).to.include(`"${name}"`);
    });
  }

  it('are explained with what to remove, in a message of bounded length', () => {
    const text = (networks: VmNetwork[], wanted?: string) =>
      severalDefaultRoutes(
        dhcpNetworksOf({ networks }, secondaryNetworks({ networks }, 'vms')),
        wanted,
        (key) => DELIVERIES[key],
      )?.message;
    expect(text([POD, ROUTED])).to.equal(
      'DHCP gives the guest a default route on each of the networks "default" (the pod network), "data" ' +
        '(NetworkAttachmentDefinition vms/routed), so that traffic may leave through the wrong one. Keep one: remove the default ' +
        'route (routes, isDefaultGateway) from the NetworkAttachmentDefinition, or give the guest cloud-init network data',
    );
    expect(text([POD, attached('data', 'flat')], 'data')).to.include(
      'remove the annotation ipam.holdfast.dev/default-route',
    );
    const many = Array.from({ length: 64 }, (_, index) => attached(`${index}${'x'.repeat(60)}`, 'routed'));
    expect(text(many)).to.include('and 56 more').and.have.length.below(2000);
  });
});
