import { parseArgs } from 'node:util';
import { Client } from '../../kube/client.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { Transport } from '../../kube/transport/transport.js';
import { callSubresource } from '../../bed/story/vms/vm.js';

/** `virtctl start|stop|restart -n NAMESPACE VM`, as the tests of kubevirt/ipam-extensions call it. */
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { namespace: { type: 'string', short: 'n' } },
});
const [verb, name] = positionals;
if ((verb !== 'start' && verb !== 'stop' && verb !== 'restart') || name === undefined) {
  throw new TypeError('usage: virtctl start|stop|restart -n NAMESPACE VM');
}
const transport = new Transport(await loadCredentials({ kubeconfig: process.env.KUBECONFIG ?? '' }));
await callSubresource(new Client(transport), { namespace: values.namespace ?? 'default', name }, verb);
await transport.close();
