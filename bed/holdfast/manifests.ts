import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { type Manifest, readManifests, resourceOf } from '../control-plane/objects.js';
import type { Client } from '../../kube/client.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import { until } from '../processes/wait.js';

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
}

/** The folder of the shipped manifests. */
export const MANIFESTS = join(import.meta.dirname, '..', '..', 'manifests');

/**
 * Reads everything that an installation applies: the kinds, then the workloads.
 * @param folder of the manifests; those of another version may be one kustomization
 */
export async function readInstallation(folder = MANIFESTS): Promise<Manifest[]> {
  const roots = ['crds', 'base'].map((name) => join(folder, name));
  const isSplit = roots.every((root) => existsSync(join(root, 'kustomization.yaml')));
  return (await Promise.all((isSplit ? roots : [folder]).map(readKustomization))).flat();
}

/** Reads the objects of a kustomization in order, as `kubectl kustomize` prints them for a base without patches. */
export async function readKustomization(folder: string): Promise<Manifest[]> {
  const kustomization = parse(await readFile(join(folder, 'kustomization.yaml'), 'utf8')) as Kustomization;
  const objects = await Promise.all(
    [...(kustomization.resources ?? []), ...(kustomization.components ?? [])].map((entry) => {
      const path = join(folder, entry);
      return entry.endsWith('.yaml') ? readManifests(path) : readKustomization(path);
    }),
  );
  return objects.flat();
}

/** Applies objects one after the other, as `kubectl apply --server-side` does. */
export async function applyManifests(client: Client, objects: readonly Manifest[]): Promise<void> {
  for (const object of objects) {
    // the API server may not see a new namespace or kind at once
    await until(`${object.kind} ${object.metadata.name} is applied`, () => applyOnce(client, object));
  }
}

async function applyOnce(client: Client, object: Manifest): Promise<boolean> {
  const { name, namespace } = object.metadata;
  try {
    const patch = { type: 'apply', object, fieldManager: 'holdfast-install', force: true } as const;
    await client.patch(resourceOf(object), { name, namespace }, patch);
    return true;
  } catch (error) {
    if (isNotFound(error) || isConflict(error)) return false;
    throw error;
  }
}

/** Of a Deployment whose processes run on this machine: Kubernetes creates no pods. */
export function withoutReplicas(object: Manifest): Manifest {
  return object.kind === 'Deployment' ? { ...object, spec: { ...(object.spec as object), replicas: 0 } } : object;
}
