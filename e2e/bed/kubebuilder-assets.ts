import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { capture } from './processes.js';

/** A program, with the arguments that come before its flags. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** What a control plane consists of. */
export interface Servers {
  readonly etcd: Program;
  readonly apiServer: Program;
}

/** The bed's own scheduler and controllers are of this version. They work with an API server of the same or the next one. */
const KUBERNETES_MINOR = 34;
const OLDEST_ETCD = [3, 5] as const;

/**
 * etcd and kube-apiserver in the folder that KUBEBUILDER_ASSETS names, as setup-envtest installs them.
 * @returns undefined if the variable is not set
 * @throws {Error} if a program is missing there, or has a version that the bed cannot use
 */
export async function findKubebuilderAssets(folder = process.env.KUBEBUILDER_ASSETS): Promise<Servers | undefined> {
  if (!folder) return undefined;
  const programs = { etcd: join(folder, 'etcd'), apiServer: join(folder, 'kube-apiserver') };
  const missing: string[] = [];
  for (const path of Object.values(programs)) {
    await access(path, constants.X_OK).catch(() => missing.push(path));
  }
  if (missing.length > 0) {
    throw new Error(
      `KUBEBUILDER_ASSETS is ${folder}, but ${missing.join(' and ')} cannot be run. ` +
        'Install the programs there (setup-envtest use), or unset KUBEBUILDER_ASSETS to build them from source',
    );
  }
  await check(programs.etcd, /etcd Version: (\d+)\.(\d+)/, {
    needs: `${OLDEST_ETCD.join('.')} or newer`,
    isUsable: (major, minor) => major > OLDEST_ETCD[0] || (major === OLDEST_ETCD[0] && minor >= OLDEST_ETCD[1]),
  });
  await check(programs.apiServer, /Kubernetes v(\d+)\.(\d+)/, {
    needs: `1.${String(KUBERNETES_MINOR)} or 1.${String(KUBERNETES_MINOR + 1)}`,
    isUsable: (major, minor) => major === 1 && (minor === KUBERNETES_MINOR || minor === KUBERNETES_MINOR + 1),
  });
  return { etcd: { command: programs.etcd, args: [] }, apiServer: { command: programs.apiServer, args: [] } };
}

async function check(
  path: string,
  pattern: RegExp,
  { needs, isUsable }: { needs: string; isUsable: (major: number, minor: number) => boolean },
): Promise<void> {
  const output = await capture(path, ['--version']);
  const [, major = '', minor = ''] = pattern.exec(output) ?? [];
  if (major !== '' && isUsable(Number(major), Number(minor))) return;
  const found = output.trim().split('\n')[0] ?? '';
  throw new Error(
    `KUBEBUILDER_ASSETS: ${path} is "${found}", and the test bed needs ${needs}. ` +
      'Install that version, or unset KUBEBUILDER_ASSETS to build it from source',
  );
}
