// Compiles holdfast-packets, which answers guests, for the nodes' architectures: `node guest/packets/build.js [folder]`,
// by default into dist/packets/. With `guests FOLDER ARCHITECTURE`, compiles the generated guests of tests (guests.go).
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

const GUESTS = { ...PACKETS, name: 'guests', title: 'generated guests', binary: 'guests', tags: ['guests'] };

if (process.argv[1] !== undefined && resolve(process.argv[1]) === import.meta.filename) {
  const [first = join(import.meta.dirname, '..', '..', 'dist', 'packets'), folder, ...architectures] =
    process.argv.slice(2);
  if (first === 'guests') await printSizes(await buildGoProgram(GUESTS, folder, architectures));
  else await printSizes(await buildPackets(first));
}
