import { readFileSync, writeFileSync } from 'node:fs';

// Loaded into a measured process. It writes BLOCKS_FILE whenever its event loop was blocked for longer than before. SIGUSR2 forgets earlier blocks.

/** The longest times between two turns of the event loop. */
export interface LongestBlocks {
  wallMs: number;
  /** CPU time of the thread of the event loop: without the time in which it waits for a CPU, or for other threads of the garbage collector. */
  cpuMs: number;
}

const EVERY_MS = 5;

let longest: LongestBlocks = { wallMs: 0, cpuMs: 0 };
let before = read();

/** schedstat begins with the CPU time of the main thread in ns (Linux). */
function read(): LongestBlocks {
  return { wallMs: performance.now(), cpuMs: parseInt(readFileSync('/proc/self/schedstat', 'latin1'), 10) / 1e6 };
}

function look(): void {
  const now = read();
  const wallMs = Math.max(longest.wallMs, now.wallMs - before.wallMs - EVERY_MS);
  const cpuMs = Math.max(longest.cpuMs, now.cpuMs - before.cpuMs);
  if (wallMs > longest.wallMs || cpuMs > longest.cpuMs) {
    longest = { wallMs, cpuMs };
    writeFileSync(process.env.BLOCKS_FILE ?? '', JSON.stringify(longest));
  }
  before = read();
}

process.on('SIGUSR2', () => {
  longest = { wallMs: 0, cpuMs: 0 };
  before = read();
});
setInterval(look, EVERY_MS).unref();
