import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { ROOT, findFiles } from '../../test/source-files.js';
import { HEALTHY, workloadOf } from '../testing/healthy-cluster.js';
import { POLICY_NAMES, neededPolicies } from './check-admission.js';
import { crdFieldsOf } from './check-cluster.js';
import { CRD_FIELDS } from './crd-fields.js';
import type { JsonSchema } from '../installation.js';
import { NEEDED_RIGHTS } from './probe.js';

const READS = new Set(['get', 'list', 'watch']);

describe('what kubectl holdfast doctor expects', () => {
  /** Of files with `part` in their paths. */
  async function documentsIn(folder: string, part = ''): Promise<Manifest[]> {
    const files = (await findFiles('.yaml', join(ROOT, folder))).filter((path) => path.includes(part));
    const texts = await Promise.all(files.map((path) => readFile(join(ROOT, path), 'utf8')));
    return texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS() as Manifest));
  }

  async function rolesOf(): Promise<Manifest[]> {
    return (await documentsIn('manifests/base', '/rbac/')).filter(({ kind }) => kind === 'ClusterRole');
  }

  it('are the fields of the shipped kinds', async () => {
    const crds = (await documentsIn('manifests/crds')).filter(({ spec }) => spec?.group === 'ipam.holdfast.dev');
    const fields = crds.map(({ metadata, spec }) => {
      const { properties = {} } = spec!.versions![0]!.schema.openAPIV3Schema;
      return [metadata.name, ['spec', 'status'].flatMap((part) => pathsOf(part, properties[part] ?? {})).sort()];
    });
    const expected = Object.keys(CRD_FIELDS).map((name) => [name, crdFieldsOf(name).sort()]);
    expect(Object.fromEntries(fields)).to.deep.equal(Object.fromEntries(expected));
  });

  it('are the shipped policies', async () => {
    const all = [...(await documentsIn('manifests/crds')), ...(await documentsIn('manifests/base', '/policies/'))];
    const names = all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy').map(({ metadata }) => metadata.name);
    expect([...POLICY_NAMES].sort()).to.deep.equal(names.sort());
  });

  it('are the policies that an installation of only controller and webhook keeps', async () => {
    const all = [...(await documentsIn('manifests/crds')), ...(await documentsIn('manifests/base/claims'))];
    const kept = all.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy').map(({ metadata }) => metadata.name);
    const workloads = ['controller', 'webhook'].map((component) => workloadOf(component));
    expect([...neededPolicies({ ...HEALTHY, workloads })].sort()).to.deep.equal(kept.sort());
  });

  it('are all writes that the shipped roles of processes grant, without those of events, reviews and blocks', async () => {
    const isLeftOut = (resource: string) =>
      /^(events|.*reviews|addressblocks|.*webhookconfigurations)(\/|$)/.test(resource);
    for (const { metadata, rules = [] } of await rolesOf()) {
      const known = NEEDED_RIGHTS[metadata.name.replace('holdfast-', '')];
      if (known === undefined) continue;
      const writes = rules.flatMap(({ apiGroups, resources, verbs }) =>
        apiGroups.flatMap((group) =>
          resources
            .filter((resource) => !isLeftOut(resource))
            .flatMap((resource) => verbs.filter((verb) => !READS.has(verb)).map((verb) => ({ verb, group, resource }))),
        ),
      );
      expect(known, metadata.name).to.deep.include.members(writes);
    }
  });

  it('are rights that the shipped roles grant', async () => {
    const roles = await rolesOf();
    for (const [component, rights] of Object.entries(NEEDED_RIGHTS)) {
      if (component === 'all') continue;
      const rules = roles.find(({ metadata }) => metadata.name === `holdfast-${component}`)?.rules ?? [];
      for (const { verb, group, resource } of rights) {
        const granted = rules.some(
          (rule) => rule.apiGroups.includes(group) && rule.resources.includes(resource) && rule.verbs.includes(verb),
        );
        expect(granted, `${component}: ${verb} ${resource}`).to.equal(true);
      }
    }
  });
});

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly rules?: readonly { apiGroups: string[]; resources: string[]; verbs: string[] }[];
  readonly spec?: {
    readonly group?: string;
    readonly versions?: readonly { schema: { openAPIV3Schema: JsonSchema } }[];
  };
}

function pathsOf(path: string, { properties = {} }: JsonSchema): string[] {
  return Object.entries(properties).flatMap(([name, field]) => {
    const own = `${path}.${name}`;
    return [own, ...(name === 'conditions' ? [] : pathsOf(own, field.items ?? field))];
  });
}
