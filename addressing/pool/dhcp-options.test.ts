import { expect } from 'chai';
import type { GuestDhcpOption, GuestOptions } from '../../api/address-pool.js';
import { compilePool } from './pool.js';

function compile(options: unknown, optionsV6?: unknown) {
  const guest = { attachment: 'blue', dhcp: { options, optionsV6 } } as GuestOptions;
  const subnets = [{ cidr: '10.1.0.0/24' }];
  return compilePool({ metadata: { name: 'blue' }, spec: { network: 'blue', subnets, guest } });
}

const option = (code: number, type: string, value: string) => ({ code, type: type as GuestDhcpOption['type'], value });

describe('DHCP options of a pool', () => {
  it('are encoded by their type', () => {
    const result = compile([
      option(43, 'hex', '0104'),
      option(66, 'text', 'boot'),
      option(150, 'addresses', '10.1.0.8,10.1.0.9'),
      option(23, 'uint8', '64'),
      option(25, 'uint16', '256'),
      option(24, 'uint32', '4294967295'),
    ]);
    const options = result.ok ? result.pool.guest?.dhcp?.options : undefined;
    expect(options?.map(({ code, value }) => `${code} ${value}`)).to.deep.equal([
      ...['43 0104', '66 626f6f74', '150 0a0100080a010009', '23 40', '25 0100', '24 ffffffff'],
    ]);
  });

  it('of DHCPv6 have IPv6 addresses and two bytes for a code', () => {
    const optionsV6 = [option(22, 'addresses', 'fd00:1::1,fd00:1::2'), option(103, 'text', 'http://login')];
    const result = compile(undefined, optionsV6);
    const found = result.ok ? result.pool.guest?.dhcp?.optionsV6 : undefined;
    expect(found).to.deep.equal([
      { code: 22, value: 'fd000001000000000000000000000001fd000001000000000000000000000002' },
      { code: 103, value: Buffer.from('http://login').toString('hex') },
    ]);
    for (const [wrong, part] of [
      [option(23, 'hex', '00'), 'optionsV6[0].code: 23 is not a code from 17 to 65535'],
      [option(16, 'hex', '00'), 'optionsV6[0].code'],
      [option(22, 'addresses', '10.1.0.1'), 'optionsV6[0].value'],
    ] as const) {
      const refused = compile(undefined, [wrong]);
      const problems = refused.ok ? [] : refused.problems.map(({ field, message }) => `${field}: ${message}`);
      expect(problems.join()).to.include(part);
    }
  });

  for (const [title, given, part] of [
    ['that responders compute', [option(54, 'hex', '0a010001')], 'options[0].code: 54 is not a code'],
    ['without a code', [{ type: 'hex', value: '01' }], 'options[0].code'],
    ['with one code', [option(66, 'text', 'a'), option(66, 'text', 'b')], 'options[1]: has the code 66'],
    ['of an unknown type', [option(66, 'float', '1')], 'options[0].value: "1" is not of the type "float"'],
    ['with a type of JavaScript', [option(66, 'constructor', '1')], 'options[0].value'],
    ['with half a byte', [option(43, 'hex', '010')], 'options[0].value'],
    ['with a line break', [option(66, 'text', 'a\nb')], 'options[0].value'],
    ['with an IPv6 address', [option(150, 'addresses', 'fd00:1::1')], 'options[0].value'],
    ['with a number that is too large', [option(23, 'uint8', '256')], 'options[0].value'],
    ['that are too long in all', [66, 67, 64].map((code) => option(code, 'text', 'a'.repeat(255))), '765 characters'],
    ['that are no list', { 66: 'a' }, 'options'],
  ] as const) {
    it(`are refused ${title}`, () => {
      const result = compile(given);
      const problems = result.ok ? [] : result.problems.map(({ field, message }) => `${field}: ${message}`);
      expect(problems.join('\n')).to.include(part).and.include('spec.guest.dhcp.options');
    });
  }
});
