// How esbuild makes the bundles.

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
    http: './build/light/http.cjs',
    'node:http': './build/light/http.cjs',
    'node:http2': './build/light/http2.cjs',
    'body-parser': './build/light/express-parts.cjs',
    '@opentelemetry/api': './build/light/opentelemetry.cjs',
    'prom-client': './build/light/prom-client.cjs',
    undici: './build/light/undici.cjs',
  },
  logLevel: 'warning',
};

export const PROCESS_BUNDLES = {
  ...BUNDLE,
  entryPoints: ['holdfast.ts'],
  outdir: 'dist',
  splitting: true,
  format: 'esm',
  chunkNames: '[name]-[hash]',
  // CommonJS packages inside the bundle call require() for Node's own modules.
  banner: { js: "import{createRequire as makeRequire}from'node:module';const require=makeRequire(import.meta.url);" },
  alias: {
    ...BUNDLE.alias,
    'mime-types': './build/light/express-parts.cjs',
    qs: './build/light/express-parts.cjs',
    send: './build/light/express-parts.cjs',
    'serve-static': './build/light/express-parts.cjs',
  },
};
