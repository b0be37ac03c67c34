import type { KubeObject } from '../../api/meta.js';
import { asList, asRecord, asString } from '../../api/json.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { networkStatuses, reportedIPsOf } from '../../api/pod.js';
import type { ProcessPod } from '../installation.js';

/** The program of the image that asks and pings. Responders run it too. */
const PROGRAM = '/opt/holdfast/dist/packets/holdfast-packets';
const INTERFACE = 'net1';
/** A pod ends by itself if the command is killed. */
export const DEADLINE_S = 600;
/** Of all objects of the command. */
export const CONNECTIVITY_LABEL = 'ipam.holdfast.dev/connectivity';

export interface PodRequest {
  readonly namespace: string;
  readonly name: string;
  /** Of the command, for the label. */
  readonly run: string;
  /** `namespace/name`. */
  readonly nad: { readonly namespace: string; readonly name: string };
  readonly node: string;
  readonly image: string;
  /** The addresses to ask and ping; without them, the pod waits. */
  readonly peers: readonly string[];
}

/** Returns the manifest of a pod on a node. It needs root: Kubernetes gives a capability to no other user. */
export function connectivityPod({
  namespace,
  name,
  run,
  nad,
  node,
  image,
  peers,
}: PodRequest): KubeObject & { spec: object } {
  const asks = peers.length > 0;
  const onNode = { key: 'metadata.name', operator: 'In', values: [node] };
  return {
    metadata: {
      ...{ namespace, name, labels: { [CONNECTIVITY_LABEL]: run } },
      annotations: { [NETWORKS_ANNOTATION]: JSON.stringify([{ ...nad, interface: INTERFACE }]) },
    },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: DEADLINE_S,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [onNode] }] },
        },
      },
      tolerations: [{ operator: 'Exists' }],
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          ...{ name: 'packets', image, command: [PROGRAM, 'connectivity', `--interface=${INTERFACE}`] },
          ...(asks && { args: [`--peers=${peers.join(',')}`] }),
          resources: { requests: { cpu: '5m', memory: '16Mi' }, limits: { cpu: '100m', memory: '64Mi' } },
          securityContext: {
            ...(asks ? { runAsUser: 0 } : { runAsUser: 1000, runAsNonRoot: true }),
            ...{ runAsGroup: 1000, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
            capabilities: { drop: ['ALL'], ...(asks && { add: ['NET_RAW'] }) },
          },
        },
      ],
    },
  };
}

/** What Multus reports about the interface on the network. */
export interface PodAttachment {
  readonly addresses: readonly string[];
  readonly mac: string;
}

export function attachmentOf(pod: ProcessPod): PodAttachment | undefined {
  const found = networkStatuses(pod).find((each) => each.interface === INTERFACE);
  if (found === undefined) return undefined;
  return { addresses: reportedIPsOf(found), mac: asString(asRecord(found).mac).toLowerCase() };
}

export function isRunning({ status }: ProcessPod): boolean {
  return status?.phase === 'Running';
}

/** Says what a pod waits for; undefined if it says nothing. */
export function waitingReasonOf({ status = {} }: ProcessPod): string | undefined {
  const unscheduled = status.conditions?.find((each) => each.type === 'PodScheduled' && each.status === 'False');
  const waiting = status.containerStatuses?.[0]?.state?.waiting;
  return unscheduled?.message ?? waiting?.message ?? waiting?.reason;
}

/** An address, and the MAC addresses of the hosts that have it. */
export interface AskedHost {
  readonly address: string;
  readonly macs: readonly string[];
  /** What an echo request of 84 bytes, or of the size of the MTU, failed with; empty: it was answered. */
  readonly ping: string;
  readonly fullSize: string;
}

/** What the program found. */
export interface PairResult {
  readonly mtu: number;
  readonly own: readonly AskedHost[];
  readonly peers: readonly AskedHost[];
  readonly error: string;
}

/** Reads the result of a pod that has ended; undefined if it has none. */
export function resultOf({ status }: ProcessPod): PairResult | undefined {
  const text = status?.containerStatuses?.[0]?.state?.terminated?.message ?? '';
  try {
    const { mtu, own, peers, error } = asRecord(JSON.parse(text));
    if (typeof mtu !== 'number') return undefined;
    return { mtu, own: hostsOf(own), peers: hostsOf(peers), error: asString(error) };
  } catch {
    return undefined;
  }
}

function hostsOf(list: unknown): AskedHost[] {
  return asList(list).map((each) => {
    const { address, macs, ping, fullSize } = asRecord(each);
    const heard = asList(macs).filter((mac) => typeof mac === 'string');
    return { address: asString(address), macs: heard, ping: asString(ping), fullSize: asString(fullSize) };
  });
}
