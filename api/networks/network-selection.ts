import { describeValue, isRecord } from '../json.js';
import { type KubeObject, MAX_NAME_LENGTH, joinKey } from '../meta.js';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../names.js';

/**
 * The part of an element of the networks annotation (multi-net-spec §4.1) that Holdfast reads.
 * Elements are never rebuilt from it, because unknown keys must be kept.
 */
export interface NetworkSelection {
  /** 1-based, as in ordinal interface names; 0 for the network in place of the pod's default network. */
  position: number;
  nad: { namespace: string; name: string };
  /** The interface name that the element requests, if any. */
  interface?: string;
  /** The element has the key `ips`, whatever its value. */
  requestsAddresses: boolean;
  claimReference?: string;
}

/** More interfaces than any VM has, and few enough to check all of them in one admission review. */
export const MAX_NETWORK_ELEMENTS = 64;

/** Of an annotation of Multus. The API server allows four times as much, but it is parsed at each event of a pod, and tenants may write it. */
export const MAX_ANNOTATION_LENGTH = MAX_NETWORK_ELEMENTS * 1024;

/** The annotation violates the specification or one of our limits, or Multus would read it differently from other programs. */
export class NetworkSelectionError extends Error {
  override readonly name = 'NetworkSelectionError';
}

/** Returns the name of the interface: the one that the element requests, or Multus' ordinal name. */
export function interfaceNameOf(selection: NetworkSelection): string {
  return selection.interface ?? `net${selection.position}`;
}

/** Describes an element in a message: `network element 0 (net1 on tenant/blue)`. */
export function describeSelection(selection: NetworkSelection): string {
  const nad = joinKey(selection.nad.namespace, selection.nad.name);
  const element = isDefaultNetwork(selection) ? 'default network' : `network element ${selection.position - 1}`;
  return `${element} (${interfaceNameOf(selection)} on ${nad})`;
}

/** True for the network in place of the pod's default network, which never has a claim. */
export function isDefaultNetwork({ position }: NetworkSelection): boolean {
  return position === 0;
}

/**
 * Returns the networks that a pod requests; none without the annotation.
 * @throws {NetworkSelectionError} naming the element and the key that is wrong
 */
export function networkSelectionsOf({ metadata }: KubeObject): NetworkSelection[] {
  return parseNetworkSelections(metadata.annotations?.[NETWORKS_ANNOTATION] ?? '', metadata.namespace ?? '');
}

/** Whether {@link networkSelectionsOf} may find a claim reference, by a look that costs little. */
export function mayReferToClaims({ metadata }: KubeObject): boolean {
  const value = metadata.annotations?.[NETWORKS_ANNOTATION] ?? '';
  // the key may be written with escapes
  return value.length <= MAX_ANNOTATION_LENGTH && /ipam-claim-reference|\\u/.test(value);
}

/** The interface of a pod's default network; every runtime uses this name. */
const PRIMARY_INTERFACE = 'eth0';

/**
 * Returns the NAD that a pod requests in place of its default network: none or one. It may request another interface name.
 * @param multusNamespace the namespace of a NAD that is named without one
 * @throws {NetworkSelectionError} naming what is wrong
 */
export function defaultSelectionOf({ metadata }: KubeObject, multusNamespace: string): NetworkSelection[] {
  const value = metadata.annotations?.[DEFAULT_NETWORK_ANNOTATION] ?? '';
  const selections = parseNetworkSelections(value, multusNamespace);
  if (selections.length > 1) throw new NetworkSelectionError('it has more than one element: name one network');
  return selections.map((one) => ({ ...one, position: 0, interface: one.interface ?? PRIMARY_INTERFACE }));
}

/**
 * Reads the networks annotation as Multus does, in its JSON form or its comma form (`[namespace/]name[@interface]`). Checks the limits
 * before it reads any element.
 * @param namespace the pod's namespace, for elements that name none
 * @throws {NetworkSelectionError} naming the element and the key that is wrong
 */
export function parseNetworkSelections(value: string, namespace: string): NetworkSelection[] {
  if (value.length > MAX_ANNOTATION_LENGTH) {
    throw new NetworkSelectionError(`it has ${value.length} characters: write at most ${MAX_ANNOTATION_LENGTH}`);
  }
  if (value.trim() === '') return [];
  const selections = isJsonForm(value)
    ? parseJsonForm(value, namespace)
    : commaElements(value, namespace).map(toSelection);
  rejectRepeatedInterfaces(selections);
  return selections;
}

/**
 * Sets the claim references of elements and changes nothing else: order, formatting and unknown keys stay byte for byte.
 * The comma form becomes the JSON form. The result depends only on the input.
 * @param references claim names by the element's 0-based index
 */
export function withClaimReferences(value: string, namespace: string, references: ReadonlyMap<number, string>): string {
  const selections = parseNetworkSelections(value, namespace);
  const wanted = [...references].filter(([index, claim]) => selections[index]?.claimReference !== claim);
  if (wanted.length === 0) return value;
  if (!isJsonForm(value)) {
    return JSON.stringify(
      commaElements(value, namespace).map((element, index) => {
        const claim = references.get(index);
        return claim === undefined ? element : { ...element, [CLAIM_REFERENCE_KEY]: claim };
      }),
    );
  }
  const spans = elementSpans(value);
  let edited = value;
  for (const [index, claim] of wanted.sort(([a], [b]) => b - a)) {
    const span = spans[index];
    if (span === undefined) throw new RangeError(`there is no network element ${index}`);
    const element = edited.slice(span.start, span.end);
    edited = edited.slice(0, span.start) + withClaimReference(element, claim) + edited.slice(span.end);
  }
  return edited;
}

function withClaimReference(element: string, claim: string): string {
  const parsed = JSON.parse(element) as Record<string, unknown>;
  // replacing a reference is rare, so the element's formatting may be lost
  if (CLAIM_REFERENCE_KEY in parsed) return JSON.stringify({ ...parsed, [CLAIM_REFERENCE_KEY]: claim });
  const close = element.lastIndexOf('}');
  const body = element.slice(0, close).trimEnd();
  const comma = body.endsWith('{') ? '' : ',';
  return `${body}${comma}${JSON.stringify(CLAIM_REFERENCE_KEY)}:${JSON.stringify(claim)}${element.slice(body.length)}`;
}

/** Multus treats any value that contains one of these characters as JSON. */
function isJsonForm(value: string): boolean {
  return /[[{"]/.test(value);
}

function parseJsonForm(value: string, namespace: string): NetworkSelection[] {
  let list: unknown;
  try {
    list = JSON.parse(value);
  } catch (error) {
    throw new NetworkSelectionError(`it is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!Array.isArray(list)) throw new NetworkSelectionError('it is not a list of network elements');
  rejectTooManyElements(list);
  return list.map((element: unknown, index) => parseElement(element, index, namespace));
}

function rejectTooManyElements(elements: readonly unknown[]): void {
  if (elements.length <= MAX_NETWORK_ELEMENTS) return;
  throw new NetworkSelectionError(
    `it has more than ${MAX_NETWORK_ELEMENTS} elements: a pod may have at most ${MAX_NETWORK_ELEMENTS} networks`,
  );
}

/** Plugins find their element by its interface name. Multus also fails if an interface name is repeated. */
function rejectRepeatedInterfaces(selections: readonly NetworkSelection[]): void {
  const positions = new Map<string, number>();
  for (const selection of selections) {
    const name = interfaceNameOf(selection);
    const before = positions.get(name);
    if (before !== undefined) {
      const indexes = `elements ${before - 1} and ${selection.position - 1}`;
      throw new NetworkSelectionError(
        `${indexes} both have the interface ${JSON.stringify(name)}: give each its own "interface"`,
      );
    }
    positions.set(name, selection.position);
  }
}

/** The name of the key "interface" before Multus 3.2, which Multus still reads. */
const OLD_INTERFACE_KEY = 'interfaceRequest';

/** All keys that are read here. */
const ELEMENT_KEYS = ['name', 'namespace', 'interface', OLD_INTERFACE_KEY, 'ips', CLAIM_REFERENCE_KEY] as const;
type ElementKey = (typeof ELEMENT_KEYS)[number];
const LONGEST_KEY = Math.max(...ELEMENT_KEYS.map((key) => key.length));
/** Upper case also maps letters such as the long s, which Go treats as s. */
const KEYS_IN_UPPER_CASE = new Map<string, ElementKey>(ELEMENT_KEYS.map((key) => [key.toUpperCase(), key]));

function parseElement(element: unknown, index: number, namespace: string): NetworkSelection {
  if (!isRecord(element))
    throw new NetworkSelectionError(`element ${index} is ${describeValue(element)}, not an object`);
  rejectWrongCase(element, index);
  const name = readString(element, 'name', index);
  if (name === undefined || name === '') throw new NetworkSelectionError(`element ${index} has no "name"`);
  const oldRequest = readString(element, OLD_INTERFACE_KEY, index);
  const requested = readString(element, 'interface', index) || oldRequest;
  const claimReference = readString(element, CLAIM_REFERENCE_KEY, index);
  return {
    position: index + 1,
    nad: { namespace: readString(element, 'namespace', index) || namespace, name },
    ...(requested ? { interface: requested } : {}),
    requestsAddresses: (element.ips ?? null) !== null,
    ...(claimReference ? { claimReference } : {}),
  };
}

/** Every program must read an element alike. Go's JSON decoder ignores the case of keys, so Multus would use keys that others ignore. */
function rejectWrongCase(record: Record<string, unknown>, index: number): void {
  for (const key of Object.keys(record)) {
    const meant = key.length > LONGEST_KEY ? undefined : KEYS_IN_UPPER_CASE.get(key.toUpperCase());
    if (meant === undefined || meant === key) continue;
    throw new NetworkSelectionError(`element ${index}: write the key ${JSON.stringify(key)} as "${meant}"`);
  }
}

function readString(
  record: Record<string, unknown>,
  key: Exclude<ElementKey, 'ips'>,
  index: number,
): string | undefined {
  const value = record[key];
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value.length <= MAX_NAME_LENGTH) return value;
  if (typeof value === 'string') {
    throw new NetworkSelectionError(`element ${index}: "${key}" is longer than ${MAX_NAME_LENGTH} characters`);
  }
  // in Go, null keeps the value of an earlier key of the same name
  if (value === null) throw new NetworkSelectionError(`element ${index}: "${key}" is null: leave the key out`);
  throw new NetworkSelectionError(`element ${index}: "${key}" is ${describeValue(value)}, not a string`);
}

interface CommaElement {
  name: string;
  namespace: string;
  interface?: string;
}

function commaElements(value: string, namespace: string): CommaElement[] {
  const parts = value.split(',', MAX_NETWORK_ELEMENTS + 1);
  rejectTooManyElements(parts);
  return parts.map((part, index) => {
    const match = /^\s*(?:([^/@\s]{1,253})\/)?([^/@\s]{1,253})(?:@([^/@\s]{1,253}))?\s*$/.exec(part);
    if (match?.[2] === undefined) {
      throw new NetworkSelectionError(`element ${index} is ${describeValue(part)}, not [namespace/]name[@interface]`);
    }
    return { name: match[2], namespace: match[1] ?? namespace, ...(match[3] ? { interface: match[3] } : {}) };
  });
}

function toSelection(element: CommaElement, index: number): NetworkSelection {
  return {
    position: index + 1,
    nad: { namespace: element.namespace, name: element.name },
    ...(element.interface === undefined ? {} : { interface: element.interface }),
    requestsAddresses: false,
  };
}

/** Returns the position of each element in the text of a valid JSON list of objects. */
function elementSpans(json: string): { start: number; end: number }[] {
  const spans: { start: number; end: number }[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (char === '"') {
      at = endOfString(json, at);
    } else if (char === '{' || char === '[') {
      depth++;
      if (depth === 2) start = at;
    } else if (char === '}' || char === ']') {
      depth--;
      if (depth === 1) spans.push({ start, end: at + 1 });
    }
  }
  return spans;
}

function endOfString(json: string, open: number): number {
  let at = open + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at;
}
