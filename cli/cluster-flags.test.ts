import { expect } from 'chai';
import { AllocationReason, IPS_ALLOCATED } from '../api/names.js';
import { NAMESPACE, vm } from '../test/objects/workload-objects.js';
import {
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
} from '../kube/resources.js';
import type { Connection } from './cluster-client.js';
import { addClusterFlags } from './cluster-flags.js';
import { readCliCommandLine } from './command-line.js';
import { blueNad, bluePool, claimWithCondition } from './testing/vm-story.js';
import { MemoryCluster } from './testing/memory-cluster.js';
import { createTerminal } from './terminal.js';

const FLAGS = ' --context lab --as eve';

/** A VM that waits for its address, and a namespace in which Pod Security refuses agents. */
function brokenCluster(): MemoryCluster {
  const labels = { 'pod-security.kubernetes.io/enforce': 'baseline' };
  return new MemoryCluster()
    .put(NAMESPACES, { metadata: { name: NAMESPACE } }, { metadata: { name: 'holdfast-agents', labels } })
    .put(VIRTUAL_MACHINES, vm({ data: 'blue' }))
    .put(IPAM_CLAIMS, claimWithCondition([IPS_ALLOCATED, 'False', AllocationReason.Conflict, 'taken']))
    .put(NETWORK_ATTACHMENT_DEFINITIONS, blueNad())
    .put(ADDRESS_POOLS, bluePool());
}

async function printedBy(command: string): Promise<string> {
  let text = '';
  const stdout = { write: (chunk: unknown) => Boolean((text += String(chunk))) };
  const { client } = brokenCluster();
  const connection = { client, transport: client.transport, home: NAMESPACE, clusterFlags: FLAGS };
  await readCliCommandLine(command.split(' '))!.run({
    terminal: createTerminal(stdout, process.stderr, undefined),
    connect: (run) => run(connection as unknown as Connection),
  });
  return text;
}

describe('commands in what kubectl holdfast says', () => {
  for (const [given, expected] of [
    ['run kubectl get apools first', `run kubectl${FLAGS} get apools first`],
    [
      'run kubectl -n lab describe pod and kubectl logs',
      `run kubectl${FLAGS} -n lab describe pod and kubectl${FLAGS} logs`,
    ],
    ['free it: kubectl holdfast release 10.0.0.5', `free it: kubectl holdfast${FLAGS} release 10.0.0.5`],
  ] as const)
    it(`are for the cluster and user of the command: ${given}`, () => {
      expect(addClusterFlags({ findings: [{ remedy: given, count: 1 }] }, FLAGS)).to.deep.equal({
        findings: [{ remedy: expected, count: 1 }],
      });
    });

  it('repeat flags whose values look like patterns', () => {
    expect(addClusterFlags('kubectl get x', " --context '$&'")).to.equal("kubectl --context '$&' get x");
  });

  it('are not names of the program', () => {
    for (const text of [
      'is older than this version of kubectl holdfast: it has',
      'kubectl',
      'a kubectl.kubernetes.io/x',
    ])
      expect(addClusterFlags(text, FLAGS)).to.equal(text);
  });

  for (const command of ['doctor', 'status', 'preflight', 'trace vm vm1'])
    for (const format of ['table', 'json'])
      it(`are for the cluster and user of the command in ${command} -o ${format}`, async () => {
        const printed = await printedBy(`${command} -o ${format}`);
        expect(printed).to.match(/kubectl( holdfast)? --context lab --as eve [a-z-]/);
        expect(printed).not.to.match(/kubectl( holdfast)? (?!holdfast|--context)[a-z-]/);
      });
});
