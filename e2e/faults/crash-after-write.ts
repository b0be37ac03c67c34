import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bed } from '../bed/bed.js';
import { HOLDFAST_NAMESPACE } from '../holdfast/install.js';
import type { HoldfastProcess } from '../holdfast/process.js';
import { startWriteProxy, type WriteProxyOptions } from './write-proxy.js';

export interface CrashOptions {
  readonly bed: Bed;
  /** It runs, and does so again afterwards. */
  readonly process: HoldfastProcess;
  /** More flags for it. */
  readonly args?: readonly string[];
  /** The writes that it dies of. */
  readonly counts: WriteProxyOptions['counts'];
}

/**
 * Tells a story again and again, while the process is killed right after the n-th of its writes and started again at once: of the
 * first write in the first story, and so on, until a story has fewer writes.
 * @param run waits in the end until the process has nothing left to write
 * @returns the writes after which it died, by method and path
 */
export async function crashAfterEachWrite(
  { bed, process, args = [], counts }: CrashOptions,
  run: (nth: number) => Promise<void>,
): Promise<string[]> {
  const crashes: string[] = [];
  // none in the zeroth story: what the process has to write before the first one
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
