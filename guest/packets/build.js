// Compiles holdfast-packets, which answers guests, for the nodes' architectures: `node guest/packets/build.js [folder]`,
// by default into dist/packets/.
import { join, resolve } from 'node:path';
import { buildGoProgram, printSizes } from '../../build/go-program.js';

const PACKETS = {
  name: 'packets',
  title: 'program holdfast-packets',
  sources: import.meta.dirname,
  binary: 'holdfast-packets',
};

/** See `buildGoProgram`. */
export async function buildPackets(folder, architectures) {
  return buildGoProgram(PACKETS, folder, architectures);
}

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename) {
  await printSizes(await buildPackets(process.argv[2] ?? join(import.meta.dirname, '..', '..', 'dist', 'packets')));
}
