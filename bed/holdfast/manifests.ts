import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import jsonpatch, { type Operation } from 'fast-json-patch';
import { parse } from 'yaml';
import { type Manifest, readManifests, resourceOf } from '../control-plane/objects.js';
import type { Client } from '../../kube/client.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import { mergePatch } from '../../test/merge-patch.js';
import { until } from '../processes/wait.js';

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly patches?: readonly { readonly target: { kind: string; name: string }; readonly patch: string }[];
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

/** Reads the objects of a kustomization in order, as `kubectl kustomize` prints them for the base: its patches are JSON patches, or add labels. */
export async function readKustomization(folder: string): Promise<Manifest[]> {
  const objects: Manifest[] = [];
  await addKustomization(folder, objects);
  return objects;
}

/** A component also patches the objects before it. */
async function addKustomization(folder: string, objects: Manifest[]): Promise<void> {
  const kustomization = parse(await readFile(join(folder, 'kustomization.yaml'), 'utf8')) as Kustomization;
  for (const entry of [...(kustomization.resources ?? []), ...(kustomization.components ?? [])]) {
    const path = join(folder, entry);
    if (entry.endsWith('.yaml')) objects.push(...(await readManifests(path)));
    else await addKustomization(path, objects);
  }
  for (const { target, patch } of kustomization.patches ?? []) {
    const pattern = new RegExp(`^(${target.kind}) (${target.name})$`);
    const change = parse(patch) as Operation[] | Manifest;
    for (const object of objects.filter(({ kind, metadata }) => pattern.test(`${kind} ${metadata.name}`))) {
      if (Array.isArray(change)) jsonpatch.applyPatch(object, change);
      else mergePatch(object, { metadata: { labels: change.metadata.labels } });
    }
  }
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
