import { join } from 'node:path';
import { cachedFolder } from '../build/cache.js';
import { missingLibraries, unpackPackages } from '../build/debian-packages.js';
import { capture } from '../processes/processes.js';

/** The program that shows packet filters, and the libraries that this machine lacks. */
export interface Nft {
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Downloads nft from this machine's distribution, once. Nothing is installed. */
export async function ensureNft(): Promise<Nft> {
  const root = await cachedFolder('nft-1', async (scratch) => {
    const packages = ['nftables'];
    await unpackPackages([...packages, ...(await missingLibraries(packages))], scratch);
  });
  const libraries = (await capture('sh', ['-c', 'echo "$0"/usr/lib/*-linux-gnu', root])).trim();
  return { command: join(root, 'usr/sbin/nft'), env: { LD_LIBRARY_PATH: libraries } };
}
