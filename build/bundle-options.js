// How esbuild makes the bundles.
import { PARTS } from './parts.js';

export const BUNDLE = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  // Identifiers keep their names, so that a stack trace can be read.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
  // The paths of packages stay below node_modules/ if that is a link, as in a release.
  preserveSymlinks: true,
  alias: {
    'node:http2': './build/light/http2.cjs',
    'body-parser': './build/light/express-parts.cjs',
    '@opentelemetry/api': './build/light/opentelemetry.cjs',
    'prom-client': './build/light/prom-client.cjs',
    undici: './build/light/undici.cjs',
  },
  logLevel: 'warning',
};

const LIGHTER = {
  ...BUNDLE,
  format: 'cjs',
  alias: {
    ...BUNDLE.alias,
    'mime-types': './build/light/express-parts.cjs',
    qs: './build/light/express-parts.cjs',
    send: './build/light/express-parts.cjs',
    'serve-static': './build/light/express-parts.cjs',
  },
};

/** Packages that only some starts need, with the files that contain them. */
const LATER = { '@kubernetes/client-node/dist/config.js': 'kubeconfig', 'node-forge': 'node-forge', yaml: 'yaml' };
const LAUNCHER = { ...LIGHTER, entryPoints: { holdfast: 'build/launcher.js' }, format: 'esm' };

/** One file for each process: a start would need a tenth more time for files that processes share. */
const PROCESSES = Object.entries(PARTS).map(([name, parts]) => ({
  ...LIGHTER,
  entryPoints: { [name]: 'holdfast.ts' },
  define: { 'import.meta.dirname': '__dirname' },
  plugins: [leaveOut(parts)],
}));

const PACKAGES = Object.entries(LATER).map(([path, name]) => ({ ...LIGHTER, entryPoints: { [name]: path } }));

export const BUNDLES_OF_PROCESSES = [LAUNCHER, ...PROCESSES, ...PACKAGES].map((options) => ({
  ...options,
  outdir: 'dist',
  outExtension: options.format === 'cjs' ? { '.js': '.cjs' } : {},
}));

/** Leaves out the other modules that holdfast.ts imports when it needs them, and the packages that have a file of their own. */
function leaveOut(parts) {
  const kept = parts.map((part) => `./${part}.js`);
  const isLeftOut = ({ kind, importer, path }) =>
    kind === 'dynamic-import' && importer.endsWith('/holdfast.ts') && !kept.includes(path);
  return {
    name: 'leave-out',
    setup({ onResolve }) {
      onResolve({ filter: /^\.\// }, (request) =>
        isLeftOut(request) ? { path: request.path, external: true } : undefined,
      );
      onResolve({ filter: /^[^.]/ }, ({ path }) =>
        path in LATER ? { path: `./${LATER[path]}.cjs`, external: true } : undefined,
      );
    },
  };
}
