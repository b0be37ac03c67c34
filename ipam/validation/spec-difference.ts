import { isDeepStrictEqual } from 'node:util';
import type { AddressPoolSpec } from '../../api/address-pool.js';

const SHOWN = 120;

/**
 * The first thing that two NADs of one network say differently, as `addressSpace is "a" there and "b" here`.
 * @returns undefined where they agree
 */
export function describeDifference(there: AddressPoolSpec, here: AddressPoolSpec): string | undefined {
  for (const key of ['addressSpace', 'cooldownSeconds', 'stickyMAC'] as const) {
    if (!isDeepStrictEqual(there[key], here[key])) return sentence(key, there[key], here[key]);
  }
  const count = Math.max(there.subnets.length, here.subnets.length);
  for (let index = 0; index < count; index++) {
    const [theirs, ours] = [there.subnets[index], here.subnets[index]];
    if (!isDeepStrictEqual(theirs, ours)) return sentence(`subnets[${index}]`, theirs, ours);
  }
  return undefined;
}

function sentence(what: string, there: unknown, here: unknown): string {
  return `${what} is ${show(there)} there and ${show(here)} here`;
}

function show(value: unknown): string {
  if (value === undefined) return 'absent';
  const text = JSON.stringify(value);
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`;
}
