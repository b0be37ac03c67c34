import { describeValue, isRecord } from '../../api/json.js';
import { GUARD_LIMITS } from '../../api/limits.js';
import { parseMac } from '../../api/mac-address.js';
import type { Family } from '../address/address.js';
import { parseRange } from '../address/cidr.js';
import type { Range } from '../address/ranges.js';
import { type FieldValue, type PoolProblems, isAbsent } from './pool-problems.js';

/** The filter of the interfaces of a pool. */
export interface PoolGuard {
  readonly mode: 'Observe' | 'Enforce';
  /** The target of a migration sends nothing until the guest has moved. */
  readonly holdsMigrations: boolean;
  readonly allow: readonly AllowedTraffic[];
}

/** What interfaces may use besides their own addresses. */
interface AllowedTraffic {
  readonly addresses: readonly (Range & { readonly family: Family })[];
  /** Lower case, with colons. */
  readonly macs: readonly string[];
  /** `namespace/name`; absent: all interfaces of the pool. */
  readonly claims?: ReadonlySet<string>;
  /** Only the addresses that a pod requests. */
  readonly onRequest?: true;
}

const FIELD = 'spec.guard';
const OFF = 'Off';
/** The lowest bit of the first byte of a MAC address: it is that of a group. */
const GROUP_BIT = 1;

/** @returns an empty object if there is no filter. A value that cannot be read is a problem, never "Off". */
export function readGuard(value: unknown, problems: PoolProblems): { readonly guard?: PoolGuard } {
  const fields = problems.readOptionalObject({ field: FIELD, value }, '{mode: Enforce}');
  if (fields === undefined) return {};
  const { mode = OFF, migrationHold, allow } = fields;
  const holdsMigrations = problems.readFlag(`${FIELD}.migrationHold`, migrationHold ?? true);
  const places = problems.readList(`${FIELD}.allow`, allow, GUARD_LIMITS.allow);
  const allowed = places.map((place) => readAllowed(place, problems));
  if (mode === OFF) {
    if (allowed.length > 0)
      problems.add(`${FIELD}.allow`, 'has no effect while mode is Off: set mode, or remove allow');
    return {};
  }
  if (mode === 'Observe' || mode === 'Enforce') return { guard: { mode, holdsMigrations, allow: allowed } };
  problems.add(`${FIELD}.mode`, `${describeValue(mode)} is not a mode: write "Off", Observe or Enforce`);
  return {};
}

function readAllowed({ field, value }: FieldValue<unknown>, problems: PoolProblems): AllowedTraffic {
  const fields: Record<string, unknown> = isRecord(value) ? value : {};
  const addresses = problems
    .readList(`${field}.addresses`, fields.addresses, GUARD_LIMITS.addresses)
    .flatMap((place) => problems.parseText(place, '10.1.0.100 or 10.1.0.100-10.1.0.110', parseRange) ?? []);
  if (addresses.length === 0) problems.add(`${field}.addresses`, 'has no address: list what is allowed');
  const macs = problems
    .readList(`${field}.macs`, fields.macs, GUARD_LIMITS.macs)
    .flatMap((place) => readMac(place, problems) ?? []);
  const onRequest = problems.readFlag(`${field}.onRequest`, fields.onRequest);
  const allowed = { addresses, macs, ...(onRequest && { onRequest }) };
  if (isAbsent(fields.claims)) return allowed;
  const claims = problems
    .readList(`${field}.claims`, fields.claims, GUARD_LIMITS.claims)
    .flatMap((place) => problems.readText(place.field, place.value, 'tenant-a/vm.blue') ?? []);
  return { ...allowed, claims: new Set(claims) };
}

function readMac({ field, value }: FieldValue<unknown>, problems: PoolProblems): string | undefined {
  const mac = parseMac(typeof value === 'string' ? value : '');
  if (mac !== undefined && (Number.parseInt(mac.slice(0, 2), 16) & GROUP_BIT) === 0) return mac;
  problems.add(
    field,
    `${describeValue(value)} is not the MAC address of an interface: write it like 00:00:5e:00:01:0a`,
  );
  return undefined;
}
