// Compiles the CNI plugin for the nodes' architectures: `node cni/plugin/build.js [folder]`, by default into dist/cni/.
import { join, resolve } from 'node:path';
import { buildGoProgram, printSizes } from '../../build/go-program.js';

const PLUGIN = { name: 'plugin', title: 'CNI plugin', sources: import.meta.dirname, binary: 'holdfast' };

/** See `buildGoProgram`. */
export async function buildPlugin(folder, architectures) {
  return buildGoProgram(PLUGIN, folder, architectures);
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename) {
  await printSizes(await buildPlugin(process.argv[2] ?? join(import.meta.dirname, '..', '..', 'dist', 'cni')));
}
