// `node build.js [amd64|arm64]…` writes into dist/: holdfast.js with a file for each process, and for packages that only some starts need;
// kubectl-holdfast.cjs, the kubectl plugin; cni/ and packets/, the CNI plugin and holdfast-packets for these architectures
// of nodes, by default for all; sbom.cdx.json and THIRD-PARTY-LICENSES.txt.
import { chmod, rm, stat } from 'node:fs/promises';
import { build } from 'esbuild';
import { BUNDLE, BUNDLES_OF_PROCESSES } from './build/bundle-options.js';
import { writeThirdParties } from './build/third-parties.js';
import { buildPage, textOf } from './cli/ui/page/build.js';
import { buildPlugin } from './cni/plugin/build.js';
import { buildPackets } from './guest/packets/build.js';

// An earlier build may have left chunks that are no longer used.
await rm('dist', { recursive: true, force: true });

const processes = await Promise.all(BUNDLES_OF_PROCESSES.map((options) => build(options)));
// The web page of the plugin is a text inside of it.
const page = await buildPage(BUNDLE);
// One file, which may be installed in any folder under a name without extension: outside of a package, Node treats it as CommonJS.
const KUBECTL_PLUGIN = 'dist/kubectl-holdfast.cjs';
const cli = await build({
  ...BUNDLE,
  entryPoints: ['cli/main.ts'],
  outfile: KUBECTL_PLUGIN,
  format: 'cjs',
  define: { UI_PAGE_SCRIPT: JSON.stringify(textOf(page, '.js')), UI_PAGE_STYLE: JSON.stringify(textOf(page, '.css')) },
});
await chmod(KUBECTL_PLUGIN, 0o755);
const metafiles = [...processes, page, cli].map(({ metafile }) => metafile);
const all = (part) => Object.assign({}, ...metafiles.map((metafile) => metafile[part]));
await writeThirdParties('dist', { inputs: all('inputs'), outputs: all('outputs') });

const files = Object.entries(all('outputs')).map(([path, { bytes }]) => ({ path, bytes }));
const architectures = process.argv.slice(2);
const programs = [
  ...(await buildPlugin('dist/cni', architectures)),
  ...(await buildPackets('dist/packets', architectures)),
];
for (const path of programs) files.push({ path, bytes: (await stat(path)).size });
files.sort((a, b) => b.bytes - a.bytes);
for (const { path, bytes } of files) console.log(`${(bytes / 1024).toFixed(0).padStart(6)} KiB  ${path}`);
