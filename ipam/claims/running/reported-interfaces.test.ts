import { expect } from 'chai';
import { AddressError, parseAddressOrPrefix } from '../../../addressing/address/address.js';
import { packInterfaces, reportedAddressesOf, reportedInterfacesOf, unpackInterfaces } from './reported-interfaces.js';

const podThat = (status: unknown) => ({
  metadata: { name: 'p', annotations: { 'k8s.v1.cni.cncf.io/network-status': JSON.stringify(status) } },
});
const reported = (status: unknown) => reportedInterfacesOf(podThat(status));

describe('the addresses that Multus reports for a pod', () => {
  it('belong to the interface of their network; entries that are no texts are left out', () => {
    const status = [
      { name: 'vms/blue', interface: 'net1', ips: ['10.0.0.5', 7] },
      { name: 'vms/red', ips: null },
      { name: 'cbr0', ips: ['10.244.0.9'] },
    ];
    const interfaces = reported(status);
    expect(interfaces).to.deep.equal([
      { nad: 'vms/blue', name: 'net1', ips: ['10.0.0.5'] },
      { nad: 'cbr0', ips: ['10.244.0.9'] },
    ]);
    expect(reportedAddressesOf(interfaces)).to.deep.equal(['10.0.0.5', '10.244.0.9']);
  });

  it('are those of NADs after they were packed, and none if there are none', () => {
    const ofNad = { name: 'vms/blue', interface: 'net1', ips: ['10.0.0.5', 'fd00::5'] };
    const pod = podThat([{ name: 'cbr0', interface: 'eth0', ips: ['10.244.0.9'] }, ofNad]);
    expect(unpackInterfaces(packInterfaces(pod))).to.deep.equal(reported([ofNad]));
    expect(packInterfaces(podThat([]))).to.equal('');
    expect(unpackInterfaces('')).to.deep.equal([]);
    expect(unpackInterfaces(undefined)).to.deep.equal([]);
  });

  it('are cut after 256 of all interfaces, with a last entry that is no address', () => {
    const ips = Array.from({ length: 3_000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`);
    const read = (...counts: number[]) =>
      reportedAddressesOf(reported(counts.map((count) => ({ name: 'b', ips: ips.slice(0, count) }))));
    expect(read(256)).to.deep.equal(ips.slice(0, 256));
    expect(read(128, 128)).to.have.length(256);
    for (const cut of [read(3_000), read(100, 3_000), read(256, 1, 3_000)]) {
      expect(cut).to.have.length(257);
      expect(() => parseAddressOrPrefix(cut[256]!)).to.throw(AddressError);
    }
  });
});
