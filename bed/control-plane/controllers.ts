import type { ControlPlane } from './control-plane.js';
import { RARE_COLLECTION } from './garbage-collection.js';
import type { Program } from '../build/binaries.js';

/**
 * Starts the controllers of kube-controller-manager that the bed needs. CRDs of objects to be garbage-collected must exist
 * before, because the garbage collector looks for new kinds only every 30 seconds.
 */
export function startControllerManager(plane: ControlPlane, { command, args }: Program, hasRealNodes: boolean): void {
  const { processes, kubeconfig, certificates } = plane;
  const flags = [`--kubeconfig=${kubeconfig}`, ...(hasRealNodes ? [`--root-ca-file=${certificates.caFile}`] : [])];
  const name = 'kube-controller-manager';
  processes.start({ name, command, args: [...args, ...flags], env: RARE_COLLECTION });
}

export function startScheduler({ processes, kubeconfig }: ControlPlane, { command, args }: Program): void {
  const flags = ['--leader-elect=false', '--secure-port=0'];
  // By default clients limit themselves to 20 requests a second, which makes the start five seconds longer.
  const limits = ['--kube-api-qps=1000', '--kube-api-burst=1000'];
  processes.start({
    name: 'kube-scheduler',
    command,
    args: [...args, `--kubeconfig=${kubeconfig}`, ...flags, ...limits],
    env: RARE_COLLECTION,
  });
}
