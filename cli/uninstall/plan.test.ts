import { expect } from 'chai';
import type { ObjectMeta } from '../../api/meta.js';
import { CONFIG_MAPS, NAMESPACES } from '../../kube/resources.js';
import type { ObservedData, ObservedInstallation } from './plan.js';
import { type UninstallOptions, planUninstall } from './plan.js';
import { STAGES } from './stages.js';

const PLAIN: UninstallOptions = { everything: false, ignoreRunningPods: false, yes: false, dryRun: false };
const EVERYTHING: UninstallOptions = { ...PLAIN, everything: true };
const NOTHING: ObservedData = {
  claims: [],
  otherClaims: 0,
  pools: 0,
  blocks: 0,
  leases: 0,
  users: [],
  nads: [],
  nodes: [],
  crds: [],
  keptPolicy: [],
};

/** An installation of one ConfigMap and one namespace. */
function observed(
  given: Partial<ObservedInstallation> & { metadata?: Partial<ObjectMeta> } = {},
): ObservedInstallation {
  const { metadata, ...rest } = given;
  const stages = STAGES.map((stage) => ({
    stage,
    objects: [
      ...(stage.kinds.includes(CONFIG_MAPS)
        ? [
            {
              resource: CONFIG_MAPS,
              metadata: { namespace: 'holdfast-system', name: 'holdfast-policies', ...metadata },
            },
          ]
        : []),
      ...(stage.kinds.includes(NAMESPACES) ? [{ resource: NAMESPACES, metadata: { name: 'holdfast-system' } }] : []),
    ],
  }));
  return {
    namespaces: new Set(['holdfast-system']),
    stages,
    sharedNamespaces: [],
    pluginFolder: undefined,
    data: undefined,
    ...rest,
  };
}

describe('the plan of an uninstallation', () => {
  for (const [tool, metadata, remedy] of [
    [
      'Helm',
      { annotations: { 'meta.helm.sh/release-name': 'hf', 'meta.helm.sh/release-namespace': 'net' } },
      'helm uninstall hf -n net',
    ],
    [
      'Flux',
      { labels: { 'kustomize.toolkit.fluxcd.io/name': 'hf', 'kustomize.toolkit.fluxcd.io/namespace': 'ops' } },
      'flux delete kustomization hf -n ops',
    ],
    [
      'Flux',
      { labels: { 'helm.toolkit.fluxcd.io/name': 'hf' }, annotations: { 'meta.helm.sh/release-name': 'hf' } },
      'flux delete helmrelease hf -n flux-system',
    ],
    [
      'Argo CD',
      { annotations: { 'argocd.argoproj.io/tracking-id': 'hf:/ConfigMap:holdfast-system/holdfast-policies' } },
      'argocd app delete hf',
    ],
    ['Argo CD', { labels: { 'argocd.argoproj.io/instance': 'hf' } }, 'argocd app delete hf'],
    ['OLM', { labels: { 'olm.owner': 'holdfast.v1' } }, 'ClusterServiceVersion holdfast.v1'],
  ] as const) {
    it(`refuses what ${tool} manages, and says: ${remedy}`, () => {
      const { refusals } = planUninstall(observed({ metadata }), PLAIN);
      expect(refusals).to.have.length(1);
      expect(refusals[0])
        .to.match(new RegExp(`^${tool} manages`))
        .and.include(remedy)
        .and.include('ConfigMap holdfast-system/holdfast-policies');
    });
  }

  it('refuses nothing for objects that kubectl applied', () => {
    expect(planUninstall(observed({ metadata: { annotations: { note: 'ours' } } }), PLAIN).refusals).to.deep.equal([]);
  });

  it('keeps a shared namespace', () => {
    const sharedNamespaces = [{ name: 'holdfast-system', content: 'Pod debug' }];
    const { stages, keptNamespaces } = planUninstall(observed({ sharedNamespaces }), PLAIN);
    expect(stages.flatMap(({ objects }) => objects.map(({ metadata }) => metadata.name))).to.deep.equal([
      'holdfast-policies',
    ]);
    expect(keptNamespaces).to.deep.equal(sharedNamespaces);
  });

  it('shortens a long list of pods', () => {
    const users = Array.from({ length: 7 }, (_, index) => ({ pod: `a/p${index}` }));
    const [refusal] = planUninstall(observed({ data: { ...NOTHING, users } }), EVERYTHING).refusals;
    expect(refusal).to.include('(7): a/p0, a/p1, a/p2, a/p3, a/p4, and 2 more');
  });

  for (const [title, data, isEmpty] of [
    ['nothing at all', NOTHING, true],
    ['claims of other software', { ...NOTHING, otherClaims: 3, nads: ['a/b'] }, true],
    ['a kind without objects', { ...NOTHING, crds: ['addresspools.ipam.holdfast.dev'] }, false],
    ['resources on a node', { ...NOTHING, nodes: ['node-1'] }, false],
    ['a claim', { ...NOTHING, claims: ['a/b'] }, false],
  ] as const) {
    it(`is ${isEmpty ? '' : 'not '}empty with ${title} left`, () => {
      const stages = STAGES.map((stage) => ({ stage, objects: [] }));
      expect(planUninstall(observed({ stages, data }), EVERYTHING).isEmpty).to.equal(isEmpty);
    });
  }
});
