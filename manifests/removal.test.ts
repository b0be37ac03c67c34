import { join } from 'node:path';
import { expect } from 'chai';
import { type Manifest, readManifests } from '../bed/control-plane/objects.js';
import { KEPT_POLICY } from '../cli/uninstall/plan.js';
import { MANIFESTS, readInstallation, readKustomization } from '../bed/holdfast/manifests.js';

/** The annotations by which each tool leaves an object in the cluster. */
const KEPT = {
  'helm.sh/resource-policy': 'keep',
  'argocd.argoproj.io/sync-options': 'Prune=false,Delete=false',
  'kustomize.toolkit.fluxcd.io/prune': 'disabled',
};

describe('For their removal, the manifests', () => {
  let objects: Manifest[] = [];

  before(async () => {
    objects = await readInstallation();
  });

  it('label every object, and name it after Holdfast, so that kubectl holdfast finds it', () => {
    for (const { kind, metadata } of objects) {
      expect(metadata.labels, `${kind} ${metadata.name}`).to.include({ 'app.kubernetes.io/name': 'holdfast' });
      expect(metadata.name, kind).to.match(/^holdfast(-|$)|\.ipam\.holdfast\.dev$/);
    }
  });

  it('make Helm, Argo CD and Flux keep every kind, also that of claims, and the policy that stays with the kinds', async () => {
    const kept = objects.filter(
      ({ kind, metadata }) => kind === 'CustomResourceDefinition' || metadata.name === KEPT_POLICY.name,
    );
    const all = [...kept, ...(await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml')))];
    expect(all).to.have.length(6);
    for (const { metadata } of all) expect(metadata.annotations, metadata.name).to.deep.equal(KEPT);
  });

  it('keep these out of the base, so that kubectl delete -k of the base deletes no lease', async () => {
    const base = await readKustomization(join(MANIFESTS, 'base'));
    expect(base.map(({ metadata }) => metadata.name)).not.to.include(KEPT_POLICY.name);
    expect(base.map(({ kind }) => kind)).not.to.include('CustomResourceDefinition');
  });
});
