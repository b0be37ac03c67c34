import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, type ObjectMeta, objectKey } from '../../api/meta.js';
import { until } from '../../bed/processes/wait.js';
import type { Client } from '../../kube/client.js';
import { isNotFound } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';

const isWebhook = ({ resource: { kind } }: Entry) => kind.endsWith('WebhookConfiguration');
/** Whether deletions of other objects depend on it. */
const isContainer = ({ resource: { kind } }: Entry) => ['CustomResourceDefinition', 'Namespace'].includes(kind);

interface Entry {
  readonly resource: Resource;
  readonly object: KubeObject & { readonly metadata: ObjectMeta & { managedFields?: { manager: string }[] } };
}

interface GroupDiscovery {
  metadata?: { name?: string };
  versions: {
    version: string;
    resources?: { resource: string; scope: string; verbs: string[]; responseKind: { kind: string } }[];
  }[];
}

/** All objects of an API server, of whatever kind, but for those that it writes itself. */
export class ServerState {
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(entries: readonly Entry[]) {
    this.#entries = new Map(entries.map((entry) => [`${entry.resource.kind} ${objectKey(entry.object)}`, entry]));
  }

  static async read(client: Client): Promise<ServerState> {
    const entries = (await resourcesOf(client)).map(async (resource) => {
      const items = await listAll(client, resource);
      return items.map((object) => ({ resource, object }));
    });
    return new ServerState((await Promise.all(entries)).flat().filter((entry) => !isOfServer(entry)));
  }

  /** Brings the server back to this state. @returns the kinds of the objects that had to be deleted */
  async restore(client: Client): Promise<ReadonlySet<string>> {
    const found = (await ServerState.read(client)).#entries;
    const surplus = [...found].filter(([key]) => !this.#entries.has(key)).map(([, entry]) => entry);
    const removeIf = (isChosen: (entry: Entry) => boolean) =>
      Promise.all(surplus.filter(isChosen).map((entry) => remove(client, entry)));
    await removeIf(isWebhook); // they might refuse all that follows
    for (const [key, entry] of this.#entries) await putBack(client, entry, found.get(key));
    await removeIf((entry) => !isWebhook(entry) && !isContainer(entry));
    await removeIf(isContainer);
    return new Set(surplus.map(({ resource }) => resource.kind));
  }
}

/** The objects of a kind; none if the kind has just been deleted, which its discovery shows later. */
async function listAll(client: Client, resource: Resource): Promise<readonly Entry['object'][]> {
  try {
    return (await client.list(resource)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Every kind whose objects can be listed and deleted, in one version. */
async function resourcesOf({ transport }: Client): Promise<Resource[]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
  const lists = await Promise.all(['/api', '/apis'].map((path) => transport.request({ method: 'GET', path, accept })));
  const found = new Map<string, Resource>();
  for (const { metadata, versions } of (lists as { items: GroupDiscovery[] }[]).flatMap(({ items }) => items)) {
    const group = metadata?.name ?? '';
    for (const { version, resources = [] } of versions)
      for (const { resource: plural, scope, verbs, responseKind } of resources) {
        if (found.has(`${group}/${plural}`) || !['list', 'delete'].every((verb) => verbs.includes(verb))) continue;
        const { kind } = responseKind;
        found.set(`${group}/${plural}`, { group, version, plural, kind, namespaced: scope === 'Namespaced' });
      }
  }
  return [...found.values()];
}

function isOfServer({ object }: Entry): boolean {
  const { managedFields = [] } = object.metadata;
  return managedFields.length > 0 && managedFields.every(({ manager }) => manager === 'kube-apiserver');
}

async function remove(client: Client, { resource, object: { metadata } }: Entry): Promise<void> {
  const isCrd = resource.kind === 'CustomResourceDefinition'; // its finalizer deletes the objects of its kind
  const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
  // a policy may not see at once that its parameters are there again
  if (metadata.finalizers !== undefined && !isCrd)
    await until(`${metadata.name} has no finalizer`, () => client.patch(resource, metadata, patch));
  await client.delete(resource, metadata, { gracePeriodSeconds: 0 });
  if (isCrd) await until(`${metadata.name} is gone`, async () => !(await client.find(resource, metadata)));
  if (resource.kind === 'Namespace') await endDeletion(client, metadata.name);
}

/** Ends the deletion of a namespace. Without a controller-manager, nobody else does. */
export async function endDeletion({ transport }: Client, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name }, spec: { finalizers: [] } };
  await transport.request({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, body });
}

async function putBack(client: Client, { resource, object }: Entry, found: Entry | undefined): Promise<void> {
  const content = contentOf(object);
  if (found === undefined) {
    await client.create(resource, content);
  } else if (!isDeepStrictEqual(contentOf(found.object), content)) {
    const { resourceVersion } = found.object.metadata;
    await client.replace(resource, { ...content, metadata: { ...content.metadata, resourceVersion } } as KubeObject);
  }
}

/** The object without what the API server writes. */
function contentOf(object: KubeObject): KubeObject {
  const { name, namespace, labels, annotations, finalizers } = object.metadata;
  const content = { ...object, metadata: { name, namespace, labels, annotations, finalizers } };
  return JSON.parse(JSON.stringify({ ...content, status: undefined })) as KubeObject;
}
