import { join } from 'node:path';
import { createAll, readManifests } from '../bed/control-plane/objects.js';
import { MANIFESTS } from '../bed/holdfast/manifests.js';
import { until } from '../bed/processes/wait.js';
import type { Client } from '../kube/client.js';
import type { Resource } from '../kube/resource.js';
import { ADDRESS_BLOCKS, IPAM_CLAIMS } from '../kube/resources.js';
import { describeApiContract } from '../kube/testing/api-contract.js';
import { EMPTY_SERVER } from './testing/shared-server.js';

describe('On a kube-apiserver,', function () {
  let client: Client;

  EMPTY_SERVER.use(this, async (plane) => {
    client = plane.client;
    for (const kind of [ADDRESS_BLOCKS, IPAM_CLAIMS] as readonly Resource[]) {
      await createAll(client, await readManifests(join(MANIFESTS, 'crds', `${kind.plural}.yaml`)));
      await until(`${kind.plural} are served`, () => client.list(kind));
    }
  });

  describeApiContract(() => client);
});
