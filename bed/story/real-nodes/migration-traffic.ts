import type { Pod } from '../../../api/pod.js';
import { TCP_CLIENT, TCP_PORT } from '../../network/migration/tcp-connection.js';
import type { Guest } from '../../real-nodes/guest.js';
import type { NodeStory } from '../nodes.js';

const EVERY_MS = 10;

/** What a third host sees of a guest. */
export interface Traffic {
  /** Echo requests. */
  readonly sent: number;
  /** Echo requests without an answer. */
  readonly lost: number;
  /** Times without an answer, by the time at which they began, in milliseconds. */
  readonly gaps: Readonly<Record<number, number>>;
  /** `kept`, or the error that ended a TCP connection. */
  readonly connection: string;
}

/** A process of the guest answers TCP connections. */
export async function serveTcp(guest: Guest): Promise<void> {
  await guest.run(`nc -ll -p ${String(TCP_PORT)} -e cat > /dev/null 2>&1 &`);
}

/** Pings the guest of {@link serveTcp} from a pod, and holds a TCP connection. @returns the figures when the time is over */
export async function observeTraffic(
  nodes: NodeStory,
  { client, address, forMs }: { readonly client: Pod; readonly address: string; readonly forMs: number },
): Promise<Traffic> {
  const node = nodes.node(client.spec?.nodeName);
  const sent = forMs / EVERY_MS;
  const ping = `busybox ping -i ${String(EVERY_MS / 1_000)} -c ${String(sent)} -W 2 ${address} || true`;
  const [pinged, connection] = await Promise.all([
    node.runInPod(client, 'sh', '-c', ping),
    node.runInPod(client, process.execPath, '-e', TCP_CLIENT, address, String(forMs)),
  ]);
  const numbers = new Set([...pinged.matchAll(/ seq=(\d+) /g)].map(([, number]) => Number(number)));
  return { sent, lost: sent - numbers.size, gaps: gapsOf([...numbers], sent), connection };
}

function gapsOf(answered: readonly number[], sent: number): Record<number, number> {
  const sorted = [...answered.toSorted((a, b) => a - b), sent];
  const gaps = sorted.map((number, index) => {
    const first = (sorted[index - 1] ?? -1) + 1;
    return [first * EVERY_MS, (number - first) * EVERY_MS] as const;
  });
  return Object.fromEntries(gaps.filter(([, forMs]) => forMs > 0));
}

/** Echo requests that the kernel of a pod has received. If a guest runs in it, they were for the guest. */
export async function misdeliveredTo(nodes: NodeStory, pod: Pod): Promise<number> {
  const text = await nodes.node(pod.spec?.nodeName).runInPod(pod, 'cat', '/proc/net/snmp');
  const [names = '', counts = ''] = text.split('\n').filter((line) => line.startsWith('Icmp:'));
  return Number(counts.split(' ')[names.split(' ').indexOf('InEchos')]);
}
