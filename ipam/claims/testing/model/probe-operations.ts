import fc from 'fast-check';
import type { AddressLease } from '../../../../api/address-lease.js';
import { PROBE_ANNOTATION } from '../../../../api/names.js';
import { type ProbeState, formatProbe, readProbe } from '../../../../api/probe.js';
import type { IpamWorld } from './world.js';

/** A responder answers for one of the addresses that are to be probed. */
export interface ProbeOperation {
  do: 'answer';
  index: number;
  answer: Exclude<ProbeState, 'requested' | 'skipped'>;
}

const HOSTS = ['0a', '0b', '0c', '0d', '0e'].map((last) => `02:00:00:00:00:${last}`);

export const probeOperation: fc.Arbitrary<ProbeOperation> = fc.record({
  do: fc.constant('answer' as const),
  index: fc.nat({ max: 9 }),
  answer: fc.oneof(fc.constantFrom('free' as const, 'self' as const), {
    weight: 3,
    arbitrary: fc.constantFrom(...HOSTS).map((taken) => ({ taken })),
  }),
});

export function isProbeRequested({ metadata, spec }: AddressLease): boolean {
  return spec.owner !== undefined && spec.releasedAt === undefined && readProbe(metadata) === 'requested';
}

export function applyProbeOperation(world: IpamWorld, { index, answer }: ProbeOperation): void {
  const leases = world.list('addressleases').filter(isProbeRequested);
  const lease = leases[index % Math.max(leases.length, 1)];
  if (lease === undefined) return;
  world.update('addressleases', lease.metadata.name, ({ metadata }) => {
    metadata.annotations = { ...metadata.annotations, [PROBE_ANNOTATION]: formatProbe(answer) };
  });
}
