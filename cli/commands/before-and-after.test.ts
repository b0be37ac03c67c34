import { expect } from 'chai';
import { COMPONENT_LABEL } from '../../api/pod.js';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { holdfastConfig, nadDefinition } from '../../test/objects/pool-objects.js';
import type { Connection } from '../cluster-client.js';
import { readCliCommandLine } from '../command-line.js';
import { CLUSTER_ROLE_BINDINGS, DAEMON_SETS } from '../installation.js';
import { createTerminal } from '../terminal.js';
import { MemoryCluster } from '../testing/memory-cluster.js';

describe('kubectl holdfast connectivity', () => {
  it('takes the image of the agents of an installation in namespaces of other names', async () => {
    const labels = { 'app.kubernetes.io/name': 'holdfast', [COMPONENT_LABEL]: 'agent' };
    const metadata = { name: 'holdfast-agent', labels };
    const { client } = new MemoryCluster()
      .put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition('a/blue', holdfastConfig()))
      .put(DAEMON_SETS, {
        metadata: { ...metadata, namespace: 'network' },
        spec: { template: { spec: { containers: [{ name: 'agent', image: 'holdfast:1' }] } } },
      })
      .put(CLUSTER_ROLE_BINDINGS, {
        metadata,
        subjects: [{ kind: 'ServiceAccount', namespace: 'network', name: 'holdfast-agent' }],
      });
    const terminal = createTerminal(process.stdout, process.stderr, undefined);
    const connection = { client, home: 'a', clusterFlags: '' } as unknown as Connection;
    const error: unknown = await readCliCommandLine(['connectivity'])!
      .run({ terminal, connect: (run) => run(connection) })
      .catch((thrown: unknown) => thrown);
    // the command would go on with the image
    expect(String(error)).to.include('no node takes pods');
  });
});
