import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { compiledPool } from '../../addressing/directory/pool-state.js';
import { isServingNamespace } from '../../addressing/directory/resolution.js';
import { bridgeAddressProblems } from '../../addressing/pool/bridge-address.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { readNadIpamConfig } from './nad-pool.js';
import type { ValidationResult, ValidationView } from './review.js';

interface WrittenNad {
  readonly written: NetworkAttachmentDefinition;
  readonly parsed: ParsedNad;
}

/** Refuses a NAD whose pool allocates an address that the plugin `bridge` takes. The pool of an administrator can be corrected later. */
export function* reviewBridge(
  nad: WrittenNad,
  oldNad: WrittenNad | undefined,
  view: ValidationView,
): Generator<undefined, ValidationResult> {
  const { isOwn, pool } = poolOf(nad.parsed, view);
  const problems = pool === undefined ? [] : bridgeAddressProblems(nad.written, pool);
  yield;
  const before = oldNad && poolOf(oldNad.parsed, view).pool;
  const known = oldNad && before ? bridgeAddressProblems(oldNad.written, before) : [];
  const isNew = (text: string) => isOwn && !known.includes(text);
  return {
    refusals: problems.filter(isNew).map((message) => ({ check: 'delegation', message })),
    warnings: problems.filter((text) => !isNew(text)),
  };
}

/** Returns the pool that serves the NAD's own namespace, and whether it is derived from the NAD. */
function poolOf(nad: ParsedNad, { networks, rightsOf }: ValidationView): { isOwn: boolean; pool: Pool | undefined } {
  const { namespace = '' } = nad.metadata;
  const pools = nad.config.ok ? networks.poolsOf(nad.config.network.name) : [];
  const admin = pools.find((pool) => pool.nadNamespace === undefined && isServingNamespace(pool, namespace));
  if (admin !== undefined) return { isOwn: false, pool: compiledPool(admin) };
  const config = readNadIpamConfig(nad, rightsOf);
  return { isOwn: true, pool: config.kind === 'pool' ? config.requested.served : undefined };
}
