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

interface Layer {
  /** A folder, or a file. The longest match is a file's layer. */
  readonly root: string;
  /** Folders or files that it may import, besides itself. */
  readonly below: readonly string[];
}

/** The direction of imports. Processes never import each other. */
const LAYERS: readonly Layer[] = [
  { root: 'api', below: [] },
  { root: 'kube', below: ['api'] },
  { root: 'process', below: ['api', 'kube', 'ipam/core'] },
  { root: 'controller', below: ['api', 'kube', 'process'] },
  { root: 'webhook', below: ['api', 'kube', 'process'] },
  { root: 'ipam/core', below: ['api'] },
  { root: 'ipam/capacity', below: ['api', 'kube', 'process', 'ipam/core'] },
  { root: 'ipam', below: ['api', 'kube', 'process', 'ipam/core'] },
  { root: 'cni/plugin', below: [] },
  { root: 'cni', below: ['api', 'kube', 'process', 'ipam/core'] },
  {
    root: 'cli',
    below: ['api', 'kube', 'ipam/core', 'process/version.ts', 'process/lease-writes.ts', 'process/read-arguments.ts'],
  },
  {
    root: 'holdfast.ts',
    below: [
      'process',
      'kube/errors.ts',
      'controller/main.ts',
      'webhook/main.ts',
      'ipam/main.ts',
      'ipam/capacity/main.ts',
      'cni/agent/main.ts',
    ],
  },
];

/** Where each package is at home: it can be replaced by changing these files only. */
export const HOMES: Readonly<Record<string, readonly string[]>> = {
  '@kubernetes/client-node': ['kube/config.ts'],
  commander: ['process/command-line.ts', 'process/read-arguments.ts', 'cli'],
  express: ['process/admission'],
  'fast-json-patch': ['webhook'],
  'ipaddr.js': ['ipam/core', 'webhook'],
  'node-forge': ['process/admission/certificates.ts'],
  pino: ['process/log.ts'],
  'prom-client': ['process'],
  undici: ['kube'],
  yaml: ['kube/config.ts', 'cli'],
};

const TESTS = /^(test|e2e|bench)\/|\.test\.ts$/;

/** Code that never runs in a cluster: it may import what it likes, and nobody else may import it. */
export function isTestCode(path: string): boolean {
  return TESTS.test(path);
}

/** @param file path from the root */
export function importsOf(file: string, text: string): Import[] {
  return ts.preProcessFile(text, true, true).importedFiles.map(({ fileName: specifier }) => ({
    file,
    specifier,
    target: targetOf(file, specifier),
  }));
}

/** @returns why the import must not be; undefined where it may */
export function judge({ file, specifier, target }: Import): string | undefined {
  if (isTestCode(file) || target === undefined) return undefined;
  const complaint = `${file} imports ${specifier}`;
  if ('package' in target) {
    const homes = HOMES[target.package] ?? [];
    if (homes.some((home) => isWithin(file, home))) return undefined;
    return `${complaint}: ${target.package} is at home in ${homes.join(', ') || 'tests only'}`;
  }
  if (isTestCode(target.path)) return `${complaint}, which is test code`;
  const layer = layerOf(file);
  if (layer === undefined) return `${file} belongs to no layer`;
  const allowed = [layer.root, ...layer.below].some(
    (root) => isWithin(target.path, root) && reaches(layer, target.path),
  );
  return allowed ? undefined : `${complaint}: ${layer.root} may import ${layer.below.join(', ') || 'itself only'}`;
}

/** A layer inside another one (`ipam/core` in `ipam`) is reached only where it is named, or from within. */
function reaches(layer: Layer, path: string): boolean {
  const other = layerOf(path);
  return other === undefined || other.root === layer.root || layer.below.some((root) => isWithin(root, other.root));
}

function layerOf(path: string): Layer | undefined {
  const matching = LAYERS.filter(({ root }) => isWithin(path, root));
  return matching.sort((a, b) => b.root.length - a.root.length)[0];
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

function targetOf(file: string, specifier: string): Import['target'] {
  if (specifier.startsWith('.')) {
    return { path: posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts') };
  }
  if (isBuiltin(specifier)) return undefined;
  const [scope = '', name = ''] = specifier.split('/');
  return { package: scope.startsWith('@') ? `${scope}/${name}` : scope };
}
