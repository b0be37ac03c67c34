import { expect } from 'chai';
import type { VirtualMachineInstance, VmDhcpOptions, VmiSpec } from '../api/kubevirt.js';
import { MAX_IGNORED, boundedDhcpOptions, vmDhcpOf } from './dhcp-options.js';

function vmi(dhcpOptions?: VmDhcpOptions, spec: VmiSpec = {}, name = 'web'): VirtualMachineInstance {
  const given = dhcpOptions && { dhcpOptions: boundedDhcpOptions(dhcpOptions) };
  return {
    metadata: { name, namespace: 'a' },
    spec: { ...spec, domain: { devices: { interfaces: [{ name: 'blue', ...given }, { name: 'green' }] } } },
  };
}

const ofBlue = (options: VmDhcpOptions) => vmDhcpOf(vmi(options), 'blue');
const hex = (text: string) => Buffer.from(text).toString('hex');

describe('DHCP options of a VM', () => {
  it('are given in the options that KubeVirt uses, for their own interface alone', () => {
    const options = {
      bootFileName: 'net.efi',
      tftpServerName: 'boot.example.org',
      ntpServers: ['10.1.0.1', '10.1.0.2'],
      privateOptions: [{ option: 240, value: 'extra' }],
    };
    const { options: given, ignored } = ofBlue(options);
    expect(given).to.deep.equal([
      { code: 67, value: hex('net.efi') },
      { code: 66, value: hex('boot.example.org') },
      { code: 42, value: '0a0100010a010002' },
      { code: 240, value: hex('extra') },
    ]);
    expect(ignored).to.deep.equal([]);
    expect(vmDhcpOf(vmi(options), 'green').options).to.deep.equal([]);
  });

  it('are left out one by one with a reason, and the others are given', () => {
    const { options, ignored } = ofBlue({
      bootFileName: 'b'.repeat(256),
      tftpServerName: 't'.repeat(255),
      ntpServers: ['fd00::1', '10.1.0.1'],
      privateOptions: [
        { option: 223, value: 'x' },
        { option: 249, value: 'x' },
        { option: 224, value: 'x' },
        { option: 224, value: 'y' },
        { option: 225, value: 'z'.repeat(250) },
      ],
    });
    expect(options.map(({ code }) => code)).to.deep.equal([66, 42, 224]);
    expect(ignored).to.deep.equal([
      'bootFileName is longer than 255 bytes',
      'ntpServers "fd00::1" is not an IPv4 address',
      'privateOptions 223 is not 224 to 254',
      'privateOptions 249 has the routes of the network',
      'privateOptions 224 is there twice',
      'privateOptions 225 makes all longer than 512 bytes',
    ]);
  });

  it('are read from the first 64 NTP servers, and 8 problems are named and the others counted', () => {
    const { options, ignored } = ofBlue({ ntpServers: [...Array.from({ length: 329 }, () => ''), '10.1.0.1'] });
    expect(options).to.deep.equal([]);
    expect(ignored).to.have.length(MAX_IGNORED + 1);
    expect(ignored.slice(0, 2)).to.deep.equal([
      'ntpServers has more than 64 items',
      'ntpServers "" is not an IPv4 address',
    ]);
    expect(ignored.at(-1)).to.equal('and 57 more');
    const ntpServers = Array.from({ length: 63 }, (_, index) => `10.1.0.${index}`);
    expect(ofBlue({ ntpServers })).to.deep.include({ ignored: [] });
    expect(ofBlue({ ntpServers: [...ntpServers, '1.1.1.1'] })).to.deep.include({
      options: [],
      ignored: ['ntpServers is longer than 255 bytes'],
    });
  });

  it('are not kept in memory if they are much longer than what a guest can get', () => {
    const privateOptions = Array.from({ length: 31 }, (_, index) => ({ option: 224 + index, value: 'x'.repeat(255) }));
    const bounded = boundedDhcpOptions({ privateOptions });
    expect(JSON.stringify(bounded).length).to.be.lessThan(1024);
    expect(ofBlue({ privateOptions })).to.deep.include({
      options: [],
      ignored: ['all of them together are longer than 1024 characters'],
    });
  });
});

describe('The hostname of a guest', () => {
  for (const [title, spec, name, hostname, prefix] of [
    ['is the name of the VM', {}, 'web', 'web', 'web'],
    ['ends at the first dot of the name', {}, 'web.old', 'web', 'web'],
    ['is cut to 63 bytes, without a hyphen at the end', {}, `${'w'.repeat(62)}-x`, 'w'.repeat(62), 'w'.repeat(62)],
    ['is that of the spec, with the subdomain', { hostname: 'db', subdomain: 'sub' }, 'web', 'db', 'db.sub'],
    ['has all labels of the subdomain', { hostname: 'db', subdomain: 'sub.prod' }, 'web', 'db', 'db.sub.prod'],
    ['is without a subdomain that is no domain', { hostname: 'db', subdomain: 'sub..prod' }, 'web', 'db', 'db'],
    ['is absent if it is no label', { hostname: 'a b' }, 'web', undefined, undefined],
  ] as const) {
    it(title, () => {
      const found = vmDhcpOf(vmi(undefined, spec, name), 'blue');
      expect([found.hostname, found.prefix]).to.deep.equal([hostname, prefix]);
    });
  }
});
