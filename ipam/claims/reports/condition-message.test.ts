import { expect } from 'chai';
import { conditionMessage } from './condition-message.js';

describe('the message of a condition', () => {
  for (const [from, to] of [
    ['pool blue is full', 'Pool blue is full'],
    ['NAD vms/blue does not exist', 'NAD vms/blue does not exist'],
  ] as const)
    it(`begins with a capital: ${to}`, () => expect(conditionMessage(from)).to.equal(to));

  for (const text of [
    'fd00::5 is allocated to IPAMClaim vms/a',
    'ipam.holdfast.dev/requested-addresses: the list is empty',
    'status.ips: "x" is not an IP address',
  ])
    it(`keeps a field or address at its beginning: ${text}`, () => expect(conditionMessage(text)).to.equal(text));
});
