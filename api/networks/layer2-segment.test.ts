import { expect } from 'chai';
import { layer2SegmentOf } from './layer2-segment.js';

const ipam = { type: 'holdfast' };
const RESOURCE = { 'k8s.v1.cni.cncf.io/resourceName': 'vendor/nic' };

const CASES: { name: string; config: object; annotations?: Record<string, string>; wire: string | undefined }[] = [
  { name: 'a bridge', config: { type: 'bridge', bridge: 'br0' }, wire: 'bridge br0' },
  { name: 'a bridge without a name', config: { type: 'bridge' }, wire: 'bridge cni0' },
  { name: 'a VLAN of a bridge', config: { type: 'bridge', bridge: 'br0', vlan: 100 }, wire: 'bridge br0, VLAN 100' },
  { name: 'no VLAN', config: { type: 'bridge', bridge: 'br0', vlan: 0 }, wire: 'bridge br0' },
  { name: 'macvlan', config: { type: 'macvlan', master: 'eth1', mode: 'bridge' }, wire: 'interface eth1' },
  { name: 'ipvlan, whatever its mode', config: { type: 'ipvlan', master: 'eth1', mode: 'l2' }, wire: 'interface eth1' },
  { name: 'a link without a master', config: { type: 'macvlan' }, wire: 'interface of the default route' },
  { name: 'the vlan plugin', config: { type: 'vlan', master: 'eth1', vlanId: 5 }, wire: 'interface eth1, VLAN 5' },
  { name: 'OVS', config: { type: 'ovs', bridge: 'br0', vlan: 5 }, wire: 'OVS bridge br0, VLAN 5' },
  {
    name: 'SR-IOV',
    config: { type: 'sriov', vlan: 7 },
    annotations: RESOURCE,
    wire: 'SR-IOV resource vendor/nic, VLAN 7',
  },
  { name: 'SR-IOV without a resource', config: { type: 'sriov' }, wire: undefined },
  { name: 'OVS without a bridge', config: { type: 'ovs' }, wire: undefined },
  { name: 'a plugin that is not known', config: { type: 'host-device', device: 'eth1' }, wire: undefined },
  { name: 'a link in the pod', config: { type: 'macvlan', master: 'eth1', linkInContainer: true }, wire: undefined },
  { name: 'a bridge that is no text', config: { type: 'bridge', bridge: 7 }, wire: undefined },
  { name: 'a name that is too long', config: { type: 'bridge', bridge: 'b'.repeat(254) }, wire: undefined },
  { name: 'a VLAN that cannot be', config: { type: 'bridge', bridge: 'br0', vlan: 4095 }, wire: undefined },
  { name: 'another IPAM', config: { type: 'bridge', bridge: 'br0', ipam: { type: 'dhcp' } }, wire: undefined },
  {
    name: 'the plugin of a list that delegates IPAM',
    config: {
      plugins: [
        { type: 'tuning', bridge: 'br9' },
        { type: 'bridge', bridge: 'br0', ipam },
      ],
      ipam: {},
    },
    wire: 'bridge br0',
  },
];

describe('the layer-2 segment of a NAD', () => {
  for (const { name, config, annotations, wire } of CASES) {
    it(`is ${wire ?? 'unknown'} for ${name}`, () => {
      const metadata = { name: 'n', namespace: 'vms', ...(annotations && { annotations }) };
      const spec = { config: JSON.stringify({ name: 'blue', ipam, ...config }) };
      expect(layer2SegmentOf({ metadata, spec })).to.equal(wire);
    });
  }

  it('is unknown if the config cannot be read', () => {
    expect(layer2SegmentOf({ metadata: { name: 'n' }, spec: { config: '{' } })).to.equal(undefined);
    expect(layer2SegmentOf({ metadata: { name: 'n' }, spec: {} })).to.equal(undefined);
  });
});
