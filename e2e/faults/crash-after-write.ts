import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bed } from '../bed/bed.js';
import { HOLDFAST_NAMESPACE } from '../holdfast/install.js';
import type { HoldfastProcess } from '../holdfast/process.js';
import { startWriteProxy, type WriteProxyOptions } from './write-proxy.js';

export interface CrashOptions {
  readonly bed: Bed;
  /** Runs before and afterwards. */
  readonly process: HoldfastProcess;
  /** More flags for it. */
  readonly args?: readonly string[];
  /** Selects the writes after which it is killed. */
  readonly counts: WriteProxyOptions['counts'];
}

/**
 * Repeats a test. In its n-th run the process is killed right after its n-th write and started again at once. Ends after the
 * first run that has fewer writes.
 * @param run must wait in the end until the process has nothing left to write
 * @returns the writes after which the process was killed: method and path
 */
export async function crashAfterEachWrite(
  { bed, process, args = [], counts }: CrashOptions,
  run: (nth: number) => Promise<void>,
): Promise<string[]> {
  const crashes: string[] = [];
  // nth is 0 before the first run, so that writes at the start of the process are not counted
  const current = { nth: 0, writes: 0, restarted: undefined as Promise<void> | undefined };
  const proxy = await proxyFor({ bed, process, counts }, (what) => {
    current.writes++;
    if (current.writes !== current.nth) return undefined;
    crashes.push(what);
    current.restarted = process.kill().then(() => process.start({ kubeconfig: proxy.kubeconfig, args }));
    return current.restarted;
  });
  try {
    await process.stop();
    await process.start({ kubeconfig: proxy.kubeconfig, args });
    for (;;) {
      Object.assign(current, { nth: current.nth + 1, writes: 0, restarted: undefined });
      await run(current.nth);
      if (current.restarted === undefined) return crashes;
      await current.restarted;
    }
  } finally {
    await process.stop();
    await proxy.close();
    await process.start();
  }
}

async function proxyFor(
  { bed, process, counts }: Pick<CrashOptions, 'bed' | 'process' | 'counts'>,
  onWrite: (what: string) => Promise<void> | undefined,
): Promise<{ kubeconfig: string; close: () => Promise<void> }> {
  const { certificates } = bed;
  const proxy = await startWriteProxy({
    upstream: bed.server,
    certificate: await readFile(certificates.servingCert, 'utf8'),
    key: await readFile(certificates.servingKey, 'utf8'),
    counts,
    onWrite: (_n, what) => onWrite(what),
  });
  const account = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, `holdfast-${process.name}`);
  const kubeconfig = join(bed.workDir, `${process.name}-through-proxy.kubeconfig`);
  const direct = await readFile(account, 'utf8');
  await writeFile(kubeconfig, direct.replaceAll(bed.server, proxy.url), { mode: 0o600 });
  return { kubeconfig, close: () => proxy.close() };
}
