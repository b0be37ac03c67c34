import { request } from 'node:https';
import { connect } from 'node:tls';
import type { Pod } from '../../../api/pod.js';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { LEASES } from '../../../kube/leader-election.js';
import type { Client } from '../../../kube/client.js';
import { PODS } from '../../../kube/resources.js';
import { HOLDFAST_NAMESPACE } from '../../holdfast/install.js';
import { until } from '../../processes/wait.js';

export const OF_HOLDFAST = 'app.kubernetes.io/name=holdfast';
/** The components of which one replica leads, which their Leases name. */
export const ELECTED = ['capacity', 'controller', 'guest', 'ipam'];

/** Holdfast's pods, those that terminate too. */
export async function holdfastPods(client: Client, component?: string): Promise<Pod[]> {
  const labelSelector =
    component === undefined ? OF_HOLDFAST : `${OF_HOLDFAST},app.kubernetes.io/component=${component}`;
  return (await client.list(PODS, { labelSelector })).items;
}

/**
 * Waits until exactly one replica of a component says that it leads, and its Lease names the same.
 * @param former the pod that led before, if another one has to lead
 * @returns the name of its pod
 */
export async function leaderOf(client: Client, component: string, token: string, former?: string): Promise<string> {
  return until(`one replica of ${component} to lead`, async () => {
    const { spec } = await client.get(LEASES, { namespace: HOLDFAST_NAMESPACE, name: `holdfast-${component}` });
    const pods = await holdfastPods(client, component);
    const metrics = await Promise.all(pods.map((pod) => metricsOf(pod, token)));
    const leaders = pods.filter((_, index) =>
      metrics[index]!.includes(`holdfast_leading_status{name="holdfast-${component}"} 1`),
    );
    const names = leaders.map(({ metadata }) => metadata.name);
    if (names.length !== 1 || names[0] === former || !spec?.holderIdentity?.startsWith(`${names[0]!}_`))
      throw new Error(`[${names.join()}] lead, and the Lease is of ${spec?.holderIdentity ?? 'none'}`);
    return names[0];
  });
}

async function metricsOf(pod: Pod, token: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const options = { host: pod.status?.podIP, port: 8443, path: '/metrics', headers, agent: false };
  const sent = request({ ...options, rejectUnauthorized: false, timeout: 5_000 }).end();
  sent.on('timeout', () => sent.destroy(new Error(`${pod.metadata.name} serves no metrics`)));
  const [answer] = (await once(sent, 'response')) as [NodeJS.ReadableStream & { statusCode: number }];
  const body = await text(answer);
  if (answer.statusCode !== 200)
    throw new Error(`metrics of ${pod.metadata.name}: ${String(answer.statusCode)} ${body}`);
  return body;
}

/** @returns the fingerprint of the certificate that a pod serves @throws {Error} if the CA did not issue it for this name */
export async function certificateOf(
  pod: Pod,
  port: number,
  { ca, servername }: { ca: string; servername: string },
): Promise<string> {
  const socket = connect({ host: pod.status?.podIP ?? '', port, ca, servername });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
