import { isBuiltin } from 'node:module';
import { posix } from 'node:path';
import ts from 'typescript';

/** One import of a source file, static or dynamic, of values or types. */
export interface Import {
  readonly file: string;
  /** As written. */
  readonly specifier: string;
  /** A path from the root for our own files; the package's name; undefined for Node's own modules. */
  readonly target: { readonly path: string } | { readonly package: string } | undefined;
}

interface LayerRule {
  /** A folder, or a file. The longest match is a file's layer. */
  readonly root: string;
  /** Folders or files that it may import, besides itself. */
  readonly imports: readonly string[];
}

const SHARED = ['api', 'kube', 'process', 'cluster', 'addressing', 'addressing/directory'];

/** Which layer may import which. Each process has a folder, and processes never import each other. */
const LAYERS: readonly LayerRule[] = [
  { root: 'api', imports: [] },
  { root: 'kube', imports: ['api'] },
  { root: 'process', imports: ['api', 'kube'] },
  { root: 'tls', imports: ['api', 'kube'] },
  { root: 'admission', imports: ['api', 'kube', 'process', 'tls'] },
  { root: 'monitoring', imports: ['api', 'kube', 'process', 'tls'] },
  { root: 'cluster', imports: ['api', 'kube', 'process'] },
  { root: 'addressing', imports: ['api'] },
  { root: 'addressing/directory', imports: ['api', 'kube', 'cluster', 'addressing'] },
  { root: 'controller', imports: ['api', 'kube', 'process', 'cluster'] },
  { root: 'webhook', imports: [...SHARED, 'admission'] },
  { root: 'ipam', imports: [...SHARED, 'admission'] },
  { root: 'capacity', imports: SHARED },
  { root: 'guest', imports: SHARED },
  { root: 'guest/packets', imports: [] },
  { root: 'cni/plugin', imports: [] },
  { root: 'cni', imports: SHARED },
  {
    root: 'cli',
    imports: [
      'api',
      'kube',
      'cluster/lease-writes.ts',
      'cluster/metadata.ts',
      'cluster/share.ts',
      'addressing',
      'process/docs-url.ts',
      'process/listening.ts',
      'process/read-arguments.ts',
      'process/version.ts',
      'tls/pem.ts',
    ],
  },
  {
    root: 'holdfast.ts',
    imports: [
      'process',
      'kube/errors.ts',
      'monitoring/serve-metrics.ts',
      'cni/agent/installation/install.ts',
      ...['controller', 'webhook', 'ipam', 'capacity', 'guest', 'guest/responder-process', 'cni/agent'].map(mainOf),
    ],
  },
];

function mainOf(folder: string): string {
  return `${folder}/main.ts`;
}

/** The files that may import a package: only they change if another one replaces it. */
export const PACKAGE_IMPORTERS: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['kube/transport/credentials.ts'],
  commander: ['process/command-line.ts', 'process/read-arguments.ts', 'cli'],
  express: ['admission', 'cli/ui'],
  'fast-json-patch': ['webhook', 'cli/ui'],
  'ipaddr.js': ['addressing', 'webhook'],
  'node-forge': ['tls/certificates.ts'],
  pino: ['process/log.ts'],
  preact: ['cli/ui/page'],
  'prom-client': ['process', 'monitoring'],
  undici: ['kube'],
  yaml: ['kube/transport/credentials.ts', 'cli', 'guest/network-data'],
};

const TEST_CODE = /^(test|bed|e2e|bench|release)\/|\/testing\/|\.test\.ts$/;
/** Test support that all tests use: the API server in memory. */
const SHARED_SUPPORT = 'kube';
const TESTS = /\.(test|e2e)\.ts$/;

/** Stories, measurements and the tools of releases stand above all other code. */
const TOPS = ['e2e', 'bench', 'release'];

/** Whether a file never runs in a cluster: such code may import all shipped code and any package, and only such code may import it. */
export function isTestCode(path: string): boolean {
  return TEST_CODE.test(path);
}

/** @param file path from the root */
export function importsOf(file: string, text: string): Import[] {
  return ts
    .preProcessFile(text, true, true)
    .importedFiles.map(({ fileName: specifier }) => ({ file, specifier, target: targetOf(file, specifier) }));
}

/** @returns why the import is not allowed; undefined if it is */
export function violationOf(found: Import): string | undefined {
  return isTestCode(found.file) ? testViolationOf(found) : shippedViolationOf(found);
}

function testViolationOf({ file, specifier, target }: Import): string | undefined {
  if (target === undefined || 'package' in target) return undefined;
  const complaint = `${file} imports ${specifier}, which`;
  if (TESTS.test(target.path)) return `${complaint} is a test`;
  const top = TOPS.find((root) => isWithin(target.path, root));
  if (top !== undefined && !isWithin(file, top)) return `${complaint} only ${top}/ may import`;
  const [folder = '', support] = target.path.split('/testing/');
  if (support === undefined || folder === SHARED_SUPPORT) return undefined;
  if ([folder, 'test', ...TOPS].some((root) => isWithin(file, root))) return undefined;
  return `${complaint} is test support of ${folder}/ alone: move it to a folder around both, or to test/`;
}

function shippedViolationOf({ file, specifier, target }: Import): string | undefined {
  if (target === undefined) return undefined;
  const complaint = `${file} imports ${specifier}`;
  if ('package' in target) {
    const homes = PACKAGE_IMPORTERS[target.package] ?? [];
    if (homes.some((home) => isWithin(file, home))) return undefined;
    return `${complaint}: ${target.package} may be imported only by ${homes.join(', ') || 'tests'}`;
  }
  if (isTestCode(target.path)) return `${complaint}, which is test code`;
  const layer = layerOf(file);
  if (layer === undefined) return `${file} belongs to no layer`;
  const allowed = [layer.root, ...layer.imports].some(
    (root) => isWithin(target.path, root) && reaches(layer, target.path),
  );
  return allowed ? undefined : `${complaint}: ${layer.root} may import ${layer.imports.join(', ') || 'itself only'}`;
}

/**
 * Finds circles among imports, of types too.
 * @param nodeOf what is compared: a file itself, or the room that it belongs to
 * @returns the nodes of each circle, in alphabetical order
 */
export function circlesOf(imports: readonly Import[], nodeOf: (path: string) => string): string[][] {
  const targets = new Map<string, Set<string>>();
  for (const { file, target } of imports) {
    if (target === undefined || 'package' in target) continue;
    const [from, to] = [nodeOf(file), nodeOf(target.path)];
    if (from !== to) targets.set(from, (targets.get(from) ?? new Set()).add(to));
  }
  removeLeaves(targets);
  const reachable = new Map([...targets.keys()].map((node) => [node, reachableFrom(node, targets)]));
  const circles = [...reachable].map(([node, found]) =>
    found.has(node) ? [...found].filter((other) => reachable.get(other)?.has(node)).sort() : [],
  );
  return [...new Map(circles.filter(({ length }) => length > 0).map((circle) => [circle.join(), circle])).values()];
}

/** Folders with files above the folders inside, such as `main.ts`, and others below. */
const MIXED_FOLDERS = [
  'api',
  'kube',
  'process',
  'ipam',
  'controller',
  'guest',
  'cni/agent',
  'cli',
  'bed',
  'bed/node',
  'bed/story',
  'bench',
  'e2e/demo',
  'test',
  '.',
];

/** The folder of a file. A file of a mixed folder is a room of its own, and so is a test: it is above its folder and the test support inside. */
export function roomOf(path: string): string {
  const folder = posix.dirname(path);
  return TESTS.test(path) || MIXED_FOLDERS.includes(folder) ? path : folder;
}

/** Removes nodes from which no circle can be reached, because comparing all nodes takes seconds. */
function removeLeaves(targets: Map<string, ReadonlySet<string>>): void {
  let before: number;
  do {
    before = targets.size;
    for (const [node, next] of targets) if (![...next].some((each) => targets.has(each))) targets.delete(node);
  } while (targets.size < before);
}

function reachableFrom(start: string, targets: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const found = new Set<string>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const next of targets.get(node) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return found;
}

/** Whether a path may be imported: a layer inside another one (`addressing/directory` in `addressing`) only if it is listed, or from within. */
function reaches(layer: LayerRule, path: string): boolean {
  const other = layerOf(path);
  return other === undefined || other.root === layer.root || layer.imports.some((root) => isWithin(root, other.root));
}

function layerOf(path: string): LayerRule | undefined {
  const matching = LAYERS.filter(({ root }) => isWithin(path, root));
  return matching.sort((a, b) => b.root.length - a.root.length)[0];
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

function targetOf(file: string, specifier: string): Import['target'] {
  if (specifier.startsWith('.')) {
    return { path: posix.join(posix.dirname(file), specifier).replace(/\.js(x?)$/, '.ts$1') };
  }
  if (isBuiltin(specifier)) return undefined;
  const [scope = '', name = ''] = specifier.split('/');
  return { package: scope.startsWith('@') ? `${scope}/${name}` : scope };
}
