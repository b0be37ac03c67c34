import { versionProblemOf } from '../../api/networks/cni-version.js';
import { type IpamSection, holdfastSection } from '../../api/networks/ipam-delegation.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/networks/network-attachment.js';
import { parseAddress } from '../../addressing/address/address.js';
import { containsAddress, parseCidr } from '../../addressing/address/cidr.js';
import { bridgeAddressProblems } from '../../addressing/pool/bridge-address.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type ResultExtras, ResultExtrasError, readResultExtras } from '../../addressing/pool/result-extras.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { ineffectiveKeys } from './ineffective-keys.js';
import { servingPool } from './nad-pool.js';
import { ALLOWED, type ValidationResult, type ValidationView } from './review.js';

/** The API server shows only a few warnings. */
const MAX_KEYS = 4;

interface ConfigReview {
  /** What agents refuse. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Reviews what a pool does not depend on in the config of a NAD that delegates to Holdfast, in steps of up to 30 ms. Pure.
 * @param oldNad a change may keep what was wrong in it
 */
export function* reviewNadConfig(
  nad: NetworkAttachmentDefinition,
  oldNad: NetworkAttachmentDefinition | undefined,
): Generator<undefined, ValidationResult> {
  const { problems, warnings } = yield* reviewConfig(nad);
  const before = oldNad === undefined ? undefined : yield* reviewConfig(oldNad);
  const known = new Set([...(before?.problems ?? []), ...(before?.warnings ?? [])]);
  return {
    refusals: problems.filter((text) => !known.has(text)).map((message) => ({ check: 'delegation', message })),
    warnings: [
      ...problems.filter((text) => known.has(text)),
      ...warnings.filter((text) => !known.has(text)).slice(0, MAX_KEYS),
    ],
  };
}

function* reviewConfig(nad: NetworkAttachmentDefinition): Generator<undefined, ConfigReview> {
  const read = readCniConfig(nad);
  const config = (read.ok && read.value) || {};
  const section = holdfastSection(config);
  if (section === undefined) return { problems: [], warnings: [] };
  const problems = [versionProblemOf(config) ?? [], extrasProblems(section)].flat();
  yield;
  const warnings = ineffectiveKeys(config, section);
  yield;
  return { problems: problems.map((problem) => `${problem}. Until then, no pod on this network starts`), warnings };
}

/** The message of the agent, with the path in the NAD. */
function extrasProblems({ ipam, path }: IpamSection): string[] {
  const extras = readExtras(ipam, path);
  return typeof extras === 'string' ? [extras] : [];
}

function readExtras(ipam: IpamSection['ipam'], path: string): ResultExtras | string {
  try {
    return readResultExtras(ipam, path);
  } catch (error) {
    if (error instanceof ResultExtrasError) return error.message;
    throw error;
  }
}

/** Limits the time of a review. */
const MAX_ROUTES = 64;
const LINK_LOCAL = parseCidr('fe80::/10');

/**
 * Warns of next hops that are not on the link: the kernel rejects their routes, so the plugin that creates the interface fails (containernetworking/plugins
 * 1.9.1, `ipam.ConfigureIface`). A next hop is on the link if a subnet of the pool contains it, or an earlier route without a next hop.
 */
export function* reviewNextHops(
  nad: NetworkAttachmentDefinition,
  parsed: ParsedNad,
  view: ValidationView,
): Generator<undefined, ValidationResult> {
  const config = readCniConfig(nad);
  const section = holdfastSection((config.ok && config.value) || {});
  const extras = section && readExtras(section.ipam, section.path);
  if (section === undefined || typeof extras !== 'object' || extras.routes.length === 0) return ALLOWED;
  yield;
  const subnets = servingPool(parsed, view).pool?.subnets ?? [];
  if (subnets.length === 0) return ALLOWED;
  const warnings = nextHopsOffLink(extras.routes, subnets).map(
    ([index, gw]) =>
      `${section.path}.routes[${index}].gw ${gw} is in no subnet of the network, so no pod on it starts: write an address of a subnet`,
  );
  return { refusals: [], warnings: warnings.slice(0, MAX_KEYS) };
}

function nextHopsOffLink(routes: ResultExtras['routes'], subnets: Pool['subnets']): [index: number, gw: string][] {
  const onLink = [LINK_LOCAL, ...subnets.map(({ cidr }) => cidr)];
  return routes.slice(0, MAX_ROUTES).flatMap(({ dst, gw }, index): [number, string][] => {
    if (gw !== undefined) {
      const address = parseAddress(gw);
      return onLink.some((cidr) => containsAddress(cidr, address)) ? [] : [[index, gw]];
    }
    onLink.push(parseCidr(dst));
    return [];
  });
}

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
