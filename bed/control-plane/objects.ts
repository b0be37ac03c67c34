import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { isAlreadyExists } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';

/** An object of any kind in a manifest. */
export interface Manifest extends KubeObject {
  apiVersion: string;
  kind: string;
  [field: string]: unknown;
}

/** The objects of a YAML file. */
export async function readManifests(path: string): Promise<Manifest[]> {
  const documents = parseAllDocuments(await readFile(path, 'utf8'));
  return documents.map((document) => document.toJS() as Manifest | null).filter((object) => object !== null);
}

/** Creates namespaces, then the other objects, in parallel. Existing objects are not changed. */
export async function createAll(client: Client, objects: readonly Manifest[]): Promise<void> {
  const isNamespace = ({ kind }: Manifest) => kind === 'Namespace';
  for (const some of [objects.filter(isNamespace), objects.filter((object) => !isNamespace(object))])
    await Promise.all(some.map((object) => createOne(client, object)));
}

async function createOne(client: Client, object: Manifest): Promise<void> {
  try {
    await client.create(resourceOf(object), object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Guesses the API resource of an object from its kind, which works for all kinds that the bed creates. */
export function resourceOf(object: Manifest): Resource<Manifest> {
  const slash = object.apiVersion.indexOf('/');
  return {
    group: slash < 0 ? '' : object.apiVersion.slice(0, slash),
    version: object.apiVersion.slice(slash + 1),
    plural: pluralOf(object.kind),
    kind: object.kind,
    namespaced: object.metadata.namespace !== undefined,
  };
}

function pluralOf(kind: string): string {
  if (kind === 'NetworkAttachmentDefinition') return 'network-attachment-definitions';
  const lower = kind.toLowerCase();
  if (lower.endsWith('ss')) return `${lower}es`;
  if (lower.endsWith('s')) return lower;
  return /[^aeiou]y$/.test(lower) ? `${lower.slice(0, -1)}ies` : `${lower}s`;
}
