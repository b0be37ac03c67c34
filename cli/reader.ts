import { BAD_CLAIM_CONDITIONS } from '../api/conditions.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { asString, omitUndefined, truncate } from '../api/json.js';
import { type Condition, type KubeObject, MAX_NAME_LENGTH, type ObjectMeta } from '../api/meta.js';
import {
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_VM_LABEL,
  CLAIM_VM_NETWORK,
} from '../api/names.js';
import { datedMetadataOf, pickKeys, transformReference } from '../cluster/metadata.js';
import { intern, share } from '../cluster/share.js';
import { isProofOfAbsence } from '../kube/absence.js';
import type { Client, ListOptions } from '../kube/client.js';
import { StatusError, isForbidden, isNotFound } from '../kube/errors.js';
import type { Event, EventType } from '../kube/events.js';
import type { ObjectRef, Resource } from '../kube/resource.js';
import { CommandError } from './exit-code.js';
import { qualifiedName, reasonOf } from './forbidden.js';

/** The answer of the API server to a read. */
export type Read<T> = { readonly kind: 'found'; readonly value: T } | Unread;

/**
 * An answer without a value.
 * - `absent`: there is no such object
 * - `unserved`: the API server does not serve the kind
 * - `forbidden`: the user lacks a right, which `why` names
 * - `failed`: anything else
 */
export interface Unread {
  readonly kind: 'absent' | 'unserved' | 'forbidden' | 'failed';
  /** In words. */
  readonly why: string;
  readonly error: StatusError;
}

export const INSTALL_HOLDFAST = 'install Holdfast first';

/**
 * For commands that list leases and end: no tenant can make a lease large, and a process without a large heap parses a page in a few ms. Other
 * objects may be a megabyte each.
 */
export const LEASE_PAGES = { pageSize: 1_000 } as const;

/** @throws {TransportError | StatusError} if the API server does not answer, or does not know the user */
export function readObject<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  resource: Resource<T>,
  ref: ObjectRef,
): Promise<Read<T>> {
  return answerOf(() => client.get(resource, ref), resource, ref.name);
}

/** Reads the objects that exist. The first that could not be read stands for all. Throws like {@link readObject}. */
export async function readObjects<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  resource: Resource<T>,
  refs: readonly ObjectRef[],
): Promise<Read<readonly T[]>> {
  const reads = await Promise.all(refs.map((ref) => readObject(client, resource, ref)));
  return joinReads(reads.map((read) => mapRead(read, (object) => [object])));
}

/** Reads a list, which is never `absent`. Throws like {@link readObject}. */
export function readList<T extends KubeObject>(
  client: Pick<Client, 'list'>,
  resource: Resource<T>,
  options: ListOptions = {},
): Promise<Read<T[]>> {
  return answerOf(async () => (await client.list(resource, { ...options, dropsManagedFields: true })).items, resource);
}

/** As {@link readList}, but keeps only what a transform makes of each object. It has no managedFields, which are a third of an object. */
export function readListAs<T extends KubeObject, P>(
  client: Pick<Client, 'listAs'>,
  resource: Resource<T>,
  transform: (object: T) => readonly P[],
  options: ListOptions = {},
): Promise<Read<P[]>> {
  const read = () => client.listAs(resource, transform, { ...options, dropsManagedFields: true });
  return answerOf(async () => (await read()).items.flat(), resource);
}

/** Says in words why a request was not answered. Throws like {@link readObject}. */
export async function answerOf<T>(request: () => Promise<T>, resource: Resource, name?: string): Promise<Read<T>> {
  try {
    return { kind: 'found', value: await request() };
  } catch (error) {
    if (!(error instanceof StatusError) || error.status === 401) throw error;
    if (name !== undefined && isProofOfAbsence(error, resource, name))
      return { kind: 'absent', why: `${resource.kind} ${name} does not exist`, error };
    if (isNotFound(error))
      return { kind: 'unserved', why: `the API server does not serve ${qualifiedName(resource)}`, error };
    return { kind: isForbidden(error) ? 'forbidden' : 'failed', why: reasonOf(error), error };
  }
}

/** Returns what was read, or the value for that answer. @throws {StatusError} the answer, if there is no value for it */
export function valueOr<T, E = never>(read: Read<T>, instead: Partial<Readonly<Record<Unread['kind'], E>>>): T | E {
  if (read.kind === 'found') return read.value;
  if (!(read.kind in instead)) throw read.error;
  return instead[read.kind] as E;
}

/** True if it is unknown whether there is something, or what it is. */
export function isUnread(read: Read<unknown>): boolean {
  return read.kind !== 'found' && read.kind !== 'absent';
}

/** Returns what was read, or a value that stands for nothing. */
export function valueOf<T, E>(read: Read<T> | undefined, otherwise: E): T | E {
  return read?.kind === 'found' ? read.value : otherwise;
}

export function mapRead<T, R>(read: Read<T>, map: (value: T) => R): Read<R> {
  return read.kind === 'found' ? { kind: 'found', value: map(read.value) } : read;
}

/** A kind that the API server does not serve has no objects. */
export function noneIfUnserved<T>(read: Read<T[]>): Read<T[]> {
  return read.kind === 'unserved' ? { kind: 'found', value: [] } : read;
}

/** Joins lists. The first that could not be read stands for all. */
export function joinReads<T>(reads: readonly Read<readonly T[]>[]): Read<readonly T[]> {
  return reads.find(isUnread) ?? { kind: 'found', value: reads.flatMap((read) => valueOf(read, [])) };
}

/**
 * Returns what was read of a kind that the API server has to serve.
 * @param remedy what to do if it does not
 * @throws {CommandError} if it does not
 * @throws {StatusError} for each other answer without a value
 */
export function required<T>(read: Read<T>, remedy: string): T {
  if (read.kind === 'unserved') throw new CommandError(`${read.why}: ${remedy}`);
  return valueOr(read, {});
}

/**
 * Lists what a transform makes of each object of a kind; nothing if the API server does not serve the kind.
 * @throws {CommandError} if the user may not
 */
export async function listAsAdministrator<T extends KubeObject, P>(
  client: Pick<Client, 'listAs'>,
  resource: Resource<T>,
  transform: (object: T) => readonly P[],
  options: ListOptions = {},
): Promise<P[]> {
  const read = await readListAs(client, resource, transform, options);
  return administratorsOnly(resource, noneIfUnserved(read));
}

/** Returns what was read of all namespaces. @throws {CommandError} if the user may not */
export function administratorsOnly<T>(resource: Resource, read: Read<T>): T {
  if (read.kind !== 'forbidden') return valueOr(read, {});
  throw new CommandError(
    `you may not list ${qualifiedName(resource)} in all namespaces: run the command as a cluster administrator`,
    { cause: read.error },
  );
}

/** Keeps what identifies an object and its owners, so that a list of any length needs little memory. */
export function identityOf(metadata: ObjectMeta): ObjectMeta {
  const small = datedMetadataOf(metadata);
  if (metadata.ownerReferences !== undefined) small.ownerReferences = metadata.ownerReferences.map(transformReference);
  return small;
}

const CLAIM_ANNOTATIONS = [
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_VM_NETWORK,
];

/** Keeps what commands and the web page read of a claim. One with addresses keeps only the conditions that say that something is wrong. */
export function slimClaim({ metadata, spec, status }: IPAMClaim): IPAMClaim {
  const small = identityOf(metadata);
  const label = metadata.labels?.[CLAIM_VM_LABEL];
  if (label !== undefined) small.labels = { [CLAIM_VM_LABEL]: intern(label) };
  const annotations = pickKeys(metadata.annotations, CLAIM_ANNOTATIONS);
  if (annotations !== undefined) {
    small.annotations = Object.fromEntries(Object.entries(annotations).map(([key, text]) => [key, intern(text)]));
  }
  if (status === undefined) return { metadata: small, spec: share(spec) };
  // another IPAM may write null
  const { ips, ownerPod, conditions = [] } = status;
  const hasAddresses = (ips ?? []).length > 0;
  const isBad = ({ type, status: is }: Condition) =>
    BAD_CLAIM_CONDITIONS.some((bad) => bad.type === type && bad.status === is);
  const told = hasAddresses ? conditions.filter(isBad) : conditions;
  const kept = omitUndefined({ ips: ips ?? undefined, ownerPod, conditions: told.length > 0 ? told : undefined });
  return { metadata: small, spec: share(spec), status: kept };
}

/** Reads what the user may read, and notes the rest. */
export class PermittedReader<C extends Pick<Client, 'listAs'> = Pick<Client, 'listAs'>> {
  readonly client: C;
  readonly #refused = new Set<string>();

  constructor(client: C) {
    this.client = client;
  }

  /** What the user may not do, in words. */
  get refused(): readonly string[] {
    return [...this.#refused];
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<T[] | undefined> {
    return this.listAs(resource, (object) => object, options);
  }

  /** @returns undefined if the user may not; an empty list if the API server does not serve the kind */
  async listAs<T extends KubeObject, P>(
    resource: Resource<T>,
    transform: (object: T) => P,
    options: ListOptions = {},
  ): Promise<P[] | undefined> {
    const read = await readListAs(this.client, resource, (object) => [transform(object)], options);
    if (read.kind === 'forbidden') this.note(read.error);
    return valueOr(read, { unserved: [], forbidden: undefined });
  }

  note(error: StatusError): void {
    this.#refused.add(reasonOf(error));
  }
}

/** The longest message that the API server accepts in an Event of the newer API. */
const MAX_MESSAGE_LENGTH = 1_024;

/**
 * Returns an event with all its texts, none of them long. Tenants may write events: the API server accepts those without type, reason, message or
 * name of their object, and with texts of a megabyte.
 */
export function readEvent(event: Event): Event {
  const { kind, name } = event.involvedObject;
  const involvedObject = { ...event.involvedObject, kind: nameOf(kind), name: nameOf(name) };
  const message = truncate(asString(event.message), MAX_MESSAGE_LENGTH);
  return { ...event, involvedObject, type: nameOf(event.type) as EventType, reason: nameOf(event.reason), message };
}

function nameOf(text: unknown): string {
  return truncate(asString(text), MAX_NAME_LENGTH);
}
