import { describeValue } from '../../../api/json.js';
import { SHARED_ADDRESSES_ANNOTATION } from '../../../api/names.js';
import { GUARD_LIMITS } from '../../../api/limits.js';
import { type Address, readAllAddresses } from '../../../addressing/address/address.js';
import type { PoolGuard } from '../../../addressing/pool/guard.js';
import { CniCode, CniError } from '../cni-error.js';
import type { NodePod } from '../node-pods.js';
import type { AllowedSenders } from './claim-rules.js';

/** The longest IPv6 address, with quotes, a comma and a space. */
const MAX_TEXT_LENGTH = GUARD_LIMITS.addresses * 49;

/**
 * Returns what a pool allows to an interface besides its own addresses: to all, to its claim, or because its pod requests it.
 * @param claim `namespace/name`
 * @throws {CniError} 100 if the request is invalid
 */
export function allowedSenders({ allow }: PoolGuard, claim: string | undefined, pod: NodePod): AllowedSenders {
  const ofClaim = allow.filter(({ claims }) => claims === undefined || (claim !== undefined && claims.has(claim)));
  const requested = ofClaim.some(({ onRequest }) => onRequest === true) ? requestedBy(pod) : [];
  const allowed = ofClaim.flatMap(({ onRequest, addresses, macs }) => {
    if (onRequest !== true) return [{ addresses, macs }];
    const within = requested.filter(({ family, value }) =>
      addresses.some((range) => range.family === family && range.first <= value && value <= range.last),
    );
    const single = within.map(({ family, value }) => ({ family, first: value, last: value }));
    return single.length === 0 ? [] : [{ addresses: single, macs }];
  });
  return { addresses: allowed.flatMap(({ addresses }) => addresses), macs: allowed.flatMap(({ macs }) => macs) };
}

/** KubeVirt copies the annotations of a VM's template to its launcher pods. */
function requestedBy({ metadata: { annotations } }: NodePod): readonly Address[] {
  const text = annotations?.[SHARED_ADDRESSES_ANNOTATION];
  if (text === undefined) return [];
  const addresses = parseList(text);
  if (addresses !== undefined) return addresses;
  throw new CniError(
    CniCode.Refused,
    `annotation ${SHARED_ADDRESSES_ANNOTATION}: ${describeValue(text)} is not a JSON list of at most ${GUARD_LIMITS.addresses} addresses: ` +
      'write it like ["10.1.0.100"] into the template of the VM, and start the VM again',
  );
}

function parseList(text: string): readonly Address[] | undefined {
  if (text.length > MAX_TEXT_LENGTH) return undefined;
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) && list.length <= GUARD_LIMITS.addresses ? readAllAddresses(list) : undefined;
  } catch {
    return undefined;
  }
}
