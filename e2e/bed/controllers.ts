import type { ControlPlane } from './control-plane.js';

/** By default clients limit themselves to 20 requests a second, which is five seconds of start-up for nothing. */
const UNTHROTTLED = ['--kube-api-qps=1000', '--kube-api-burst=1000'];

/**
 * Starts kube-controller-manager. The kinds whose objects it shall collect must exist: its garbage collector looks for new
 * kinds only every 30 seconds.
 */
export function startControllerManager({ processes, kubeconfig, certificates }: ControlPlane, binary: string): void {
  processes.start({
    name: 'kube-controller-manager',
    command: binary,
    args: [
      'kube-controller-manager',
      `--kubeconfig=${kubeconfig}`,
      `--service-account-private-key-file=${certificates.serviceAccountKey}`,
      '--use-service-account-credentials',
      '--leader-elect=false',
      '--secure-port=0',
      ...UNTHROTTLED,
    ],
  });
}

export function startScheduler({ processes, kubeconfig }: ControlPlane, binary: string): void {
  processes.start({
    name: 'kube-scheduler',
    command: binary,
    args: ['kube-scheduler', `--kubeconfig=${kubeconfig}`, '--leader-elect=false', '--secure-port=0', ...UNTHROTTLED],
  });
}
