import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { bridgeAddressProblems } from '../../addressing/pool/bridge-address.js';
import { servingPool } from './nad-pool.js';
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
  const { isOwn, pool } = servingPool(nad.parsed, view);
  const problems = pool === undefined ? [] : bridgeAddressProblems(nad.written, pool);
  yield;
  const before = oldNad && servingPool(oldNad.parsed, view).pool;
  const known = oldNad && before ? bridgeAddressProblems(oldNad.written, before) : [];
  const isNew = (text: string) => isOwn && !known.includes(text);
  return {
    refusals: problems.filter(isNew).map((message) => ({ check: 'delegation', message })),
    warnings: problems.filter((text) => !isNew(text)),
  };
}
