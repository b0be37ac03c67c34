// Addresses for property tests.
import fc from 'fast-check';
import type { Address } from '../address/address.js';

/** With many zeros, for runs of them are what can be written in many ways. */
const group = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  fc.constantFrom(1, 0xff, 0x100, 0xffff),
  fc.integer({ min: 0, max: 0xffff }),
);

/** The eight groups of an IPv6 address. */
export const ipv6Groups: fc.Arbitrary<number[]> = fc.oneof(
  fc.array(group, { minLength: 8, maxLength: 8 }),
  fc.tuple(group, group).map((tail) => [0, 0, 0, 0, 0, 0xffff, ...tail]),
);

export const anyAddress: fc.Arbitrary<Address> = fc.oneof(
  fc.integer({ min: 0, max: 0xffffffff }).map((value): Address => ({ family: 4, value: BigInt(value) })),
  ipv6Groups.map((groups): Address => ({
    family: 6,
    value: groups.reduce((value, next) => (value << 16n) | BigInt(next), 0n),
  })),
);
