import type { Pod } from '../../../api/pod.js';
import type { RealNode } from '../../real-nodes/real-node.js';

/** What the kernel lets a container do. */
export interface ContainerRights {
  readonly user: number;
  readonly group: number;
  /** In hexadecimal: those it has, and those that it or its children could get. */
  readonly capabilities: readonly [effective: string, bounding: string];
  readonly noNewPrivileges: boolean;
  /** 0 off, 1 strict, 2 filter (proc_pid_status(5)). */
  readonly seccomp: number;
  readonly isRootReadOnly: boolean;
}

/** The claims of a projected service account token that name the pod (KEP-1205, KEP-4193). */
export interface TokenBinding {
  readonly pod?: { readonly name: string; readonly uid: string };
  readonly node?: { readonly name: string };
  readonly serviceaccount?: { readonly name: string };
}

/** Reads from /proc of its node what the first container of a pod may do. */
export async function rightsOf(node: RealNode, pod: Pod): Promise<ContainerRights> {
  const pid = await node.processOf(pod);
  const [status, mounts] = [await node.run('cat', `/proc/${pid}/status`), await node.run('cat', `/proc/${pid}/mounts`)];
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1] ?? '';
  const [, options = ''] = /^\S+ \/ \S+ (\S+)/m.exec(mounts) ?? [];
  return {
    user: Number(field('Uid')),
    group: Number(field('Gid')),
    capabilities: [field('CapEff'), field('CapBnd')],
    noNewPrivileges: field('NoNewPrivs') === '1',
    seccomp: Number(field('Seccomp')),
    isRootReadOnly: options.split(',').includes('ro'),
  };
}

/** Reads the token that kubelet has put into the first container of a pod. */
export async function tokenBindingOf(node: RealNode, pod: Pod): Promise<TokenBinding | undefined> {
  const path = 'var/run/secrets/kubernetes.io/serviceaccount/token';
  const token = await node.run('cat', `/proc/${await node.processOf(pod)}/root/${path}`);
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return (JSON.parse(claims) as { 'kubernetes.io'?: TokenBinding })['kubernetes.io'];
}
