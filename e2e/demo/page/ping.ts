import type { PingResult } from '../../bed/network/wire-events.js';
import { rejectUnknownFlags, argumentsOf, type Program } from './program.js';

/** On the wire of the demo itself, where the containers of pods do not run. */
export const ping: Program = {
  prefix: 'kubectl exec',
  isReadOnly: true,
  isEmulated: ({ wire }) => wire !== undefined,
  parse({ names: [pod = ''], podCommand: [command, ...rest] }) {
    if (command !== 'ping') throw new Error('the demo runs ping in pods, and nothing else');
    const args = argumentsOf(rest, undefined);
    rejectUnknownFlags(args, ['-c']);
    const count = Number(args.flags.get('-c') ?? '');
    const [target = ''] = args.names;
    return async ({ wire, namespace }) => {
      if (wire === undefined) throw new Error('there are no networks of pods here that could be pinged on');
      const place = await wire.locationOf({ namespace, name: pod });
      return report(target, await wire.wire.ping(place, target, { count }));
    };
  },
};

/** In the form of ping, with the figures that the wire has. */
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
