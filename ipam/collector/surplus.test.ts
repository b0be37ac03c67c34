import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { LeakWorld } from './testing/leak-world.js';
import { parseAddress } from '../core/address.js';
import { type LeaseRecord, readLease } from '../core/lease.js';
import { surplusProof } from './surplus.js';

const REQUESTED = 'ipam.holdfast.dev/requested-addresses';

interface Row {
  name: string;
  /** The lease in question is the first. */
  leases: string[];
  ips: string[];
  requested?: string;
  reports?: string[][];
  deleting?: boolean;
  change?: (siblings: LeaseRecord[]) => void;
  /** The address of the voucher. */
  expect: string | undefined;
}

describe('a lease of a living claim', () => {
  const rows: Row[] = [
    {
      name: 'is surplus where the status names another one',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      expect: '10.0.0.5',
    },
    {
      name: 'is needed where the status names it',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.6/24'],
      expect: undefined,
    },
    {
      name: 'is needed where the status names it in other words',
      leases: ['2001:db8::6', '2001:db8::5'],
      ips: ['2001:0DB8:0::6/64', '2001:db8::5/64'],
      expect: undefined,
    },
    { name: 'is needed where it is the only one', leases: ['10.0.0.6'], ips: ['10.0.0.5/24'], expect: undefined },
    {
      name: 'is surplus where the status names none of its family, but another one',
      leases: ['2001:db8::6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      expect: '10.0.0.5',
    },
    {
      name: 'is needed where it is the only one of its family, and the status names another of that',
      leases: ['2001:db8::6', '10.0.0.5'],
      ips: ['10.0.0.5/24', '2001:db8::7/64'],
      expect: undefined,
    },
    {
      name: 'is needed while a pod has it besides one of another family',
      leases: ['2001:db8::6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      reports: [['10.0.0.5', '2001:db8::6']],
      expect: undefined,
    },
    {
      name: 'is needed while the status names none that there is',
      leases: ['10.0.0.6', '10.0.0.7'],
      ips: ['10.0.0.5/24'],
      expect: undefined,
    },
    { name: 'is needed while the status is empty', leases: ['10.0.0.6', '10.0.0.5'], ips: [], expect: undefined },
    {
      name: 'is needed while the claim asks for it: the status will follow',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      requested: '["10.0.0.6/24"]',
      expect: undefined,
    },
    {
      name: 'is surplus where the claim asks for another one',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      requested: '["10.0.0.5"]',
      expect: '10.0.0.5',
    },
    {
      name: 'is needed while a pod has it',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      reports: [['10.0.0.5'], ['10.0.0.5', '10.0.0.6']],
      expect: undefined,
    },
    {
      name: 'is needed while a pod does not say that it has the other one',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      reports: [['10.0.0.5'], []],
      expect: undefined,
    },
    {
      name: 'is needed while what a pod says cannot be read',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      reports: [['10.0.0.5', 'x']],
      expect: undefined,
    },
    {
      name: 'is surplus where all pods have the other one',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      reports: [['192.168.0.7', '10.0.0.5'], ['10.0.0.5']],
      expect: '10.0.0.5',
    },
    {
      name: 'is needed while the claim is being deleted, which keeps all it has',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      deleting: true,
      expect: undefined,
    },
    {
      name: 'is needed where the other one is released',
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      change: ([, other]) => (other!.releasedAt = 1),
      expect: undefined,
    },
    {
      name: "is needed where the other one is another claim's",
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      change: ([, other]) => (other!.owner!.uid = 'another'),
      expect: undefined,
    },
    ...['10.0.0.5/33', 'x'].map((ip) => ({
      name: `is needed where the status holds ${ip}`,
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24', ip],
      expect: undefined,
    })),
    ...['[', '{}', '[7]', '["010.0.0.1"]'].map((requested) => ({
      name: `is needed where the request is ${requested}`,
      leases: ['10.0.0.6', '10.0.0.5'],
      ips: ['10.0.0.5/24'],
      requested,
      expect: undefined,
    })),
  ];
  for (const row of rows) {
    it(row.name, () => {
      const world = new LeakWorld();
      const claim: IPAMClaim = world.addClaim('c', row.ips);
      if (row.requested !== undefined) claim.metadata.annotations = { [REQUESTED]: row.requested };
      if (row.deleting) claim.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
      const siblings = row.leases.map((address) => readLease(world.addLease(address, claim)));
      row.change?.(siblings);
      const voucher = surplusProof(siblings[0]!, {
        claim,
        claimLeases: siblings,
        reportedAddresses: row.reports ?? [],
      });
      expect(voucher?.address).to.deep.equal(row.expect && parseAddress(row.expect));
    });
  }
});
