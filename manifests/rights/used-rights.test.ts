import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Manifest } from '../../bed/control-plane/objects.js';
import type { Resource } from '../../kube/resource.js';
import * as resources from '../../kube/resources.js';
import { EVENTS } from '../../kube/events.js';
import { LEASES } from '../../kube/leader-election.js';
import { importsOf } from '../../test/repository/layers.js';
import { ROOT } from '../../test/source-files.js';
import { MANIFESTS, readKustomization } from '../../bed/holdfast/manifests.js';

interface Rule {
  resources: string[];
  verbs: string[];
}
type RbacManifest = Manifest & {
  rules?: Rule[];
  roleRef?: { kind: string; name: string };
  subjects?: { name: string }[];
};

const PROCESSES = {
  controller: 'controller/main.ts',
  webhook: 'webhook/main.ts',
  ipam: 'ipam/main.ts',
  agent: 'cni/agent/main.ts',
  capacity: 'capacity/main.ts',
  guest: 'guest/main.ts',
  responder: 'guest/responder-process/main.ts',
};
/** Loaded by every process, by holdfast.ts. */
const EVERY_PROCESS = 'monitoring/serve-metrics.ts';
const CONSTANTS = { ...resources, EVENTS, LEASES } as unknown as Record<string, Resource>;
const NAME = Object.keys(CONSTANTS)
  .sort((a, b) => b.length - a.length)
  .join('|');
const WATCH = ['list', 'watch'];

/** How code names a resource, and the verbs that this needs. Constants of watches count only if an informer uses them. */
const USES: [pattern: string, verbs: string[]][] = [
  // reads of the agent's read cache, or of the constant only; before the live lists
  [String.raw`(?:this\.#get|reads\.(?:get|list)|[cC]ache\.list|\bapiVersionOf)\(\s*(NAME)\b`, []],
  [String.raw`\.create\(\s*(NAME)\b`, ['create']],
  [String.raw`\.replace\(\s*(NAME)\b`, ['update']],
  [String.raw`\.patch\(\s*(NAME)\b`, ['patch']],
  [String.raw`\.delete\(\s*(NAME)\b`, ['delete']],
  [String.raw`\.(?:get|find|#find|read)\(\s*(NAME)\b`, ['get']],
  [String.raw`\bfindUnlessGone(?:<\w+>)?\(\s*[\w.#]+,\s*(NAME)\b`, ['get']],
  [String.raw`\.list(?:As)?\(\s*(NAME)\b`, ['list']],
  // targets of a live read
  [String.raw`\bfindInto\((NAME),`, ['get']],
  [String.raw`new NamedObjects\(\{ \.\.\.\w+, resource: (NAME)\b`, ['get']],
  // the certificate store reads, watches and patches the configurations that it is given
  [String.raw`\{ resource: (NAME), name: config\.`, ['get', ...WATCH, 'patch']],
  // kinds of a lease's owner, which the collector reads live, and of what an agent reads again
  [String.raw`\b(?:IPAMClaim|Pod|vmi|vm|claim): (NAME)\b`, ['get']],
  [String.raw`\bisProofOfAbsence\(error, (NAME)\b`, []],
  [String.raw`\bconst \{ kind \} = (NAME);`, []],
];
/** `const VMS: Watched<…> = { resource: VIRTUAL_MACHINES, …`: used if an informer or another watch is made of it. */
const WATCHED = /\bexport const (\w+)(?:: [^=]+)? = \{\s*resource: (\w+),/g;
const WATCHED_HERE = new RegExp(String.raw`\bresource: (${NAME}),`, 'g');

/** Shared code that a process imports and does not call. */
const UNCALLED: Partial<Record<keyof typeof PROCESSES, string[]>> = {
  agent: ['delete addressleases'],
  guest: ['list configmaps', 'watch configmaps'],
  capacity: [
    ...['create addressleases', 'patch addressleases', 'delete addressleases'],
    // it records none, although components that lead may
    ...['create events', 'patch events'],
  ],
};

/** Rights that processes of the previous version need beside this one. Remove them in the next version. */
const OF_PREVIOUS_VERSION: Partial<Record<string, string[]>> = {
  agent: ['list network-attachment-definitions', 'watch network-attachment-definitions'],
};

/** All source files that a process loads. */
async function textsOf(file: string, texts = new Map<string, string>()): Promise<Map<string, string>> {
  if (texts.has(file)) return texts;
  const text = await readFile(join(ROOT, file), 'utf8');
  texts.set(file, text);
  for (const { target } of importsOf(file, text))
    if (target !== undefined && 'path' in target) await textsOf(target.path, texts);
  return texts;
}

/** What the source files of a process do with resources: `verb plural`, and mentions of resources that no pattern explains. */
function rightsIn(texts: ReadonlyMap<string, string>): { used: Set<string>; unexplained: string[] } {
  const used = new Set<string>();
  const need = (name: string, verbs: string[]) => {
    for (const verb of verbs) used.add(`${verb} ${CONSTANTS[name]?.plural}`);
    return '';
  };
  const all = [...texts.values()].join('\n');
  const unexplained: string[] = [];
  for (const [file, text] of texts) {
    let rest = text
      .replaceAll(/^import [^;]+;$/gm, '')
      .replaceAll(/^export const \w+(: Resource\b| = (namespaced|cluster)Resource\b)/gm, '')
      // the discovery document, which every identity may read
      .replaceAll(/\bareServed\([^)]*\)/g, '')
      .replaceAll(/\/\*\*[^]*?\*\/|\s\/\/ .*/g, '');
    for (const [pattern, verbs] of USES)
      rest = rest.replaceAll(new RegExp(pattern.replace('NAME', NAME), 'g'), (_, name: string) => need(name, verbs));
    rest = rest.replaceAll(WATCHED, (_, watched: string, name: string) =>
      need(
        name,
        new RegExp(String.raw`(?:informers\.get|gate\.informer)\(\s*${watched}\b|\.\.\.${watched}\b`).test(all)
          ? WATCH
          : [],
      ),
    );
    rest = rest.replaceAll(WATCHED_HERE, (_, name: string) => need(name, WATCH));
    for (const [mention] of rest.matchAll(new RegExp(String.raw`.*\b(?:${NAME})\b.*`, 'g')))
      unexplained.push(`${file}: ${mention.trim()}`);
  }
  return { used, unexplained };
}

/** `verb plural` for each right that the roles give to the identity of a process. */
async function granted(process: string): Promise<string[]> {
  const manifests = (await readKustomization(join(MANIFESTS, 'base'))) as RbacManifest[];
  const bound = manifests
    .filter(({ subjects = [] }) => subjects.some(({ name }) => name === `holdfast-${process}`))
    .map(({ roleRef }) => `${roleRef?.kind} ${roleRef?.name}`);
  return (
    manifests
      .filter(({ kind, metadata }) => bound.includes(`${kind} ${metadata.name}`))
      .flatMap(({ rules = [] }) => rules)
      .flatMap((rule) =>
        rule.resources
          // the API server asks for this one when an owner's deletion is blocked
          .filter((resource) => !resource.endsWith('/finalizers'))
          .flatMap((resource) => rule.verbs.map((verb) => `${verb} ${resource.replace('/status', '')}`)),
      )
      // no verb of the API server: policies ask for it
      .filter((right) => !right.startsWith('serve '))
  );
}

describe('the rights of the roles', () => {
  for (const [process, main] of Object.entries(PROCESSES)) {
    it(`are all used by the code of the ${process} process`, async () => {
      const { used } = rightsIn(await textsOf(EVERY_PROCESS, await textsOf(main)));
      const rights = await granted(process);
      expect(rights).not.to.be.empty;
      expect(rights.filter((right) => !used.has(right))).to.deep.equal(OF_PREVIOUS_VERSION[process] ?? []);
    });

    it(`are sufficient for the code of the ${process} process`, async () => {
      const { used, unexplained } = rightsIn(await textsOf(EVERY_PROCESS, await textsOf(main)));
      const rights = [...(await granted(process)), ...(UNCALLED[process as keyof typeof PROCESSES] ?? [])];
      expect(unexplained, 'mentions of resources that no pattern of this test knows').to.deep.equal([]);
      expect([...used].filter((right) => !rights.includes(right))).to.deep.equal([]);
    });
  }
});
