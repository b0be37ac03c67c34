import { isIP } from 'node:net';
import { MAX_REQUESTED_ADDRESSES_LENGTH } from '../limits.js';
import { describeValue, isRecord } from '../json.js';
import { REQUESTED_ADDRESSES_ANNOTATION } from '../names.js';

/** The addresses that a VM requests on one of its networks: none, a list, or an invalid request. */
export type AddressRequest =
  | { kind: 'none' }
  /** In canonical text (RFC 5952), with the prefix length if one is given, IPv4 first, at most one of each family. */
  | { kind: 'addresses'; addresses: readonly string[] }
  /** `problem` names annotation, network and value, and what to do. */
  | { kind: 'invalid'; problem: string };

const EXPECTED_FORM = 'a JSON object that maps networks of the VM to lists of addresses, like {"data": ["10.0.0.5"]}';

/**
 * Reads the addresses for the claim of one network from the annotation of a VM's template, or of a VMI without a VM.
 * @param vmNetwork the network's name in the VM's spec
 */
export function requestedAddresses(annotations: Record<string, string> | undefined, vmNetwork: string): AddressRequest {
  const text = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  if (text === undefined) return { kind: 'none' };
  if (text.length > MAX_REQUESTED_ADDRESSES_LENGTH) {
    const length = `it has more than ${MAX_REQUESTED_ADDRESSES_LENGTH} characters`;
    return invalid(`${REQUESTED_ADDRESSES_ANNOTATION}: ${length}: request addresses only for networks of the VM`);
  }
  const requests = parseObject(text);
  if (requests === undefined) {
    return invalid(
      `${REQUESTED_ADDRESSES_ANNOTATION}: ${describeValue(text)} is not ${EXPECTED_FORM}: correct or remove it`,
    );
  }
  if (!Object.hasOwn(requests, vmNetwork)) return { kind: 'none' };
  const subject = `${REQUESTED_ADDRESSES_ANNOTATION}: network "${vmNetwork}"`;
  const addresses = requests[vmNetwork];
  if (!Array.isArray(addresses) || addresses.length === 0) {
    const given = Array.isArray(addresses) ? 'an empty list' : describeValue(addresses);
    return invalid(
      `${subject}: ${given} is not a list of addresses: write one like ["10.0.0.5"], or remove the network`,
    );
  }
  return readAddressList(subject, addresses);
}

/** Returns the networks for which the annotation requests addresses, by their names in the VM's spec; none if it cannot be read. */
export function requestedNetworks(annotations: Record<string, string> | undefined): readonly string[] {
  const text = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  return text === undefined ? [] : Object.keys(parseObject(text) ?? {});
}

function readAddressList(subject: string, addresses: readonly unknown[]): AddressRequest {
  const found = new Map<number, string>();
  for (const address of addresses) {
    const read = readAddressText(address);
    if (read === undefined) {
      return invalid(
        `${subject}: ${describeValue(address)} is not an IP address: write one like "10.0.0.5" or "10.0.0.5/24", without a zone`,
      );
    }
    const { family, text } = read;
    if (found.has(family)) {
      return invalid(
        `${subject}: ${describeValue(address)} is a second IPv${family} address: request at most one of each family`,
      );
    }
    found.set(family, text);
  }
  return { kind: 'addresses', addresses: [4, 6].flatMap((family) => found.get(family) ?? []) };
}

/** Reads an address with or without the prefix length of its subnet, which only the pool knows. */
function readAddressText(given: unknown): { family: number; text: string } | undefined {
  if (typeof given !== 'string' || given.includes('%')) return undefined;
  const { address = '', prefix = '' } = /^(?<address>[^/]*)(?<prefix>\/(?:0|[1-9]\d{0,2}))?$/.exec(given)?.groups ?? {};
  const family = isIP(address);
  if (family === 0 || Number(prefix.slice(1)) > (family === 6 ? 128 : 32)) return undefined;
  return { family, text: `${family === 6 ? canonical(address) : address}${prefix}` };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (text.length > MAX_REQUESTED_ADDRESSES_LENGTH) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The URL standard formats IPv6 addresses as RFC 5952 does. */
function canonical(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function invalid(problem: string): AddressRequest {
  return { kind: 'invalid', problem };
}

/** @param names those that the VM has */
export function describeUnknownNetworks(unknown: readonly string[], names: readonly string[]): string {
  const known = names.length === 0 ? 'it has none' : `it has ${quoteNames(names)}`;
  return `${REQUESTED_ADDRESSES_ANNOTATION}: the VM has no network ${quoteNames(unknown)} (${known}): correct the name, or remove it from the annotation`;
}

export function describeUnsupportedNetwork(vmNetwork: string, nad: string): string {
  return (
    `${REQUESTED_ADDRESSES_ANNOTATION}: network "${vmNetwork}": NetworkAttachmentDefinition ${nad} does not allow persistent IPs, so the request ` +
    `has no effect: set "allowPersistentIPs": true in its spec.config, or remove the network from the annotation`
  );
}

function quoteNames(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(', ');
}
