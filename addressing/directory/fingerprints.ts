import type { AddressPool } from '../../api/address-pool.js';
import { shortHash } from '../../api/names.js';
import { type KubeObject, objectKey } from '../../api/meta.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { EvaluatedPool } from './pool-state.js';

/** Equal fingerprints mean that nothing changed for claims. */

const ofNads = new WeakMap<ParsedNad, string>();

export function nadFingerprint(nad: ParsedNad): string {
  const known = ofNads.get(nad);
  if (known !== undefined) return known;
  const { metadata, delegation, delivery, guestOptions, segment } = nad;
  const { uid, creationTimestamp } = metadata;
  // it is only compared, so a short hash is enough
  const parts = [objectKey(nad), uid, creationTimestamp, delegation, delivery, guestOptions, segment];
  const fingerprint = shortHash(JSON.stringify(parts), 32);
  ofNads.set(nad, fingerprint);
  return fingerprint;
}

/** True if a change of a pool only concerns its status or bookkeeping. */
export function isStatusChange(before: KubeObject, after: KubeObject): boolean {
  if (!('spec' in before && 'spec' in after)) return false;
  return poolFingerprint(before as AddressPool) === poolFingerprint(after as AddressPool);
}

/** Returns a text of everything in a pool that affects others. */
export function poolFingerprint({ metadata, spec }: AddressPool): string {
  const { name, uid, creationTimestamp, deletionTimestamp, annotations } = metadata;
  return JSON.stringify([name, uid, creationTimestamp, deletionTimestamp, annotations, spec]);
}

/** Returns the fingerprint of a pool with its state, to be serialized. */
export function evaluationFingerprint(pool: EvaluatedPool): unknown {
  const { name, uid, nadNamespace, namespaces, state, compiled } = pool;
  const described = state.kind === 'served' ? state.kind : state.message;
  return [name, uid, nadNamespace, namespaces, described, serialOf(compiled)];
}

const serials = new WeakMap<object, number>();
let lastSerial = 0;

/** Returns a number that identifies a parse result. */
function serialOf(compiled: object): number {
  const serial = serials.get(compiled) ?? ++lastSerial;
  serials.set(compiled, serial);
  return serial;
}
