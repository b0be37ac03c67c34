import type { PingResult } from '../../../bed/network/wire-events.js';
import type { EmulatedProgram } from './program.js';

/** Pings from the network namespace of a pod, because its containers do not run. */
export const ping: EmulatedProgram = {
  prefix: 'kubectl exec',
  isNeeded: ({ wire }) => wire !== undefined,
  parse(words) {
    const [, pod = '', count = '', timeout = '', target = ''] =
      /^(\S+) -- ping -c (\d+) -W (\d+) (\S+)$/.exec(words.join(' ')) ?? [];
    if (target === '') throw new Error('the demo can run only "ping -c COUNT -W SECONDS ADDRESS" in pods');
    return async ({ wire }, namespace) => {
      if (wire === undefined) throw new Error('pings need real pod networks, which this machine does not allow');
      const place = await wire.locationOf({ namespace, name: pod });
      const options = { count: Number(count), timeoutMs: Number(timeout) * 1000 };
      return report(target, await wire.wire.ping(place, target, options));
    };
  },
};

/** The result in the format of ping. */
function report(target: string, { sent, received, lost, rttMs, error }: PingResult): string {
  return [
    `PING ${target} (${target}): 56 data bytes`,
    ...(error === undefined ? [] : [`ping: ${error}`]),
    '',
    `--- ${target} ping statistics ---`,
    `${String(sent)} packets transmitted, ${String(received)} packets received, ${String(Math.round((100 * lost) / sent))}% packet loss`,
    ...(rttMs === undefined
      ? []
      : [`round-trip p50/p95/max = ${[rttMs.p50, rttMs.p95, rttMs.max].map((ms) => ms.toFixed(3)).join('/')} ms`]),
  ].join('\n');
}
