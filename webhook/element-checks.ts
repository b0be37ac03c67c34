import { CLAIM_REFERENCE_KEY } from '../api/names.js';
import { type NetworkSelection, describeSelection } from '../api/network-selection.js';
import type { ElementClaim } from '../cluster/element-claim.js';
import type { PodCheck, PodRefusal } from './pod-decision.js';

/** An element of the networks annotation and its claim. */
export interface NetworkElement {
  selection: NetworkSelection;
  claim: ElementClaim;
  /** The claim to which the present pod refers on this interface and NAD. */
  currentReference: string | undefined;
  /** The names that kubevirt/ipam-extensions may have written as the reference. It runs beside Holdfast during a move. */
  ipamExtensionsNames: readonly string[];
}

/** True if kubevirt/ipam-extensions has written the reference, which is then replaced. */
export function isReplaced({ selection, claim, ipamExtensionsNames }: NetworkElement): boolean {
  const given = selection.claimReference;
  return given !== undefined && claim.kind === 'claim' && given !== claim.name && ipamExtensionsNames.includes(given);
}

interface ElementCheck {
  name: PodCheck;
  /** @returns the problem, or undefined */
  run: (element: NetworkElement) => string | undefined;
}

const ELEMENT_CHECKS: readonly ElementCheck[] = [
  { name: 'claim-free', run: ({ claim }) => (claim.kind === 'foreign' ? claim.reason : undefined) },
  {
    name: 'reference-expected',
    run: (element) => {
      const { selection, claim, currentReference } = element;
      const given = selection.claimReference;
      if (given === undefined || (claim.kind === 'claim' && given === claim.name)) return undefined;
      if (isReplaced(element)) return undefined;
      // a pod keeps a reference that it has already
      if (claim.kind === 'none' && given === currentReference) return undefined;
      const shown = `"${CLAIM_REFERENCE_KEY}" of ${describeSelection(selection)} is ${JSON.stringify(given)}`;
      if (claim.kind === 'claim') {
        return `${shown}, expected ${JSON.stringify(claim.name)}: leave the key out, the webhook sets it`;
      }
      return claim.kind === 'none'
        ? `${shown}, but there is no claim for it: ${claim.why}; leave the key out`
        : undefined;
    },
  },
  {
    name: 'addresses-or-claim',
    run: ({ selection, claim }) =>
      selection.requestsAddresses && claim.kind === 'claim'
        ? `${describeSelection(selection)} has "ips", which cannot be combined with its IPAMClaim ${claim.name} ` +
          '(multi-net-spec 4.1.2.1.11): leave "ips" out, and request addresses in the annotation ' +
          'network.kubevirt.io/addresses of the VM'
        : undefined,
  },
];

/** Returns the refusal of the first check that fails, for the first element that fails it. */
export function findRefusal(elements: readonly NetworkElement[]): PodRefusal | undefined {
  for (const { name, run } of ELEMENT_CHECKS) {
    for (const element of elements) {
      const reason = run(element);
      if (reason !== undefined) return { allowed: false, check: name, reason };
    }
  }
  return undefined;
}
