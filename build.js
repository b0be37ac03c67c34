// Bundles dist/holdfast.js with one more file for each process and for shared code; dist/kubectl-holdfast.cjs, the kubectl plugin; and
// dist/cni/, the CNI plugin.
import { chmod, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';
import { buildPlugin } from './cni/plugin/build.js';

// An earlier build may have left chunks that are no longer used.
await rm('dist', { recursive: true, force: true });

const usual = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  // Identifiers keep their names, so that a stack trace can be read.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
};
const processes = await build({
  ...usual,
  entryPoints: ['holdfast.ts'],
  outdir: 'dist',
  splitting: true,
  format: 'esm',
  chunkNames: '[name]-[hash]',
  // CommonJS packages inside the bundle call require() for Node's own modules.
  banner: { js: "import{createRequire as makeRequire}from'node:module';const require=makeRequire(import.meta.url);" },
});
// One file, which may be installed in any folder under a name without extension: outside of a package, Node treats it as CommonJS.
const KUBECTL_PLUGIN = 'dist/kubectl-holdfast.cjs';
const cli = await build({ ...usual, entryPoints: ['cli/main.ts'], outfile: KUBECTL_PLUGIN, format: 'cjs' });
await chmod(KUBECTL_PLUGIN, 0o755);
const inputs = { ...processes.metafile.inputs, ...cli.metafile.inputs };
const outputs = { ...processes.metafile.outputs, ...cli.metafile.outputs };

// The licences of bundled packages must be distributed with the code.
const bundled = Object.keys(inputs).flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []);
const notices = [];
for (const folder of [...new Set(bundled)].sort()) {
  const { name, version } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'));
  const licence = (await readdir(folder)).find((file) => /^licen[cs]e/i.test(file));
  const text = licence === undefined ? '' : await readFile(`${folder}/${licence}`, 'utf8');
  notices.push(`${name} ${version}\n\n${text.trim()}\n`);
}
await writeFile('dist/THIRD-PARTY-LICENSES.txt', notices.join(`\n${'-'.repeat(80)}\n\n`));

const files = Object.entries(outputs).map(([path, { bytes }]) => ({ path, bytes }));
for (const path of await buildPlugin('dist/cni')) files.push({ path, bytes: (await stat(path)).size });
files.sort((a, b) => b.bytes - a.bytes);
for (const { path, bytes } of files) console.log(`${(bytes / 1024).toFixed(0).padStart(6)} KiB  ${path}`);
