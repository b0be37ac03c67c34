import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Manifest, readManifests } from '../e2e/bed/objects.js';
import * as resources from '../kube/resources.js';
import { importsOf } from '../test/layers.js';
import { ROOT } from '../test/source-files.js';
import { MANIFESTS } from '../e2e/holdfast/manifests.js';

interface Rule {
  resources: string[];
  verbs: string[];
}

const PROCESSES = {
  controller: 'controller/main.ts',
  webhook: 'webhook/main.ts',
  ipam: 'ipam/main.ts',
  agent: 'cni/agent/main.ts',
  capacity: 'ipam/capacity/main.ts',
};
/** Methods of the client, and the verbs that they need. */
const WRITES: Record<string, string> = { create: 'create', replace: 'update', patch: 'patch', delete: 'delete' };
const CALL = /\.(create|replace|patch|delete)\(\s*([A-Z][A-Z_]+)\b/g;
/** The certificate store patches the configurations that it is given. */
const CONFIGURATION = /\b(MUTATING|VALIDATING)_WEBHOOK_CONFIGURATIONS, name: config\./g;
/** Constants of other files. */
const PLURALS: Record<string, string> = { EVENTS: 'events', LEASES: 'leases' };

/** All source files that a process loads. */
async function textsOf(file: string, texts = new Map<string, string>()): Promise<Map<string, string>> {
  if (texts.has(file)) return texts;
  const text = await readFile(join(ROOT, file), 'utf8');
  texts.set(file, text);
  for (const { target } of importsOf(file, text))
    if (target !== undefined && 'path' in target) await textsOf(target.path, texts);
  return texts;
}

function pluralOf(constant: string): string {
  return (
    PLURALS[constant] ?? (resources as unknown as Record<string, { plural: string }>)[constant]?.plural ?? constant
  );
}

/** `verb plural` for each write of the client that the source names. */
function writesIn(text: string): string[] {
  const calls = [...text.matchAll(CALL)].map(([, method = '', name = '']) => `${WRITES[method]} ${pluralOf(name)}`);
  const patched = [...text.matchAll(CONFIGURATION)].map(
    ([, kind = '']) => `patch ${pluralOf(`${kind}_WEBHOOK_CONFIGURATIONS`)}`,
  );
  return [...calls, ...patched];
}

describe('the rights to write that the roles grant', () => {
  for (const [process, main] of Object.entries(PROCESSES)) {
    it(`are all used by the code of the ${process}`, async () => {
      const used = new Set([...(await textsOf(main)).values()].flatMap(writesIn));
      const roles = (await readManifests(join(MANIFESTS, 'rbac', `${process}.yaml`))) as (Manifest & {
        rules?: Rule[];
      })[];
      const granted = roles.flatMap(({ rules = [] }) =>
        rules.flatMap((rule) =>
          rule.resources
            // the API server asks for this one when an owner's deletion is blocked
            .filter((resource) => !resource.endsWith('/finalizers'))
            .flatMap((resource) => rule.verbs.map((verb) => `${verb} ${resource.replace('/status', '')}`)),
        ),
      );
      const writes = granted.filter((right) => Object.values(WRITES).includes(right.split(' ')[0] ?? ''));
      expect(writes).not.to.be.empty;
      expect(writes.filter((right) => !used.has(right))).to.deep.equal([]);
    });
  }
});
