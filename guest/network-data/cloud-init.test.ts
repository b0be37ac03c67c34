import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { messageOf } from '../../kube/errors.js';
import { reportSkipped } from '../../test/report-skipped.js';
import { guestInterfacesOf } from '../interfaces.js';
import { shownAddresses } from '../leased-addresses.js';
import { type GivenInterface, GuestWorld, guestSpec, guestWorkload } from '../testing/guest-world.js';
import { networkDataOf } from './plan.js';
import type { NetworkDataFormat } from './request.js';
import { CloudInit, textsIn } from './testing/cloud-init.js';

const POD: GivenInterface = { name: 'default', nad: 'pod', macAddress: '02:00:00:00:00:01' };
/** Digits only: YAML 1.1 reads such a text as a number, unless it is quoted. */
const DATA: GivenInterface = { name: 'data', nad: 'data', macAddress: '52:54:00:12:34:56' };
const NAMES = { [POD.macAddress ?? '']: 'eth0', [DATA.macAddress ?? '']: 'eth1' };

/** What each renderer must have written, in both formats. The gateways are the default routes. */
const EXPECTED: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  eni: [
    ...['address 10.1.0.5/24', 'address fd00:1::5/64', 'mtu 1400', 'dns-search example.com'],
    ...['route add -net 10.8.0.0/16 gw 10.1.0.254', 'route add -A inet6 fd00:8::/48 gw fd00:1::fe'],
    ...[
      /^ +gateway 10\.1\.0\.1$|route add default gw 10\.1\.0\.1 /m,
      /^ +gateway fd00:1::1$|inet6 default gw fd00:1::1 /m,
    ],
    'dns-nameservers 10.9.0.53 fd00:9::53',
  ],
  netplan: [
    ...[
      '- 10.1.0.5/24',
      '- fd00:1::5/64',
      'mtu: 1400',
      '- 10.9.0.53',
      '- fd00:9::53',
      '- example.com',
      'accept-ra: false',
    ],
    ...[/to: 10\.8\.0\.0\/16\n +via: 10\.1\.0\.254$/m, /to: fd00:8::\/48\n +via: fd00:1::fe$/m],
    ...[
      /gateway4: 10\.1\.0\.1$|to: 0\.0\.0\.0\/0\n +via: 10\.1\.0\.1$/m,
      /gateway6: fd00:1::1$|to: ::\/0\n +via: fd00:1::1$/m,
    ],
  ],
  networkd: [
    ...[
      'Address=10.1.0.5/24',
      'Address=fd00:1::5/64',
      'MTUBytes=1400',
      'DNS=10.9.0.53 fd00:9::53',
      'Domains=example.com',
    ],
    ...[/Destination=10\.8\.0\.0\/16\n+Gateway=10\.1\.0\.254$/m, /Destination=fd00:8::\/48\n+Gateway=fd00:1::fe$/m],
    ...[/(0\.0\.0\.0\/0\n+|\[Route\]\n)Gateway=10\.1\.0\.1$/m, /(=::\/0\n+|\[Route\]\n)Gateway=fd00:1::1$/m],
  ],
  'network-manager': [
    ...['address1=10.1.0.5/24', 'address1=fd00:1::5/64', 'mtu=1400', 'dns-search=example.com;'],
    ...['dns=10.9.0.53;', 'dns=fd00:9::53;', /=10\.8\.0\.0\/16,10\.1\.0\.254$/m, /=fd00:8::\/48,fd00:1::fe$/m],
    ...[/^gateway=10\.1\.0\.1$|=0\.0\.0\.0\/0,10\.1\.0\.1$/m, /^gateway=fd00:1::1$|=::\/0,fd00:1::1$/m],
  ],
  sysconfig: [
    ...['IPV6ADDR=fd00:1::5/64', 'NETMASK=255.255.255.0', 'MTU=1400'],
    ...[
      'IPADDR=10.1.0.5',
      'GATEWAY=10.1.0.1',
      'IPV6_DEFAULTGW=fd00:1::1',
      'nameserver 10.9.0.53',
      'nameserver fd00:9::53',
    ],
    ...[
      'ADDRESS0=10.8.0.0\nGATEWAY0=10.1.0.254\nNETMASK0=255.255.0.0',
      'fd00:8::/48 via fd00:1::fe  dev eth1',
      'DOMAIN=example.com',
    ],
  ],
};
/** The files of systemd-networkd that netplan writes for the interface. */
const GENERATED = [
  ...[
    'MACAddress=52:54:00:12:34:56',
    'Address=10.1.0.5/24',
    'Address=fd00:1::5/64',
    'IPv6AcceptRA=no',
    'MTUBytes=1400',
  ],
  ...['DNS=10.9.0.53', 'DNS=fd00:9::53', 'Domains=example.com'],
  ...['Destination=10.8.0.0/16\nGateway=10.1.0.254', 'Destination=fd00:8::/48\nGateway=fd00:1::fe'],
];
const FORMATS = { 'version-2': 'yaml', openstack: 'network_data.json' } as const;

describe('network data that cloud-init reads', function () {
  this.timeout(120_000);
  let folder: string;
  let cloudInit: CloudInit;

  before(async function () {
    try {
      cloudInit = await CloudInit.get();
    } catch (error) {
      reportSkipped(`cloud-init and netplan of a Debian or Ubuntu cannot be downloaded: ${messageOf(error)}`);
      return this.skip();
    }
    folder = await mkdtemp(join(tmpdir(), 'holdfast-cloud-init-'));
    const jobs = (Object.keys(FORMATS) as NetworkDataFormat[]).flatMap((format) =>
      Object.keys(EXPECTED).map((renderer) => ({
        ...{ file: join(folder, format), kind: FORMATS[format], renderer },
        // cloud-init's renderer for sysconfig fails for Ubuntu
        distro: renderer === 'sysconfig' ? 'fedora' : 'ubuntu',
        out: join(folder, `${format}-${renderer}`),
      })),
    );
    for (const format of Object.keys(FORMATS) as NetworkDataFormat[])
      await writeFile(join(folder, format), networkData(format));
    await cloudInit.convert(NAMES, jobs);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  for (const format of Object.keys(FORMATS)) {
    for (const [renderer, expected] of Object.entries(EXPECTED)) {
      it(`configures addresses, routes, DNS and MTU by ${renderer}, from the format ${format}`, async () => {
        const text = await textsIn(join(folder, `${format}-${renderer}`));
        expect(text).to.include('52:54:00:12:34:56');
        for (const each of expected) {
          if (typeof each === 'string') expect(text).to.include(each);
          else expect(text).to.match(each);
        }
      });
    }

    it(`makes netplan generate one default route of each family, from the format ${format}`, async () => {
      const root = join(folder, `${format}-generated`);
      await mkdir(join(root, 'etc'), { recursive: true });
      await cp(join(folder, `${format}-netplan`, 'etc/netplan'), join(root, 'etc/netplan'), { recursive: true });
      await cloudInit.generate(root);
      const text = await textsIn(join(root, 'run/systemd/network'));
      for (const each of GENERATED) expect(text).to.include(each);
      const gateways = [...text.matchAll(/^(?:Destination=(.*)\n)?Gateway=(.*)$/gm)];
      const defaults = gateways.filter(([, destination = '0.0.0.0/0']) => /^(0\.0\.0\.0|::)\/0$/.test(destination));
      expect(defaults.map(([, , gateway]) => gateway)).to.deep.equal(['10.1.0.1', 'fd00:1::1']);
      expect(text.match(/^DHCP=yes$/gm)?.length ?? 0).to.equal(text.match(/^UseRoutes=false$/gm)?.length ?? 0);
    });
  }
});

function networkData(format: NetworkDataFormat): string {
  const world = new GuestWorld();
  const guest = {
    dns: { nameservers: ['10.9.0.53', 'fd00:9::53'], search: ['example.com'] },
    routes: [
      { destination: '10.8.0.0/16', gateway: '10.1.0.254' },
      { destination: 'fd00:8::/48', gateway: 'fd00:1::fe' },
    ],
    mtu: 1400,
  };
  const subnets = [
    { cidr: '10.1.0.0/24', gateway: '10.1.0.1' },
    { cidr: 'fd00:1::/64', gateway: 'fd00:1::1' },
  ];
  world.addNetwork('data', subnets, guest);
  world.addClaim('data', ['10.1.0.5/24', 'fd00:1::5/64']);
  // the other format cannot say that DHCP brings no default route
  const given = format === 'openstack' ? [DATA] : [POD, DATA];
  const interfaces = guestInterfacesOf(guestWorkload(guestSpec(given)), world.view);
  const plan = networkDataOf({ interfaces, defaultRoute: 'data', format, addressesOf: shownAddresses });
  if (plan.kind !== 'ready') throw new Error(plan.message);
  return plan.text;
}
