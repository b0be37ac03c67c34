import { describeValue } from '../../api/json.js';
import { parseLeaseMac, parseMac } from '../../api/mac-address.js';
import { type Address, formatFamily, parseAddressOrPrefix, sameAddress } from '../../addressing/address/address.js';
import { messageOf } from '../../kube/errors.js';
import { CniCode, CniError } from './cni-error.js';
import { type JsonObject, invalidConfig, listAt, objectAt } from './stdin-config.js';

/** The addresses and the MAC address that the runtime requests for an attachment. */

/** Builds the error for an invalid value. */
type CreateError = (path: string, problem: string) => CniError;

/**
 * Returns the requested addresses: the first that is set of `runtimeConfig.ips`, `args.cni.ips` and IP in CNI_ARGS.
 * @returns at most one per family, IPv4 first
 * @throws {CniError} 7, or 4 for CNI_ARGS; both name key and value
 */
export function runtimeAddresses(config: JsonObject, args: ReadonlyMap<string, string>): Address[] {
  const given = listAt(objectAt(config, 'runtimeConfig'), 'ips', 'runtimeConfig.ips');
  if (given.length > 0) return parseRequestedAddresses(given, 'runtimeConfig.ips', invalidConfig);
  const cni = objectAt(objectAt(config, 'args'), 'cni', 'args.cni');
  const older = listAt(cni, 'ips', 'args.cni.ips');
  if (older.length > 0) return parseRequestedAddresses(older, 'args.cni.ips', invalidConfig);
  return parseRequestedAddresses(args.get('IP')?.split(',') ?? [], 'CNI_ARGS: IP', invalidVariable);
}

/** Returns `runtimeConfig.mac`, else MAC in CNI_ARGS, in lower case with colons. @throws {CniError} as {@link runtimeAddresses} */
export function requestedMac(config: JsonObject, args: ReadonlyMap<string, string>): string | undefined {
  const given = objectAt(config, 'runtimeConfig').mac || undefined;
  if (given !== undefined) return readMac(given, 'runtimeConfig.mac', invalidConfig);
  const older = args.get('MAC');
  return older === undefined ? undefined : readMac(older, 'CNI_ARGS: MAC', invalidVariable);
}

function parseRequestedAddresses(values: readonly unknown[], path: string, complain: CreateError): Address[] {
  const found: Address[] = [];
  for (const [index, value] of values.entries()) {
    const place = `${path}[${index}]`;
    const address = readAddress(value, place, complain);
    const other = found.find(({ family }) => family === address.family);
    if (other === undefined) {
      found.push(address);
    } else if (!sameAddress(other, address)) {
      const family = formatFamily(address.family);
      throw complain(place, `${describeValue(value)} is a second ${family} address: request at most one per family`);
    }
  }
  return found.sort((a, b) => a.family - b.family);
}

function readAddress(value: unknown, place: string, complain: CreateError): Address {
  if (typeof value !== 'string')
    throw complain(place, `${describeValue(value)} is not a string: write the address in quotes`);
  try {
    return parseAddressOrPrefix(value).address;
  } catch (error) {
    throw complain(place, messageOf(error));
  }
}

/** Multus passes each form on that Go's net.ParseMAC accepts, for instance 0200.0000.0001. */
function readMac(value: unknown, place: string, complain: CreateError): string {
  const mac = typeof value === 'string' ? (parseMac(value) ?? parseLeaseMac(value)) : undefined;
  if (mac !== undefined) return mac;
  throw complain(place, `${describeValue(value)} is not a MAC address: write it like 02:00:00:00:00:01`);
}

function invalidVariable(path: string, problem: string): CniError {
  return new CniError(CniCode.InvalidEnvironment, `${path}: ${problem}`);
}
