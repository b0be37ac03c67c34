import type { Manifest } from '../../bed/control-plane/objects.js';
import { runIsolated } from '../../bed/real-nodes/isolated-program.js';
import { reasonAgainstRealNodes } from '../../bed/real-nodes/isolation.js';
import { onBed } from '../../bed/environment.js';
import { messageOf } from '../../kube/errors.js';
import type { Narrator } from './narrator.js';

/**
 * Runs the demo on real nodes, if `NODES=real` asks for them and this machine allows them. Says why if it does not.
 * @returns its status; undefined if it did not run
 */
export async function runOnRealNodes(program: string, narrator: Narrator): Promise<number | undefined> {
  if (!onBed || process.env.NODES !== 'real') return undefined;
  let reason = reasonAgainstRealNodes();
  if (reason === undefined) {
    try {
      return await runIsolated(program, [], (line) => narrator.progress(line));
    } catch (error) {
      reason = `real nodes lack programs: ${messageOf(error)}`;
    }
  }
  narrator.say(`The nodes are simulated: ${reason}.`);
  return undefined;
}

/** By default, counts are written once a minute. The demo shows them after each step. */
export function withQuickCounts(object: Manifest): Manifest {
  if (object.kind !== 'Deployment' || object.metadata.name !== 'holdfast-ipam') return object;
  const copy = structuredClone(object) as Manifest & {
    spec: { template: { spec: { containers: { args: string[] }[] } } };
  };
  copy.spec.template.spec.containers[0]?.args.push('--pool-status-interval=1s');
  return copy;
}
