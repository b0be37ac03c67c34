import { expect } from 'chai';
import type { GuestBootFile, GuestOptions } from '../../api/address-pool.js';
import { compilePool } from './pool.js';

function compile(boot: unknown) {
  const guest = { attachment: 'blue', dhcp: { boot } } as GuestOptions;
  const subnets = [{ cidr: '10.1.0.0/24' }];
  return compilePool({ metadata: { name: 'blue' }, spec: { network: 'blue', subnets, guest } });
}

function boot(...files: GuestBootFile[]) {
  const result = compile(files);
  return result.ok ? result.pool.guest?.dhcp?.boot : undefined;
}

describe('Boot files of a pool', () => {
  it('have the same URL in both protocols', () => {
    const file = 'http://boot.example/a.efi';
    expect(boot({ ipxe: true, file }, { architectures: [16], file })).to.deep.equal([
      { ipxe: true, file, url: file },
      { architectures: [16], file, url: file },
    ]);
  });

  it('are a path in DHCPv4 and a URL of TFTP in DHCPv6, each with a server of its family', () => {
    const file = '/boot/a.efi';
    const [server, server6, url] = ['10.1.0.8', 'fd00:1::8', 'tftp://[fd00:1::8]/boot/a.efi'];
    expect(
      boot(
        { servers: [server6, server], file, parameters: ['a b'] },
        { servers: [server], file },
        { servers: [server6], file },
      ),
    ).to.deep.equal([{ server, file, url, parameters: ['a b'] }, { server, file }, { url }]);
  });

  for (const [title, given, part] of [
    ['without a file', {}, 'boot[0].file: absent is not a path or URL'],
    ['with a space', { file: 'http://a b' }, 'boot[0].file'],
    ['with a file that is too long', { file: 'a'.repeat(256) }, 'boot[0].file'],
    ['with a path but no server', { file: 'a.efi' }, 'boot[0].servers: is empty: name the TFTP server that has a.efi'],
    ['with the name of a server', { file: 'a.efi', servers: ['tftp.example'] }, 'boot[0].servers[0]: '],
    ['with a group as its server', { file: 'a.efi', servers: ['ff02::1'] }, 'ff02::1 is not the address of a host'],
    ['with two servers of one family', { file: 'a.efi', servers: ['10.1.0.8', '10.1.0.9'] }, 'two addresses of one'],
    [
      'for an architecture that is no number',
      { file: 'a://b', architectures: ['x64'] },
      'boot[0].architectures[0]: "x64"',
    ],
    ['for too many architectures', { file: 'a://b', architectures: [1, 2, 3, 4, 5, 6, 7, 8, 9] }, 'at most 8'],
    ['with a line break in a parameter', { file: 'a://b', parameters: ['a\n'] }, 'boot[0].parameters[0]'],
    ['with a word for iPXE', { file: 'a://b', ipxe: 'yes' }, 'boot[0].ipxe: "yes" is neither true nor false'],
  ] as const) {
    it(`are refused ${title}`, () => {
      const result = compile([given]);
      const problems = result.ok ? [] : result.problems.map(({ field, message }) => `${field}: ${message}`);
      expect(problems.join('\n')).to.include(`spec.guest.dhcp.boot[0]`).and.include(part);
    });
  }
});
