import { describeValue } from '../api/json.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { parseMac } from '../api/mac-address.js';
import { CLAIM_REFERENCE_KEY, REQUESTED_ADDRESSES_ANNOTATION } from '../api/names.js';
import { requestedAddresses } from '../api/requested-addresses.js';
import { AddressError, formatAddress, formatFamily, parseAddressOrPrefix } from '../addressing/address/address.js';
import { type Cidr, containsAddress, networkOf } from '../addressing/address/cidr.js';
import type { PrimaryNetwork } from '../cluster/primary-network.js';

/** What a VM requests on its primary network: addresses with prefix lengths, and a MAC address; or why it cannot have them. */
export type PrimarySelection = { ok: true; ips: readonly string[]; macAddress: string | undefined } | InvalidSelection;

interface InvalidSelection {
  ok: false;
  /** Names the annotation or field, the network and the value, and says what to do. */
  problem: string;
}

/** @param podNetwork the name of the VMI's pod network in its spec */
export function readPrimarySelection(
  { metadata, spec }: VirtualMachineInstance,
  podNetwork: string,
  network: PrimaryNetwork,
): PrimarySelection {
  const macAddress = spec?.domain?.devices?.interfaces?.find(({ name }) => name === podNetwork)?.macAddress;
  if (macAddress && parseMac(macAddress) === undefined) {
    const remedy = 'write one like 02:00:00:00:00:01';
    const problem = `interface "${podNetwork}": macAddress ${describeValue(macAddress)} is not a MAC address: ${remedy}`;
    return { ok: false, problem };
  }
  const request = readAddresses(metadata.annotations, podNetwork, network);
  return request.ok ? { ...request, macAddress } : request;
}

/**
 * Checks the requested addresses against the subnets of the primary network. The core of each problem is worded as in kubevirt/ipam-extensions.
 */
function readAddresses(
  annotations: Record<string, string> | undefined,
  podNetwork: string,
  { nadKey, network }: PrimaryNetwork,
): { ok: true; ips: readonly string[] } | InvalidSelection {
  const request = requestedAddresses(annotations, podNetwork);
  if (request.kind === 'none') return { ok: true, ips: [] };
  if (request.kind === 'invalid') return { ok: false, problem: request.problem };
  const subject = `${REQUESTED_ADDRESSES_ANNOTATION}: network "${podNetwork}"`;
  const subnets = readSubnets(network.primary.subnets);
  if (!Array.isArray(subnets)) {
    const field = `spec.config.subnets of NetworkAttachmentDefinition ${nadKey}`;
    return { ok: false, problem: `${subject}: ${subnets.problem} in ${field}: correct it, or remove the request` };
  }
  const ips: string[] = [];
  for (const text of request.addresses) {
    const { address, prefixLength } = parseAddressOrPrefix(text);
    const ofFamily = subnets.filter(({ family }) => family === address.family);
    const family = formatFamily(address.family);
    if (ofFamily.length === 0) {
      const remedy = `NetworkAttachmentDefinition ${nadKey} has ${network.primary.subnets || 'no subnets'}: remove the address`;
      return {
        ok: false,
        problem: `${subject}: no ${family} subnet configured for ${family} IP request: ${text}; ${remedy}`,
      };
    }
    const subnet = ofFamily.find((each) => containsAddress(each, address));
    if (subnet === undefined) {
      const remedy = `request an address in a subnet of NetworkAttachmentDefinition ${nadKey}: ${network.primary.subnets}`;
      return { ok: false, problem: `${subject}: ${text} is outside the ${family} subnet: ${remedy}` };
    }
    const withPrefix = `${formatAddress(address)}/${subnet.prefixLength}`;
    if (prefixLength !== undefined && prefixLength !== subnet.prefixLength) {
      const remedy = `write ${withPrefix}, or leave the prefix length out`;
      return { ok: false, problem: `${subject}: ${text} has not the prefix length of its subnet: ${remedy}` };
    }
    ips.push(withPrefix);
  }
  return { ok: true, ips };
}

/** Reads CIDRs separated by commas, with or without host bits. Empty ones are ignored. */
function readSubnets(text: string): Cidr[] | { problem: string } {
  const subnets: Cidr[] = [];
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue;
    const subnet = readSubnet(part);
    if (subnet === undefined) return { problem: `invalid subnet format: ${part}` };
    subnets.push(subnet);
  }
  return subnets;
}

function readSubnet(text: string): Cidr | undefined {
  try {
    const { address, prefixLength } = parseAddressOrPrefix(text);
    return prefixLength === undefined ? undefined : networkOf(address, prefixLength);
  } catch (error) {
    if (error instanceof AddressError) return undefined;
    throw error;
  }
}

/**
 * Returns the value of the default-network annotation, with the same bytes as from kubevirt/ipam-extensions; undefined if nothing is requested.
 * @param target.nadNamespace the namespace of OVN-Kubernetes' NAD `default`
 */
export function primarySelectionText(
  { ips, macAddress }: Extract<PrimarySelection, { ok: true }>,
  { nadNamespace, claim }: { nadNamespace: string; claim: string },
): string | undefined {
  if (ips.length === 0 && !macAddress) return undefined;
  const element = {
    name: 'default',
    namespace: nadNamespace,
    ...(ips.length > 0 && { ips }),
    ...(macAddress && { mac: macAddress }),
    [CLAIM_REFERENCE_KEY]: claim,
  };
  return JSON.stringify([element]);
}
