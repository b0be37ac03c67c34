import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { KEPT_POLICY } from '../cli/uninstall/plan.js';
import { readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { Installation, type Shipped } from './testing/installation.js';

/** By the names of their objects. */
const OWN_NAMESPACES = [
  [/^holdfast-agent/, 'holdfast-agents'],
  [/^holdfast-(responder|guest-responders)/, 'holdfast-responders'],
] as const;

/** Of kinds that only Holdfast and other IPAMs write. */
const OWN_GROUPS = new Set(['ipam.holdfast.dev', 'k8s.cni.cncf.io']);

interface PolicySpec {
  policyName?: string;
  paramRef?: { parameterNotFoundAction: string };
  matchConstraints?: { namespaceSelector?: object; resourceRules?: { apiGroups: string[] }[] };
}

const PARTS = ['base/claims', 'base/ipam', 'base/capacity', 'base/guest'];
/** Patches of all parts, without objects. */
const PATCHES = ['base/labels', 'base/pods'];

describe('the manifests', () => {
  let files: string[] = [];
  let shipped: Installation;
  let objects: readonly Shipped[] = [];

  before(async () => {
    const entries = await readdir(MANIFESTS, { recursive: true });
    files = entries.filter((path) => /^(base|crds|samples)\/.*\.yaml$/.test(path));
    shipped = await Installation.read();
    objects = shipped.objects;
  });

  it('are in one part of the base each, which the base adds up', async () => {
    const { resources, components } = await kustomizationOf('base');
    expect(resources).to.equal(undefined);
    expect(components.map((name) => `base/${name}`)).to.deep.equal(PARTS);
    const parts = new Set(files.map((path) => path.split('/').slice(0, 2).join('/')));
    expect([...parts].filter((path) => path.startsWith('base/')).sort()).to.deep.equal(
      [...PARTS, ...PATCHES, 'base/kustomization.yaml'].sort(),
    );
    for (const part of PARTS) {
      const patched = (await kustomizationOf(part)).components;
      expect(patched.map((path) => join(part, path))).to.deep.equal(PATCHES);
    }
    const patching = files.filter((path) => PATCHES.some((folder) => path.startsWith(`${folder}/`)));
    expect(patching.sort()).to.deep.equal(PATCHES.map((folder) => `${folder}/kustomization.yaml`));
  });

  it('have their label also if they are applied alone, as the documents say', async () => {
    const page = await readFile('docs/how-to/troubleshoot.md', 'utf8');
    const alone = new Set(page.match(/manifests\/base\/[\w/-]+\.yaml/g));
    expect(alone.size).to.be.greaterThan(2);
    for (const path of alone)
      for (const { metadata } of await readManifests(path))
        expect(metadata.labels, path).to.include({ 'app.kubernetes.io/name': 'holdfast' });
  });

  for (const [folder, apart] of [...PARTS.map((part) => [part, []] as const), ['crds', ['ipamclaims.yaml']] as const]) {
    it(`are all in the kustomization of ${folder}, except ${apart.join() || 'none'}`, async () => {
      const { resources } = await kustomizationOf(folder);
      const found = files.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.slice(folder.length + 1));
      expect([...resources, ...apart, 'kustomization.yaml'].sort()).to.deep.equal(found.sort());
    });
  }

  async function kustomizationOf(folder: string): Promise<{ resources: string[]; components: string[] }> {
    return parse(await readFile(join(MANIFESTS, folder, 'kustomization.yaml'), 'utf8')) as never;
  }

  it('stop nothing of other software while the parameters of policies are missing', async () => {
    const read = await Promise.all(
      files.filter((path) => path.includes('/policies/')).map((path) => readManifests(join(MANIFESTS, path))),
    );
    const all = read.flat() as unknown as { kind: string; metadata: { name: string }; spec: PolicySpec }[];
    const denying = all.filter(
      ({ spec }) => (spec as PolicySpec | undefined)?.paramRef?.parameterNotFoundAction === 'Deny',
    );
    expect(denying).not.to.be.empty;
    for (const { metadata, spec } of denying) {
      const { matchConstraints = {} } = all.find((each) => each.metadata.name === spec.policyName && each.kind === "ValidatingAdmissionPolicy")!.spec; // oxfmt-ignore
      const isOfHoldfast = matchConstraints.resourceRules?.every(({ apiGroups }) => apiGroups.every((group) => OWN_GROUPS.has(group))); // oxfmt-ignore
      // conditions are looked at after the parameters
      expect(isOfHoldfast || matchConstraints.namespaceSelector !== undefined, metadata.name).to.equal(true);
    }
  });

  it('contain only named objects', async () => {
    for (const file of files.filter((path) => !path.endsWith('kustomization.yaml'))) {
      const found = await readManifests(join(MANIFESTS, file));
      expect(found, file).not.to.be.empty;
      for (const { apiVersion, kind, metadata } of found) {
        expect([apiVersion, kind, metadata.name].every(Boolean), file).to.equal(true);
      }
    }
  });

  it('define each object once', () => {
    const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(new Set(keys).size).to.equal(keys.length);
  });

  it('put agents and responders into namespaces of their own and all other namespaced objects into a third, and create them', () => {
    const made = objects.filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata.name);
    expect(made).to.have.members(['holdfast-system', 'holdfast-agents', 'holdfast-responders']);
    for (const { kind, metadata } of objects.filter((object) => object.metadata.namespace !== undefined)) {
      const home = OWN_NAMESPACES.find(([name]) => name.test(metadata.name))?.[1] ?? 'holdfast-system';
      expect(metadata.namespace, `${kind} ${metadata.name}`).to.equal(home);
    }
  });

  it('bind each policy, to parameters that exist', () => {
    const policies = objects.filter(
      ({ kind, metadata }) => kind === 'ValidatingAdmissionPolicy' && metadata.name !== KEPT_POLICY.name,
    );
    expect(policies).not.to.be.empty;
    for (const { metadata, spec } of policies) {
      const { paramKind, failurePolicy } = spec;
      const binding = shipped.find('ValidatingAdmissionPolicyBinding', metadata.name);
      expect(binding.spec.policyName).to.equal(metadata.name);
      expect(failurePolicy).to.equal('Fail');
      expect(binding.spec.paramRef === undefined, metadata.name).to.equal(paramKind === undefined);
      if (binding.spec.paramRef === undefined) continue;
      const { name, selector, parameterNotFoundAction } = binding.spec.paramRef;
      if (paramKind?.kind === 'AddressPool') {
        // no pool, nothing to guard
        shipped.find('CustomResourceDefinition', 'addresspools.ipam.holdfast.dev');
        expect({ selector, parameterNotFoundAction }).to.deep.equal({ selector: {}, parameterNotFoundAction: 'Allow' });
      } else {
        shipped.find('ConfigMap', name);
        // launchers are admitted without parameters, and launcher-creator needs none
        const wanted = metadata.name === 'holdfast-launcher-owner' ? 'Allow' : 'Deny';
        expect(parameterNotFoundAction, metadata.name).to.equal(wanted);
      }
    }
  });

  it('bind the policy that stays with the kinds to the kind of the parameters, and let it match no request', () => {
    const { spec } = shipped.find('ValidatingAdmissionPolicy', KEPT_POLICY.name);
    const guard = shipped.find('ValidatingAdmissionPolicy', 'holdfast-claim-guard');
    expect(spec.paramKind).to.deep.equal(guard.spec.paramKind);
    const apiGroups = ['ipam.holdfast.dev'];
    // with the defaults of the API server, so that another tool can take the policy over without a conflict
    expect(spec).to.have.deep.property('matchConstraints', {
      ...{ matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} },
      resourceRules: [{ apiGroups, apiVersions: ['*'], resources: ['none'], operations: ['CREATE'], scope: '*' }],
    });
    const binding = shipped.find('ValidatingAdmissionPolicyBinding', KEPT_POLICY.name);
    expect(binding.spec.policyName).to.equal(KEPT_POLICY.name);
  });
});
