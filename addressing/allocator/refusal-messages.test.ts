import { expect } from 'chai';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { poolFullMessage } from './refusal-messages.js';

describe('the message about a pool that allocates no address without a request', () => {
  const cases = {
    'ranges, exclude and gateway of its subnets leave no address': [
      { cidr: '10.0.0.0/24', exclude: ['10.0.0.0/24'] },
      { cidr: '10.0.0.1/32', gateway: '10.0.0.1' },
    ],
    'all of its addresses are draining': [{ cidr: '10.0.0.0/24', draining: ['10.0.0.0/24'] }],
    'its addresses are only for workloads that request one': [
      { cidr: '10.0.0.0/24', reserved: ['10.0.0.0/24'] },
      { cidr: '10.0.0.0/24', reserved: ['10.0.0.0/28'], draining: ['10.0.0.16-10.0.0.255'] },
    ],
  };
  for (const [reason, subnets] of Object.entries(cases)) {
    it(`says that ${reason}`, () => {
      for (const subnet of subnets) {
        const message = poolFullMessage(compiledPool({ subnets: [subnet] }), 4, {
          size: 0n,
          cooling: 0,
          heldByStopped: 0,
        });
        expect(message).to.equal(`pool blue is full: ${reason}`);
      }
    });
  }
});
